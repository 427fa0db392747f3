"""PointMaze: the motion in JAX is MuJoCo's, goals and obstacles count to their very edge, scores are what they say."""

import itertools
import runpy
import subprocess
import sys
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image

import s2ac.envs.pointmaze.gymnasium  # noqa: F401  registers it
from s2ac.envs.gymnasium.adapter import HostEnvs, maker
from s2ac.envs.pointmaze import draw, scores
from s2ac.envs.pointmaze.env import PointMazeState, make_pointmaze, nearest_boxes
from s2ac.envs.pointmaze.gymnasium import PointMazeEnv
from s2ac.envs.pointmaze.maps import LAYOUTS, maze_of, parse, solid_cells
from s2ac.envs.pointmaze.rules import RADIUS, PointMazeConfig, goal_at, touches_obstacle
from s2ac.errors import InvalidArgument

NAMES = ("simple", "medium", "hard")
CORNER = np.array([-1.5, 1.5])  # the lower right corner of the simple map's first obstacle, whose centre is (−2, 2)


@pytest.mark.parametrize(("name", "goals", "boxes"), [("simple", 4, 4), ("medium", 4, 4), ("hard", 8, 8)])
def test_layouts_are_symmetric_and_in_their_place(name, goals, boxes):
    """Both reflections map each maze onto itself, so the best policies reach mirrored goals equally often."""
    maze = maze_of(name)
    assert (maze.start, len(maze.goals), len(maze.obstacles)) == ((0.0, 0.0), goals, boxes)
    assert make_pointmaze(PointMazeConfig(name)).max_steps == {"simple": 150, "medium": 300, "hard": 600}[name]
    for kind in (maze.goals, maze.walls, maze.obstacles):
        assert {(-x, y) for x, y in kind} == {(x, -y) for x, y in kind} == set(kind)
    rows = LAYOUTS[name].strip("\n").split("\n")
    for (x, y), row, column in zip(maze.goals, *np.nonzero(np.array([list(row) for row in rows]) == "G"), strict=True):
        assert (x, y) == (column + 0.5 - maze.width / 2, maze.height / 2 - row - 0.5)
    assert solid_cells(maze, True).sum() == solid_cells(maze, False).sum() + boxes == "".join(rows).count("#") + boxes


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("####\n#SG#\n###", "row 2 has 3 cells and row 0 has 4"),
        ("####\n#SX#\n####", "row 1, column 2 is 'X'"),
        ("####\n#.G#\n####", "0 cells 'S'"),
        ("#####\n#SSG#\n#####", "2 cells 'S'"),
        ("####\n#S.#\n####", "no cell 'G'"),
        ("####\n#SG.\n####", "row 1, column 3 is free and at the edge"),
        ("####\n#SG#\n###_", "row 1, column 2 is free and at the edge"),
        ("\n", "0 cells 'S'"),
    ],
)
def test_a_bad_map_is_one_line(rows, words):
    with pytest.raises(InvalidArgument, match=words) as caught:
        parse(rows)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"maze": "hrad"}, "did you mean 'hard'"),
        ({"remove": (0, 1, 2, 3)}, "at least one of the 4 goals must remain"),
        ({"remove": (4,)}, "there is no goal 4, only 0 to 3"),
        ({"remove": (-1,)}, "there is no goal -1"),
        ({"max_steps": 0}, "at least 1"),
        ({"maze": "####\n#SG#\n####"}, "needs a time limit"),
    ],
)
def test_bad_options_are_one_line(fields, words):
    for make in (lambda: PointMazeEnv(**fields), lambda: make_pointmaze(PointMazeConfig(**fields))):
        with pytest.raises(InvalidArgument, match=words):
            make()


def in_jax(config, actions):
    """Positions, velocities, rewards, terminations of rollouts `[E, T, 2]` that go on after an episode's end."""
    env = make_pointmaze(config)

    def rollout(row):
        step = lambda state, action: env.step(jax.random.key(0), state, action)  # noqa: E731
        return jax.lax.scan(step, env.reset(jax.random.key(0))[0], row)[1]

    return jax.jit(jax.vmap(rollout))(actions)


def in_mujoco(config, actions):
    env = PointMazeEnv(maze=config.maze, obstacles=config.obstacles)
    rows = []
    for row in actions:
        env.reset()
        for action in row:
            _, reward, ended, _, info = env.step(action)
            rows.append([*env.data.qpos, *env.data.qvel, reward, ended, info["touched"], env.data.ncon])
    return np.array(rows).reshape(*actions.shape[:2], 8)


@pytest.mark.parametrize(("name", "obstacles"), [("simple", False), ("medium", False), ("hard", True)])
def test_motion_is_that_of_mujoco(name, obstacles, x64):
    """In float64 to 1e-8 after 150 steps, through hundreds of contacts, two at once among them."""
    config = PointMazeConfig(name, obstacles=obstacles)
    actions = np.repeat(np.random.default_rng(0).uniform(-1.3, 1.3, (20, 15, 2)), 10, axis=1)
    found, wanted = in_jax(config, actions), in_mujoco(config, actions)
    np.testing.assert_allclose(found.observation, wanted[..., :4], atol=1e-8)
    np.testing.assert_array_equal(found.reward, wanted[..., 4])
    np.testing.assert_array_equal(found.terminated, wanted[..., 5])
    assert (wanted[..., 7] > 0).sum() > 150
    assert (wanted[..., 7] > 1).sum() > 5
    assert wanted[..., 4].any()
    assert wanted[..., 6].any() == obstacles


def test_rounding_does_not_change_how_an_episode_ends():
    config = PointMazeConfig()
    actions = np.repeat(np.random.default_rng(1).uniform(-1, 1, (60, 15, 2)), 10, axis=1).astype(np.float32)
    found, wanted = in_jax(config, actions), in_mujoco(config, actions)
    np.testing.assert_allclose(found.observation[:, 49, :2], wanted[:, 49, :2], atol=1e-4)
    first = lambda ended: np.where(ended.any(1), ended.argmax(1), -1)  # noqa: E731
    ends = first(wanted[..., 5] > 0)
    assert 0.2 < (ends >= 0).mean() < 0.8
    assert (first(np.asarray(found.terminated)) == ends).mean() >= 0.98


def test_nothing_gets_through_a_wall_and_three_boxes_can_be_met(x64):
    """At full speed into a corner of walls, from many distances: the centre stays outside."""
    solid = jnp.asarray(solid_cells(maze_of("simple"), False))
    env = make_pointmaze(PointMazeConfig(remove=(0,)))

    def step(state, _):
        state, _ = env.step(jax.random.key(0), state, jnp.array([-1.0, 1.0]))
        return state, (state.position, nearest_boxes(solid, state.position)[1])

    def push(offset):
        place, speed = jnp.array([-4.5 + offset, 4.5 - offset]), jnp.array([-5.0, 5.0])
        return jax.lax.scan(step, PointMazeState(place, speed, jnp.zeros((), jnp.int32)), length=10)[1]

    path, gaps = jax.jit(jax.vmap(push))(jnp.linspace(0.1, 0.4, 61))
    assert jnp.abs(path).max() < 4.46
    np.testing.assert_allclose(path[:, -1], [[-4.4, 4.4]] * 61, atol=0.01)
    assert (gaps < 0).sum(axis=2).max() == 3


def test_speed_is_limited_and_keeps_its_direction():
    for action in ([1.0, 0.5], [0.3, -1.0]):
        found = in_jax(PointMazeConfig(), jnp.array([[action] * 25]))
        wanted = in_mujoco(PointMazeConfig(), np.array([[action] * 25]))
        for path in (np.asarray(found.observation[0]), wanted[0]):
            assert np.abs(path[:, 2:4]).max() == pytest.approx(5, abs=1e-5)
            assert (np.abs(path[:8, 2:4]).max(axis=1) < 4).all()
            np.testing.assert_allclose(path[:20, 2] * action[1], path[:20, 3] * action[0], atol=1e-4)


def stand(config, position, velocity=(0.0, 0.0)):
    """One step without a push from a place, in both forms: (reward, terminated) each."""
    jax_env, env = (
        make_pointmaze(config),
        PointMazeEnv(maze=config.maze, remove=config.remove, obstacles=config.obstacles),
    )
    state = PointMazeState(jnp.array(position), jnp.array(velocity), jnp.zeros((), jnp.int32))
    _, moved = jax_env.step(jax.random.key(0), state, jnp.zeros(2))
    env.reset()
    env.data.qpos[:], env.data.qvel[:] = position, velocity
    _, reward, terminated, *_ = env.step(np.zeros(2, np.float32))
    assert (float(moved.reward), bool(moved.terminated)) == (reward, terminated)
    return reward, terminated


def test_a_goal_is_its_whole_cell_with_its_edge():
    config = PointMazeConfig()
    maze = maze_of("simple")
    assert maze.goals == ((-4, 4), (4, 4), (-4, -4), (4, -4))
    for position, goal in [
        ((3.5, 3.5), 1),
        ((3.5, 4.2), 1),
        ((3.4999, 4.2), -1),
        ((-4.0, -3.5), 2),
        ((3.5, 3.4999), -1),
    ]:
        assert goal_at(config, maze, np.array(position)) == goal
        assert goal_at(config, maze, jnp.array(position)) == goal
        assert stand(config, position) == ((100.0, True) if goal >= 0 else (0.0, False))
    many = np.array([[(4.0, 4.0), (0.0, 0.0)], [(-4.0, 4.0), (4.0, -4.0)]])
    np.testing.assert_array_equal(goal_at(config, maze, many), [[1, -1], [0, 3]])


def test_a_removed_goal_is_not_there_and_the_others_keep_their_index():
    config = PointMazeConfig(remove=(1, 0))
    assert stand(config, (4.0, 4.0)) == (0.0, False)
    assert stand(config, (4.0, -4.0)) == (100.0, True)
    np.testing.assert_array_equal(
        goal_at(config, maze_of("simple"), np.array([(4.0, 4.0), (-4.0, 4.0), (-4.0, -4.0), (4.0, -4.0)])),
        [-1, -1, 2, 3],
    )


def test_an_obstacle_is_touched_by_the_rim_of_the_ball():
    """At a side and, by the distance to the corner itself, at a corner."""
    config, free = PointMazeConfig(obstacles=True), PointMazeConfig()
    diagonal = np.array([1.0, -1.0]) / np.sqrt(2)
    for position, met in [
        (CORNER + (RADIUS - 1e-4) * diagonal, True),
        (CORNER + (RADIUS + 1e-4) * diagonal, False),
        (CORNER + np.array([0.09, -0.09]), False),  # nearer than the radius along both axes, and yet apart
        (np.array([-1.5 + RADIUS - 1e-4, 2.0]), True),
        (np.array([-1.5 + RADIUS + 1e-4, 2.0]), False),
    ]:
        assert touches_obstacle(config, maze_of("simple"), position) == met
        assert not touches_obstacle(free, maze_of("simple"), position)
    approach = -3.0 * diagonal
    assert stand(config, tuple(CORNER + 0.12 * diagonal), tuple(approach)) == (0.0, True)  # a touch within the step
    assert stand(config, tuple(CORNER + 0.17 * diagonal), tuple(approach)) == (0.0, False)
    assert stand(free, tuple(CORNER + 0.12 * diagonal), tuple(approach)) == (0.0, False)


def test_the_way_over_obstacles_is_open_in_training_only():
    push = np.array([[[-1.0, 1.0]] * 80])
    free, blocked = (in_mujoco(PointMazeConfig(obstacles=obstacles), push)[0] for obstacles in (False, True))
    assert free[free[:, 5] > 0][0, 4] == 100
    ended = blocked[blocked[:, 5] > 0][0]
    assert (ended[4], ended[6]) == (0, 1)
    assert np.abs(ended[:2]).max() < 1.5


def test_episodes_begin_alike_and_end_by_the_clock():
    env = gymnasium.make("s2ac/PointMaze-simple-v0")
    for seed in (0, 1):
        np.testing.assert_array_equal(env.reset(seed=seed)[0], np.zeros(4))
    ends = [env.step(np.zeros(2, np.float32))[2:4] for _ in range(150)]
    assert ends[-2:] == [(False, False), (False, True)]
    found = in_jax(PointMazeConfig(), jnp.zeros((1, 150, 2)))
    assert np.flatnonzero(found.truncated[0]).tolist() == [149]


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_checker_has_nothing_to_say(name):
    env = gymnasium.make(f"s2ac/PointMaze-{name}-v0", render_mode="rgb_array", obstacles=True, remove=(0,))
    check_env(env.unwrapped)


def test_the_adapter_finds_it_by_its_name():
    name = "s2ac/PointMaze-medium-v0"
    envs = HostEnvs(maker(name), name, [0], 2, 0)
    moved = envs.step(np.array([[[0.0, 1.0], [0.0, -1.0]]], np.float32))
    assert moved.next_observation[0, 0, 1] > 0 > moved.next_observation[0, 1, 1]
    envs.close()
    with pytest.raises(InvalidArgument, match="did you mean 's2ac/PointMaze-hard-v0'"):
        maker("s2ac/PointMaze-herd-v0")


def test_a_worker_needs_no_jax():
    code = "import sys, s2ac.envs.pointmaze.gymnasium as p; p.PointMazeEnv().reset(); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pictures_show_where_things_are():
    env = PointMazeEnv(render_mode="rgb_array", maze="medium", remove=(0,))
    env.reset()
    for _ in range(18):
        env.step(np.array([0.0, 1.0], np.float32))
    picture, end = env.render(), env.data.qpos
    assert picture.dtype == np.uint8
    assert picture.shape == (round(420 * 11 / 13), 420, 3)

    def pixel(x, y):
        rows, columns, _ = picture.shape
        return tuple(picture[round((5.5 - y) / 11 * (rows - 1)), round((x + 6.5) / 13 * (columns - 1))])

    assert pixel(*end) == draw.BALL
    assert pixel(end[0], end[1] / 2) == draw.PATH
    assert pixel(0.15, -0.15) == draw.START
    assert pixel(5, 4) == pixel(4.6, 3.6) == draw.GOAL
    assert pixel(-5, 4) == pixel(0, -2) == draw.WHITE
    assert pixel(-2, 3) == pixel(6.4, 0) == draw.WALL
    assert pixel(-2, 2) == draw.FREE
    boxed = PointMazeEnv(render_mode="rgb_array", obstacles=True)
    boxed.reset()
    assert tuple(boxed.render()[133, 133]) == draw.BOX


def test_the_picture_in_the_documentation_is_of_these_mazes():
    root = Path(__file__).parents[1]
    drawn = runpy.run_path(str(root / "examples" / "pointmaze_maps.py"))["draw_all"]()
    with Image.open(root / "docs" / "img" / "pointmaze.png") as picture:
        np.testing.assert_array_equal(np.asarray(picture.convert("RGB")), drawn)


@pytest.mark.parametrize("num_goals", [2, 4, 5, 8])
def test_a_goal_is_kept_as_often_as_enumeration_says(num_goals):
    removals = list(itertools.combinations(range(num_goals), num_goals // 2))
    for reached in range(num_goals + 1):
        kept = np.mean([bool(set(range(reached)) - set(removed)) for removed in removals])
        assert scores.kept_goal(reached, num_goals) == pytest.approx(kept, abs=1e-12)
    assert scores.kept_goal(0, num_goals) == 0


def test_robustness_is_over_groups_of_consecutive_episodes():
    reached = np.random.default_rng(0).integers(-1, 4, 80)
    reached[:5], reached[5:10] = -1, 2
    groups = [reached[i : i + 5] for i in range(0, 80, 5)]
    removals = list(itertools.combinations(range(4), 2))
    kept = [np.mean([bool(set(group) - {-1} - set(removed)) for removed in removals]) for group in groups]
    assert kept[:2] == [0, 0.5]
    assert scores.removal_robustness(reached, 4) == pytest.approx(np.mean(kept), abs=1e-12)
    assert scores.obstacle_robustness(reached) == np.mean([group.max() >= 0 for group in groups]) < 1
    assert scores.success_rate(reached) == np.mean([goal != -1 for goal in reached])
    assert scores.goals_reached(reached) == 4
    assert scores.goals_reached(np.array([-1, 3, 3])) == 1
    assert scores.goals_reached(np.array([-1])) == 0
    np.testing.assert_allclose(scores.goal_shares(np.array([0, 0, 3, -1]), 4), [0.5, 0, 0, 0.25, 0.25])


def test_outcomes_are_read_from_last_observations():
    last = np.zeros((3, 4))
    last[0, :2], last[1, :2] = (4, 4), (-4, 4)
    assert scores.outcomes(PointMazeConfig(remove=(0,)), last).tolist() == [1, -1, -1]


def test_a_touch_that_bounces_into_a_goal_within_a_step_is_no_success():
    """The ball ends in the goal's cell, apart from the obstacle beside it; the reward says that it touched."""
    config = PointMazeConfig("#####\n#SGo#\n#####", obstacles=True, max_steps=50)
    place, velocity = jnp.array([0.37082014, 0.5]), jnp.array([3.12690271, 0.0])
    state = PointMazeState(place, velocity, jnp.zeros((), jnp.int32))
    _, moved = make_pointmaze(config).step(jax.random.key(0), state, jnp.array([-0.78083215, -0.05313711]))
    position = np.asarray(moved.observation)[:2]
    assert moved.terminated
    assert not touches_obstacle(config, maze_of(config.maze), position)
    assert goal_at(config, maze_of(config.maze), position) == 0
    last = np.stack([moved.observation, moved.observation])
    assert scores.outcomes(config, last, np.array([moved.reward, config.goal_reward])).tolist() == [-1, 0]


def test_bad_outcomes_are_one_line():
    with pytest.raises(InvalidArgument, match="the returns must be given"):
        scores.outcomes(PointMazeConfig(obstacles=True), np.zeros((1, 4)))
    with pytest.raises(InvalidArgument, match="multiple of 5 episodes"):
        scores.obstacle_robustness(np.zeros(7, int))
    with pytest.raises(InvalidArgument, match="multiple of 5 episodes"):
        scores.removal_robustness(np.zeros(0, int), 4)
    with pytest.raises(InvalidArgument, match="no goal 4"):
        scores.removal_robustness(np.full(5, 4), 4)

"""What the PointMaze study trains and what it measures of each agent: the benchmark's scores, and the entropy of the actions.

A run is a system on a map, all its seeds in one compiled run in DIR/runs, trained by `s2ac train`'s own trainer with its own settings
(`settings/entries.py`); a run that was stopped goes on. What it measured is a record per seed.
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms import ALGORITHMS
from s2ac.envs.jax_env import repeated
from s2ac.envs.pointmaze import scores
from s2ac.envs.pointmaze.env import make_pointmaze
from s2ac.envs.pointmaze.maps import maze_of
from s2ac.envs.pointmaze.rules import PointMazeConfig
from s2ac.runs.policy import LoadedPolicy, load_policy
from s2ac.settings import names_of, resolve
from s2ac.settings.run import OF_REPLAY, RunConfig
from s2ac.studies import systems
from s2ac.studies.multigoal.scores import action_entropy
from s2ac.studies.study import Record
from s2ac.studies.systems import Job, Protocol, evaluations
from s2ac.training.evaluate import DevicePlayer, Episodes
from s2ac.training.side_by_side import SideBySide

MAPS = ("simple", "medium", "hard")
EPISODES = {"simple": 80, "medium": 80, "hard": 160}
"""Of one agent, without obstacles and again with them, as the benchmark has it."""

NAMES = ("s2ac", "s2ac-phi", "s2ac-amortized", "sac", "sac-nf", "sql", "ddpg", "ppo")
SYSTEMS = {name: systems.SYSTEMS[name] for name in NAMES}
OF_NO_ENTROPY = ("ddpg", "ppo")
"""Systems whose actions are clipped into the box: they have no density, so no entropy."""

CURVE = 20  # evaluations in the course of training, of as many episodes
STATES, ACTIONS = 32, 512  # for the entropy: visited states, and actions drawn at each
SHOWN, POINTS = 20, 60  # trajectories of one agent that are kept to be drawn, and points of each
PATHS = ("paths", "obstacle_paths")


class Scale(NamedTuple):
    """How much to run."""

    maps: tuple[str, ...] = MAPS
    systems: tuple[str, ...] = NAMES
    seeds: int = 10
    episodes: int | None = None  # if not the benchmark's
    fields: dict[str, Any] = {}  # noqa: RUF012  never changed; settings other than the entry's


SCALES = {
    "smoke": Scale(
        ("simple",), ("s2ac", "sac"), 2, 10, {"steps": 400, "warmup_steps": 200, "hidden": (8,), "num_particles": 2,
        "num_references": 2, "num_steps": 1, "batch_size": 8, "capacity": 400, "log_every": 200, "checkpoint_every": 400},
    ),
    "quick": Scale(
        ("simple",), ("s2ac", "sac"), 10, None, {"steps": 5_000, "hidden": (32, 32), "num_particles": 8,
        "num_references": 8, "num_steps": 2, "batch_size": 64, "capacity": 5_000, "checkpoint_every": 1_250},
    ),
    "paper": Scale(),
}  # fmt: skip


def job_of(system: str, maze: str, scale: Scale, seeds: range) -> Job:
    """The run of a system on a map."""
    algo, rule = SYSTEMS[system].algo, SYSTEMS[system].sample
    entry = ALGORITHMS[algo]
    known = names_of(entry.config) | names_of(RunConfig) - set(OF_REPLAY if "horizon" in entry.run else ())
    given = {name: value for name, value in scale.fields.items() if name in known}
    given |= {"seeds": len(seeds), "first_seed": seeds.start, "select": (rule,), "episodes": scale.episodes or CURVE}
    settings = resolve(f"pointmaze-{maze}", algo, given=given)
    steps = int(settings.run.steps)
    settings = settings._replace(run=dataclasses.replace(settings.run, evaluate_every=max(1, steps // CURVE)))
    protocol = Protocol("pointmaze", steps, settings.run.evaluate_every, settings.run.episodes)
    return Job(system, maze, settings.env, settings, protocol)


def judge(directory: Path, job: Job, episodes: int | None = None) -> list[Record]:
    """Play every seed's agent on its map, without obstacles and with them: a record per seed."""
    policy, maze, what = load_policy(directory), maze_of(job.task), SYSTEMS[job.system]
    side_by_side = SideBySide(jax.vmap(jax.random.key)(jnp.array(job.seeds)))
    played, reached = {}, {}
    for obstacles in (False, True):
        config = PointMazeConfig(job.task, obstacles=obstacles)
        env = repeated(make_pointmaze(config), policy.config.action_repeat)
        player = DevicePlayer(env, policy.algorithm, side_by_side)
        found = player.play(policy.states, (what.sample,), episodes or EPISODES[job.task])[what.sample]
        played[obstacles] = found
        last, total = np.asarray(found.observation)[:, :, -1], np.asarray(found.total)
        reached[obstacles] = scores.outcomes(config, last, total)
    entropy = None if job.system in OF_NO_ENTROPY else _entropies(policy, what.sample, played[False], side_by_side)
    curves = evaluations(directory)
    made_with, repeat = job.config(), policy.config.action_repeat  # steps are told in those of the environment
    records = []
    for index, seed in enumerate(job.seeds):
        goals, blocked = reached[False][index], reached[True][index]
        paths = [_paths(played[obstacles], index) for obstacles in (False, True)]
        records.append(
            {
                "map": job.task, "system": job.system, "algo": job.settings.algo, "seed": seed, "steps": policy.step * repeat,
                "rule": what.sample, "episodes": len(goals),
                "success": scores.success_rate(goals),
                "goals": scores.goals_reached(goals),
                "removal": round(scores.removal_robustness(goals, len(maze.goals)), 4),
                "obstacle": round(scores.obstacle_robustness(blocked), 4),
                "obstacle_success": scores.success_rate(blocked),
                "shares": scores.goal_shares(goals, len(maze.goals)).round(4).tolist(),
                "entropy": None if entropy is None else round(float(entropy[index]), 4),
                "curve": [[row["env_step"] * repeat, round(row["return"] / 100, 4)] for row in curves if row["seed"] == seed],
                **(dict(zip(PATHS, paths, strict=True)) if seed == 0 else {}),
                "config": made_with, "device": f"{jax.devices()[0].device_kind}, jax {jax.__version__}",
            }
        )  # fmt: skip
    return records


def _entropies(policy: LoadedPolicy, rule: str, played: Episodes, side_by_side: SideBySide) -> np.ndarray:
    """Mean entropy of each agent's action law at states that it visits: of its actions, not as it says itself."""
    algorithm, generator = policy.algorithm, np.random.default_rng(0)
    length = np.asarray(played.length)
    episode = generator.integers(0, length.shape[1], (len(length), STATES))
    time = (generator.random(episode.shape) * np.take_along_axis(length, episode, 1)).astype(int)
    visited = played.observation[np.arange(len(episode))[:, None], episode, time]

    def one(key: Any, state: Any, observation: Any) -> Any:
        return action_entropy(jax.vmap(lambda k: algorithm.act(k, state, observation, rule))(jax.random.split(key, ACTIONS)))  # fmt: skip

    def of(key: Any, each: Any) -> Any:
        return jnp.mean(jax.lax.map(lambda o: one(key, each[0], o), each[1]))

    program = jax.jit(jax.vmap(of))
    return np.concatenate(side_by_side.call(program, side_by_side.split((policy.states, visited))))


def _paths(played: Episodes, index: int) -> list[Any]:
    """Positions of the first episodes of an agent: some of them, the last one among them."""
    paths = []
    for path, length in zip(played.observation[index, :SHOWN], played.length[index], strict=False):
        times = np.unique(np.linspace(0, length, min(POINTS, length + 1)).astype(int))
        paths.append(path[times, :2].astype(np.float64).round(2).tolist())
    return paths

"""Mistakes of reinforcement-learning code that no error reports, each with what it would change.

A smoothing window that is ignored: ours is a constant of the figures, not an argument, so the test is that the constant counts.
"""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats
from gymnasium import spaces

from probes import make_counter
from s2ac.algorithms.critics import critic_loss, min_value, td_target
from s2ac.algorithms.ddpg import DdpgConfig, make_ddpg
from s2ac.algorithms.ppo import PpoConfig, make_ppo
from s2ac.algorithms.s2ac import S2acConfig, make_s2ac
from s2ac.algorithms.sac import SacConfig, box_of, make_sac
from s2ac.envs.gymnasium import HostEnvs
from s2ac.networks import critic_activations, init_critic, mlp, soft_update
from s2ac.studies import mujoco_figures
from s2ac.studies.mujoco_claims import cells
from s2ac.studies.mujoco_figures import smoothed
from s2ac.studies.mujoco_records import scores_of
from s2ac.training.device import EVALUATE, INIT, LoopConfig, init_loop, stream, train_chunk, warm_up
from s2ac.training.host import HostLoop
from s2ac.types import EnvSpec, Transition

RELU = critic_activations("relu", None)


class Awkward(gymnasium.Env):
    """Reuses one float64 array for its observations, gives int rewards, and ends by itself on the clock's last step."""

    action_space = spaces.Box(np.array([-1.0, 0.0]), np.array([3.0, 0.5]), dtype=np.float64)
    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float64)

    def __init__(self):
        self.seen, self.array = [], np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.array[:] = self.np_random.uniform(1, 2), 0
        return self.array, {}

    def step(self, action):
        self.seen.append(action.copy())
        self.array[1] += 1
        last = bool(self.array[1] >= 4)
        return self.array, 7, last, last, {}


def awkward_loop(make_algorithm, **config):
    config = {"num_envs": 2, "batch_size": 8, "capacity": 2000, "warmup_steps": 1200, **config}
    return HostLoop(Awkward, "Awkward", make_algorithm, [0], LoopConfig(**config))


def test_rows_are_copies_of_the_right_type_and_an_end_on_the_last_step_is_an_end():
    """Buffer of references; lossy casts; termination at the time limit stored as truncation; warm-up not uniform."""
    loop = awkward_loop(lambda spec: make_sac(spec, SacConfig(hidden=(4,))))
    loop.warm_up()
    rows = jax.tree.map(lambda field: np.asarray(field[0, :1200]), loop.state.replay.data)
    np.testing.assert_array_equal(rows.next_observation[:, 1], rows.observation[:, 1] + 1)
    np.testing.assert_array_equal(rows.reward, 7)
    assert all(field.dtype == np.float32 for field in rows)
    np.testing.assert_array_equal(rows.terminated, rows.next_observation[:, 1] == 4)
    assert rows.terminated.sum() == 300
    np.testing.assert_array_equal(rows.truncated, 0)
    for d in range(2):
        low, high = loop.spec.action_low[d], loop.spec.action_high[d]
        assert scipy.stats.kstest(rows.action[:, d], scipy.stats.uniform(low, high - low).cdf).pvalue > 2e-5


def test_ppo_stores_the_action_as_drawn_and_sends_it_clipped():
    """A clipped action stored would not belong to the density that its ratio is computed with."""
    loop = awkward_loop(lambda spec: make_ppo(spec, PpoConfig(hidden=(4,))))
    stored = np.concatenate([loop._env_step("sample")[0].action[0] for _ in range(30)])
    low, high = np.array(loop.spec.action_low), np.array(loop.spec.action_high)
    assert ((stored < low) | (stored > high)).any()
    sent = np.stack([env.seen for env in loop.envs.envs[0]], axis=1).reshape(-1, 2)
    np.testing.assert_allclose(sent, np.clip(stored, low, high), rtol=1e-6)


def test_no_two_environments_share_their_random_numbers():
    """Seeds seed + i overlap: environment 1 of run 0 would be environment 0 of run 1, and evaluation's would be training's."""
    first = np.concatenate([HostEnvs(Awkward, "", list(range(5)), 4, purpose).observation for purpose in (0, 1)])
    assert len(np.unique(first[..., 0])) == 40


def test_no_key_is_used_twice():
    """The same noise for acting, stepping and learning, or at every step."""
    index = jnp.arange(200)
    keys = [jax.vmap(lambda i, w=which, s=seed: stream(jax.random.key(s), w, i))(index)
            for which in range(INIT, EVALUATE + 1) for seed in range(3)]  # fmt: skip
    data = np.concatenate([np.asarray(jax.random.key_data(some)) for some in keys])
    assert len(np.unique(data, axis=0)) == len(data) == 200 * 6 * 3


@pytest.mark.parametrize("make", [
    lambda spec: make_sac(spec, SacConfig(hidden=(4,))),
    lambda spec: make_s2ac(spec, S2acConfig(hidden=(4,), num_particles=3, num_steps=2)),
], ids=["sac", "s2ac"])  # fmt: skip
def test_no_random_number_is_drawn_twice_in_fifty_updates(make, monkeypatch):
    """The same noise for actor and critic, for acting and learning, or at every step: every key that draws is recorded."""
    used = []

    def recorded(name, draw):
        def wrapper(key, *arguments, **keywords):
            jax.debug.callback(lambda data: used.append((name, *np.asarray(data).tolist())), jax.random.key_data(key))
            return draw(key, *arguments, **keywords)

        return wrapper

    draws = ("normal", "uniform", "randint", "categorical", "rademacher", "truncated_normal", "permutation")
    for name in draws:
        monkeypatch.setattr(jax.random, name, recorded(name, getattr(jax.random, name)))
    env, config = make_counter(), LoopConfig(num_envs=2, batch_size=4, capacity=200, warmup_steps=10)
    algorithm = make(env.spec)

    @jax.jit
    def trained(key):
        loop = warm_up(key, init_loop(key, algorithm, env, config), algorithm, env, config)
        return train_chunk(key, loop, algorithm, env, config, 50)[0].iteration

    trained(jax.random.key(0)).block_until_ready()
    jax.effects_barrier()
    assert sum(name == "randint" for name, *_ in used) >= 50  # the batches
    assert sum(name == "normal" for name, *_ in used) >= 4 * 50  # acting in two environments, the target, the actor
    keys = [tuple(data) for _, *data in used]
    assert len(set(keys)) == len(keys)


def test_the_headline_is_every_seed_at_the_end_of_training():
    """The best evaluation, or the best seed, would report luck: one seed peaks at 900 early, one never learns."""
    curves = {
        "0": [[step, 900.0 if step == 3 else 100.0] for step in range(1, 21)],
        "1": [[step, -50.0] for step in range(1, 21)],
        "2": [[step, float(step)] for step in range(1, 21)],
    }
    record = {
        "system": "sac", "task": "Hopper", "env": "Hopper-v5", "seeds": [0, 1, 2], "failures": {},
        "reached": dict.fromkeys("012", 20), "protocol": {"steps": 20}, "evaluations": {"sample": curves},
    }  # fmt: skip
    assert scores_of(record, "sample").final.tolist() == [100.0, -50.0, 19.5]
    row = next(row for row in cells([record], "sample") if row["state"] == "whole")
    np.testing.assert_allclose(row["final"]["value"], np.mean([100.0, -50.0, 19.5]))


def test_the_smoothing_window_counts(monkeypatch):
    """Released code overwrites it with 5. A parabola through three points is the curve itself; through eleven it is not."""
    curve = np.random.default_rng(0).normal(size=40)
    assert not np.allclose(smoothed(curve), curve, atol=0.1)
    monkeypatch.setattr(mujoco_figures, "WINDOW", 3)
    np.testing.assert_allclose(smoothed(curve), curve, atol=1e-9)


def test_logged_return_is_that_of_whole_episodes_and_steps_are_counted_per_environment():
    """Reward 1 for 3 steps: the return is 3, whatever the number of environments and wherever a chunk is cut."""
    env, config = make_counter(length=3), LoopConfig(num_envs=4, batch_size=4, capacity=100, warmup_steps=0)
    algorithm = make_sac(env.spec, SacConfig(hidden=(4,)))
    key = jax.random.key(0)
    chunk = jax.jit(lambda loop: train_chunk(key, loop, algorithm, env, config, 5))
    loop = jax.jit(lambda: init_loop(key, algorithm, env, config))()
    ended = 0
    for _ in range(3):
        loop, metrics = chunk(loop)
        assert metrics["return"] == 3
        ended += int(metrics["episodes"])
    assert int(loop.replay.added) == 4 * 15
    assert ended == 4 * 5


def test_the_critic_follows_its_own_loss_alone_and_the_target_follows_the_critic():
    """An actor's gradient in the critic, a gradient through the target, or a target that shares memory or runs ahead."""
    spec = EnvSpec(3, (-1.0, 0.0), (3.0, 0.5))
    algorithm = make_ddpg(spec, DdpgConfig(hidden=(8,), discount=0.5, target_rate=0.25))
    state = jax.jit(algorithm.init)(jax.random.key(0))
    generator = np.random.default_rng(0)
    observation, following = (jnp.asarray(generator.normal(size=(8, 3)), jnp.float32) for _ in range(2))
    action = jnp.asarray(generator.uniform(0, 0.5, (8, 2)), jnp.float32)
    reward = jnp.asarray(generator.normal(size=8), jnp.float32)
    batch = Transition(observation, action, reward, jnp.arange(8.0) % 2, jnp.zeros(8), following)

    @jax.jit
    def by_hand(state):
        actions = jax.vmap(lambda o: box_of(spec).squash(mlp(state.target_actor, o, "relu")))(following)
        values = jax.vmap(lambda o, a: min_value(state.target, o, RELU)(a))(following, actions)
        target = td_target(reward, batch.terminated, 0.5, values)
        gradient = jax.grad(lambda critic: critic_loss(critic, batch, target, RELU)[0])(state.critic)
        optimiser = optax.adam(3e-4)
        return optax.apply_updates(state.critic, optimiser.update(gradient, optimiser.init(state.critic))[0])

    expected = by_hand(state)
    after, _ = jax.jit(algorithm.update)(jax.random.key(1), state, batch)
    for new, wanted, target, old in zip(
        *map(jax.tree.leaves, (after.critic, expected, after.target, state.critic)), strict=True
    ):
        np.testing.assert_allclose(new, wanted, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(target, old + 0.25 * (new - old), rtol=1e-5, atol=1e-7)


def test_both_critics_learn_and_a_rate_of_one_copies():
    critic = jax.vmap(lambda k: init_critic(k, 3, 2, (4,)))(jax.random.split(jax.random.key(0), 2))
    ones = Transition(jnp.ones((2, 3)), jnp.ones((2, 2)), jnp.ones(2), jnp.ones(2), jnp.ones(2), jnp.ones((2, 3)))
    gradient = jax.grad(lambda c: critic_loss(c, ones, jnp.array([5.0, 5.0]), critic_activations("silu", None))[0])(
        critic
    )
    for leaf in jax.tree.leaves(gradient):
        assert (jnp.abs(leaf).reshape(2, -1).max(axis=1) > 0).all()
    moved = jax.tree.map(lambda leaf: leaf + 1, critic)
    for left, right in zip(jax.tree.leaves(soft_update(critic, moved, 1.0)), jax.tree.leaves(moved), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)


def rollout_of(key, steps, envs):
    shape = (steps, envs)
    rows = jax.random.normal(key, (*shape, 4))
    return Transition(
        rows[..., :2], rows[..., 2:3], jax.random.normal(key, shape), jnp.zeros(shape), jnp.zeros(shape), rows[..., 2:]
    )


@pytest.mark.parametrize("normalize", [False, True])
def test_ppo_starts_at_ratio_one_and_uses_each_row_once(normalize):
    """With a learning rate that changes nothing the minibatches' losses must average to the whole rollout's."""
    spec, key = EnvSpec(2, (-1.0,), (1.0,)), jax.random.key(3)
    rollout = rollout_of(key, 8, 2)
    found = {}
    for parts in (1, 4):
        config = PpoConfig(hidden=(8,), learning_rate=1e-12, num_epochs=1, num_minibatches=parts, normalize=normalize)
        algorithm = make_ppo(spec, config)
        found[parts] = jax.jit(algorithm.update)(key, algorithm.init(key), rollout)[1]
    np.testing.assert_allclose(found[1]["policy_loss"], 0, atol=1e-6)  # −mean of normalised advantages
    np.testing.assert_allclose(found[4]["value_loss"], found[1]["value_loss"], rtol=1e-5)


def test_the_temperature_follows_the_entropy_alone():
    """Adam's first moment after one update is a tenth of the gradient: entropy minus its target, nothing of the actor's loss."""
    spec, key = EnvSpec(2, (-1.0,), (1.0,)), jax.random.key(4)
    algorithm = make_sac(spec, SacConfig(hidden=(8,), learn_alpha=True, target_entropy=-0.7))
    rows = jax.tree.map(lambda field: field[:, 0], rollout_of(key, 16, 1))
    state, metrics = jax.jit(algorithm.update)(key, algorithm.init(key), rows)
    np.testing.assert_allclose(state.alpha_memory[0].mu, 0.1 * (metrics["entropy"] + 0.7), rtol=1e-5)

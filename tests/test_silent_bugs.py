"""Mistakes of reinforcement-learning code that no error reports, each with what it would change.

A smoothing window that is ignored: ours is a constant of the figures, not an argument, so the test is that the constant counts.
"""

from dataclasses import replace

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
from s2ac.algorithms.ppo import PpoConfig, make_ppo, policy_of
from s2ac.algorithms.protocol import Algorithm
from s2ac.algorithms.s2ac import make_s2ac
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.algorithms.sac_nf import SacNfConfig, make_sac_nf
from s2ac.algorithms.sql import SqlConfig, make_sql
from s2ac.algorithms.start import box_of, make_start_policy
from s2ac.envs.gymnasium.adapter import HostEnvs
from s2ac.envs.jax_env import JaxEnv, TimeStep
from s2ac.nets.critic import critic_activations, init_critic, soft_update
from s2ac.nets.mlp import mlp
from s2ac.samplers.protocol import random_signs
from s2ac.studies.mujoco import figures as mujoco_figures
from s2ac.studies.mujoco.claims import cells
from s2ac.studies.mujoco.figures import smoothed
from s2ac.studies.mujoco.records import scores_of
from s2ac.training.device import env_steps, init_loop, train_chunk, warm_up
from s2ac.training.evaluate import evaluate
from s2ac.training.host import HostLoop
from s2ac.training.loop import EVALUATE, INIT, LoopConfig, stream
from s2ac.types import EnvSpec, Transition

RELU = critic_activations("relu", None)
SPEC = EnvSpec(3, (-1.0, 0.0), (3.0, 0.5))


def batch_of(num):
    """Transitions of `SPEC`, every other one terminated, and of the rest every other one truncated."""
    generator = np.random.default_rng(0)
    observation, following = (jnp.asarray(generator.normal(size=(num, 3)), jnp.float32) for _ in range(2))
    action = jnp.asarray(generator.uniform(0, 0.5, (num, 2)), jnp.float32)
    reward = jnp.asarray(generator.normal(size=num), jnp.float32)
    return Transition(observation, action, reward, jnp.arange(num) % 2.0, 1.0 * (jnp.arange(num) % 4 == 0), following)


def with_old_targets(state):
    """As after many updates: targets are not what they follow."""
    shifted = lambda tree: jax.tree.map(lambda leaf: leaf + 0.1, tree)  # noqa: E731
    return state._replace(**{name: shifted(getattr(state, name)) for name in state._fields if "target" in name})


def moved(old, new, rate=0.25):
    return jax.tree.map(lambda old, new: old + rate * (new - old), old, new)


def assert_close(left, right):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


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
    rows, returns, ended = zip(*(loop._env_step("sample") for _ in range(30)), strict=True)
    stored = np.concatenate([row.action[0] for row in rows])
    assert (sum(ended), sum(returns)) == (14, 14 * 28)  # episodes of four steps, each begun at 0
    low, high = np.array(loop.spec.action_low), np.array(loop.spec.action_high)
    assert ((stored < low) | (stored > high)).any()
    sent = np.stack([env.seen for env in loop.envs.envs[0]], axis=1).reshape(-1, 2)
    np.testing.assert_allclose(sent, np.clip(stored, low, high), rtol=1e-6)


def test_an_environment_in_jax_is_sent_clipped_actions_too():
    """Of training, of a warm-up over the whole box, and of evaluation; what is stored is what was drawn."""

    def step(key, state, action):
        return action, TimeStep(action, jnp.zeros(()), jnp.zeros((), bool), jnp.zeros((), bool))

    spec = EnvSpec(2, (-1.0, 0.0), (3.0, 0.5))
    low, high = (np.array(bound) for bound in (spec.action_low, spec.action_high))
    env = JaxEnv(spec, lambda key: (jnp.zeros(2), jnp.zeros(2)), step, 20)
    algorithm, key = make_ppo(spec, PpoConfig(hidden=(4,))), jax.random.key(0)
    loop = init_loop(key, algorithm, env, LoopConfig(num_envs=200, capacity=1))
    drawn = jax.tree.map(np.asarray, env_steps(key, loop, algorithm, env, uniform=False)[1][0])
    assert ((drawn.action < low) | (drawn.action > high)).any()
    np.testing.assert_array_equal(drawn.next_observation, np.clip(drawn.action, low, high))
    uniform = env_steps(key, loop, algorithm, env, uniform=True)[1][0].next_observation
    np.testing.assert_allclose(uniform.min(axis=0), low, atol=0.1)
    np.testing.assert_allclose(uniform.max(axis=0), high, atol=0.1)
    seen = evaluate(key, loop.algorithm, algorithm, env, "sample", 5).observation
    assert seen.min(axis=(0, 1)).tolist() == low.tolist()
    assert seen.max(axis=(0, 1)).tolist() == high.tolist()


@pytest.mark.parametrize(("make", "share"), [(lambda spec: make_ddpg(spec, DdpgConfig(hidden=(4,))), 0.1),
                                             (lambda spec: make_ppo(spec, PpoConfig(hidden=(4,))), 1.0)])  # fmt: skip
def test_noise_is_in_the_units_of_the_box(make, share):
    algorithm = make(SPEC)
    state = jax.tree.map(jnp.zeros_like, algorithm.init(jax.random.key(0)))
    keys = jax.random.split(jax.random.key(1), 2000)
    actions = jax.vmap(lambda k: algorithm.act(k, state, jnp.zeros(3), "sample"))(keys)
    np.testing.assert_allclose(actions.mean(axis=0), [1.0, 0.25], atol=0.15 * share)
    np.testing.assert_allclose(actions.std(axis=0), [2.0 * share, 0.25 * share], rtol=0.07)


def test_a_rollout_of_several_environments_is_one_of_time_first():
    """Where an episode goes on, the next row begins where this one ended."""

    def update(key, state, rollout):
        goes_on = 1 - jnp.maximum(rollout.terminated, rollout.truncated)[:-1, :, None]
        jumps = goes_on * (rollout.observation[1:] - rollout.next_observation[:-1])
        return state, {"jump": jnp.abs(jumps).max(), "rows": jnp.asarray(jumps.shape[0], jnp.float32)}

    act = lambda key, state, observation, rule: jnp.zeros(2)  # noqa: E731
    algorithm = Algorithm(lambda key: jnp.zeros(()), act, update, "rollout", ("sample",))
    metrics = awkward_loop(lambda spec: algorithm, horizon=6, num_envs=3).advance(2)
    assert (metrics["jump"], metrics["rows"]) == (0, 5)


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


def recorded(used, name, draw):
    def wrapper(key, *arguments, **keywords):
        jax.debug.callback(lambda data: used.append((name, *np.asarray(data).tolist())), jax.random.key_data(key))
        return draw(key, *arguments, **keywords)

    return wrapper


@pytest.fixture
def used(monkeypatch):
    """(what is drawn, key) of every draw, also of compiled ones."""
    used = []
    draws = ("normal", "uniform", "randint", "categorical", "bits", "truncated_normal", "permutation")
    for name in draws:
        monkeypatch.setattr(jax.random, name, recorded(used, name, getattr(jax.random, name)))
    random_signs.clear_cache()  # traced without the record, and after the test with it
    yield used
    random_signs.clear_cache()


@pytest.mark.parametrize(("make", "signs"), [
    (lambda spec: make_sac(spec, SacConfig(hidden=(4,))), False),
    (lambda spec: make_s2ac(spec, S2acConfig(hidden=(4,), form="all", num_references=0, num_particles=3, num_steps=2)), True),
], ids=["sac", "s2ac"])  # fmt: skip
def test_no_random_number_is_drawn_twice_in_fifty_updates(make, signs, used):
    """The same noise for actor and critic, for acting and learning, or at every step: every key that draws is recorded."""
    env, config = make_counter(), LoopConfig(num_envs=2, batch_size=4, capacity=200, warmup_steps=10)
    algorithm = make(env.spec)

    @jax.jit
    def trained(key):
        loop = warm_up(key, init_loop(key, algorithm, env, config), algorithm, env, config)
        return train_chunk(key, loop, algorithm, env, config, 50)[0].iteration

    trained(jax.random.key(0)).block_until_ready()
    jax.effects_barrier()
    assert sum(name == "randint" for name, *_ in used) >= 50  # the batches
    assert sum(name == "bits" for name, *_ in used) >= (50 if signs else 0)  # the curvature's probes
    assert sum(name == "normal" for name, *_ in used) >= 4 * 50  # acting in two environments, the target, the actor
    keys = [tuple(data) for _, *data in used]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("make", [
    lambda spec: make_sac_nf(spec, SacNfConfig(hidden=(4, 4), flow="coupling")),
    lambda spec: make_sql(spec, SqlConfig(hidden=(4, 4), num_particles=3, num_value_samples=2)),
    lambda spec: make_s2ac(spec, S2acConfig(hidden=(4, 4), frequency=1.0, num_particles=3, num_references=2, num_steps=2, weighted=True, start_alpha=1.0, explore_alpha=0.5)),
], ids=["sac-nf", "sql", "s2ac-weighted"])  # fmt: skip
def test_neither_the_first_parameters_nor_an_update_nor_an_action_draw_a_number_twice(make, used, monkeypatch):
    """A network's key, split for its layers, and `fold_in` of the same key are the same keys: two layers started as one."""
    algorithm = make(SPEC)

    @jax.jit
    def once(key):
        key_init, key_update, key_act = jax.random.split(key, 3)
        state, _ = algorithm.update(key_update, algorithm.init(key_init), batch_of(8))
        return algorithm.act(key_act, state, jnp.zeros(SPEC.observation_size), algorithm.explore)

    monkeypatch.setattr(jax.random, "split", recorded(used, "split", jax.random.split))  # nor is a key split twice
    once(jax.random.key(0)).block_until_ready()
    jax.effects_barrier()
    keys = [tuple(data) for _, *data in used]
    assert len(keys) >= 12
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
    algorithm = make_ddpg(SPEC, DdpgConfig(hidden=(8,), discount=0.5, target_rate=0.25))
    state = with_old_targets(jax.jit(algorithm.init)(jax.random.key(0)))
    batch = batch_of(8)
    following = batch.next_observation

    @jax.jit
    def by_hand(state):
        actions = jax.vmap(lambda o: box_of(SPEC).squash(mlp(state.target_actor, o, "relu")))(following)
        values = jax.vmap(lambda o, a: min_value(state.target, o, RELU)(a))(following, actions)
        target = td_target(batch.reward, batch.terminated, 0.5, values)
        gradient, told = jax.grad(lambda critic: critic_loss(critic, batch, target, RELU), has_aux=True)(state.critic)
        optimiser = optax.adam(3e-4)
        updates, _ = optimiser.update(gradient, optimiser.init(state.critic))
        return optax.apply_updates(state.critic, updates), told["critic_loss"]

    expected, loss = by_hand(state)
    after, metrics = jax.jit(algorithm.update)(jax.random.key(1), state, batch)
    np.testing.assert_allclose(metrics["critic_loss"], loss, rtol=1e-5)  # Adam's first step knows signs only
    assert_close(after.critic, expected)
    assert_close(after.target, moved(state.target, after.critic))
    assert_close(after.target_actor, moved(state.target_actor, after.actor))


def test_an_update_of_sac_by_hand():
    """The target network judges, by its minimum less α log π of a fresh action; and it follows."""
    config = SacConfig(hidden=(8,), discount=0.5, target_rate=0.25, alpha=0.3)
    algorithm, actor = make_sac(SPEC, config), make_start_policy(SPEC, config)
    state, batch, key = with_old_targets(jax.jit(algorithm.init)(jax.random.key(0))), batch_of(8), jax.random.key(1)

    @jax.jit
    def by_hand(state):
        def value(key, observation):
            drawn = actor.draw(key, state.actor, observation, None, jnp.array(0.3))
            return min_value(state.target, observation, RELU)(drawn.action[0]) - 0.3 * drawn.log_prob[0]

        values = jax.vmap(value)(jax.random.split(jax.random.split(key, 3)[0], 8), batch.next_observation)
        target = td_target(batch.reward, batch.terminated, 0.5, values)
        return critic_loss(state.critic, batch, target, RELU)[1]["critic_loss"]

    after, metrics = jax.jit(algorithm.update)(key, state, batch)
    np.testing.assert_allclose(metrics["critic_loss"], by_hand(state), rtol=1e-5)
    assert_close(after.target, moved(state.target, after.critic))


def test_an_update_of_sql_by_hand():
    """α log of the mean over uniform actions of the whole box, times its volume, by the target network; and it follows."""
    config = SqlConfig(hidden=(8,), discount=0.5, target_rate=0.25, alpha=0.3, num_value_samples=4, num_particles=2)
    algorithm = make_sql(SPEC, config)
    state, batch, key = with_old_targets(jax.jit(algorithm.init)(jax.random.key(0))), batch_of(8), jax.random.key(1)

    @jax.jit
    def by_hand(state):
        def value(key, observation):
            unit = jax.random.uniform(key, (4, 2))
            actions = jnp.array([[-1.0, 0.0]]) + unit * jnp.array([[4.0, 0.5]])
            values = jax.vmap(min_value(state.target, observation, RELU))(actions)
            return 0.3 * jnp.log(jnp.mean(jnp.exp(values / 0.3)) * 4.0 * 0.5)

        values = jax.vmap(value)(jax.random.split(jax.random.split(key)[0], 8), batch.next_observation)
        target = td_target(batch.reward, batch.terminated, 0.5, values)
        return critic_loss(state.critic, batch, target, RELU)[1]["critic_loss"]

    after, metrics = jax.jit(algorithm.update)(key, state, batch)
    np.testing.assert_allclose(metrics["critic_loss"], by_hand(state), rtol=1e-5)
    assert_close(after.target, moved(state.target, after.critic))


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
    terminated, truncated = (1.0 * (jnp.arange(steps * envs).reshape(shape) % by == 0) for by in (5, 7))
    return Transition(
        rows[..., :2], rows[..., 2:3], jax.random.normal(key, shape), terminated, truncated, rows[..., 2:]
    )


def advantages_by_hand(critic, config, rollout):
    """`[T, N]`, a loop over time."""
    value = jax.vmap(jax.vmap(lambda o: mlp(critic, o, config.activation)[0]))
    values, following = (np.asarray(value(o)) for o in (rollout.observation, rollout.next_observation))
    reward, terminated, truncated = map(np.asarray, (rollout.reward, rollout.terminated, rollout.truncated))
    goes_on = 1 - np.maximum(terminated, truncated)
    if config.normalize:  # by the deviation of the rewards' discounted sums, this rollout's included
        sums, total = [], 0.0
        for now, on in zip(reward, goes_on, strict=True):
            sums.append(now + config.discount * total)
            total = sums[-1] * on
        reward = reward / np.std(sums)
    found, later = np.zeros_like(values), 0.0
    for t in reversed(range(len(reward))):
        error = reward[t] + config.discount * (1 - terminated[t]) * following[t] - values[t]
        found[t] = later = error + config.discount * config.trace * goes_on[t] * later
    return found


@pytest.mark.parametrize("normalize", [False, True])
def test_ppo_starts_at_ratio_one_and_uses_each_row_once(normalize):
    """With a learning rate that changes nothing the minibatches' losses must average to the whole rollout's, which the values miss by
    their advantages: along each environment, cut where an episode ends, bootstrapped unless it terminated."""
    spec, key = EnvSpec(2, (-1.0,), (1.0,)), jax.random.key(3)
    rollout = rollout_of(key, 8, 3)
    found = {}
    for parts in (1, 4):
        config = PpoConfig(hidden=(8,), learning_rate=1e-12, num_epochs=1, num_minibatches=parts, normalize=normalize)
        algorithm = make_ppo(spec, config)
        found[parts] = jax.jit(algorithm.update)(key, algorithm.init(key), rollout)[1]
    np.testing.assert_allclose(found[1]["policy_loss"], 0, atol=1e-6)  # −mean of normalised advantages
    np.testing.assert_allclose(found[4]["value_loss"], found[1]["value_loss"], rtol=1e-5)

    expected = advantages_by_hand(algorithm.init(key).params[2], config, rollout)
    np.testing.assert_allclose(found[1]["value_loss"], np.mean(expected**2), rtol=1e-4)


def test_ppo_holds_on_to_the_policy_that_acted_and_widens_for_entropy():
    """In the second epoch the ratio is to the density before the first, and clipped; the bonus raises the standard deviation."""
    spec, key = EnvSpec(2, (-1.0,), (1.0,)), jax.random.key(3)
    rollout = rollout_of(key, 8, 3)
    config = PpoConfig(hidden=(8,), learning_rate=0.1, num_epochs=1, num_minibatches=1, entropy_weight=10.0)
    found = {}
    for epochs in (1, 2):
        algorithm = make_ppo(spec, replace(config, num_epochs=epochs))
        state = algorithm.init(key)
        found[epochs] = jax.jit(algorithm.update)(key, state, rollout)
    after = found[1][0].params
    assert (after[1] > 0.05).all()
    rows = jax.tree.map(lambda field: field.reshape((-1, *field.shape[2:])), rollout)

    def log_density(params):
        law = lambda o: policy_of(params, o, box_of(spec), config.activation)  # noqa: E731
        return jax.vmap(lambda o, a: law(o).log_density(a))(rows.observation, rows.action)

    advantage = advantages_by_hand(state.params[2], config, rollout).reshape(-1)
    even = jnp.asarray((advantage - advantage.mean()) / advantage.std())
    ratio = jnp.exp(log_density(after) - log_density(state.params))
    second = -jnp.mean(jnp.minimum(ratio * even, jnp.clip(ratio, 1 - config.clip, 1 + config.clip) * even))
    assert abs(ratio - 1).max() > 2 * config.clip
    np.testing.assert_allclose(found[2][1]["policy_loss"], second / 2, rtol=1e-3, atol=1e-5)


def test_the_temperature_follows_the_entropy_alone():
    """Adam's first moment after one update is a tenth of the gradient: entropy minus its target, nothing of the actor's loss."""
    spec, key = EnvSpec(2, (-1.0,), (1.0,)), jax.random.key(4)
    algorithm = make_sac(spec, SacConfig(hidden=(8,), learn_alpha=True))
    rows = jax.tree.map(lambda field: field[:, 0], rollout_of(key, 16, 1))
    state, metrics = jax.jit(algorithm.update)(key, algorithm.init(key), rows)
    np.testing.assert_allclose(
        state.alpha_memory[0].mu, 0.1 * (metrics["entropy"] + 1), rtol=1e-5
    )  # minus the one dimension

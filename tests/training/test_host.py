"""The loop for Gymnasium environments: rows, actions as sent and as stored."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from awkward import Awkward, awkward_loop
from s2ac.algorithms.ppo import PpoConfig, make_ppo
from s2ac.algorithms.protocol import Algorithm
from s2ac.algorithms.sac import SacConfig, make_sac


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


def test_no_two_draws_of_noise_are_the_same():
    """Of environments side by side, of steps one after the other, of an evaluation beside training: at equal observations, by an
    algorithm that acts by its key alone, no action is seen twice."""
    sent = []

    class Recording(Awkward):
        def step(self, action):
            sent.append(tuple(action))
            return super().step(action)

    act = lambda key, state, observation, rule: jax.random.uniform(key, (2,))  # noqa: E731
    update = lambda key, state, rollout: (state, {"seen": jnp.mean(rollout.reward)})  # noqa: E731
    algorithm = Algorithm(lambda key: jnp.zeros(()), act, update, "rollout", ("sample",))
    loop = awkward_loop(lambda spec: algorithm, Recording, num_envs=3, horizon=4)
    assert loop.advance(2)["seen"] == 7  # the mean over rounds, and not their sum
    loop.play(("sample",), 3)
    assert len(sent) == 3 * 8 + 3 * 4
    assert len(set(sent)) == len(sent)

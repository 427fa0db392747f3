"""The replay: which rows it keeps, and that only those are sampled, whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac import replay as buffer
from s2ac.types import EnvSpec, Transition

SPEC = EnvSpec(2, (-1.0,), (1.0,))


def rows(values):
    """Every field tells which row it is of."""
    values = jnp.asarray(values, jnp.float32)
    pair = jnp.stack([values, -values], axis=1)
    return Transition(pair, 2 * values[:, None], 3 * values, 4 * values, 5 * values, 6 * pair)


def filled(capacity, *parts):
    """A buffer whose unwritten places hold a number that no row has, and what was added to it."""
    empty = buffer.init_replay(SPEC, capacity)
    replay = empty._replace(data=jax.tree.map(lambda field: field - 99, empty.data))
    for part in parts:
        replay = buffer.add(replay, rows(part))
    return replay


def test_only_written_rows_are_sampled_evenly_and_whole():
    for replay, kept in ((filled(7, [1, 2, 3]), [1, 2, 3]), (filled(4, [1, 2, 3], [4, 5, 6]), [3, 4, 5, 6])):
        drawn = buffer.sample(jax.random.key(1), replay, 6000)
        values = np.asarray(drawn.reward) / 3
        jax.tree.map(np.testing.assert_array_equal, drawn, rows(values))
        numbers, counts = np.unique(values, return_counts=True)
        assert numbers.tolist() == kept
        wanted = 6000 / len(kept)
        assert ((counts - wanted) ** 2 / wanted).sum() < 25  # chi-square; p = 2e-5 for four rows


def test_the_last_rows_are_kept_each_in_its_place():
    """Row i is in place i % capacity, also when more rows come at once than there are places."""
    replay = filled(7, [0, 1, 2], *([i, i + 1, i + 2, i + 3] for i in range(3, 23, 4)))
    assert (np.asarray(replay.data.reward) / 3).tolist() == [21, 22, 16, 17, 18, 19, 20]
    replay = buffer.add(replay, rows(range(23, 40)))
    assert (np.asarray(replay.data.reward) / 3).tolist() == [35, 36, 37, 38, 39, 33, 34]
    assert (int(replay.added), int(buffer.size(replay))) == (40, 7)


def test_rows_of_several_seeds_are_fetched_by_their_place():
    several = jax.tree.map(
        lambda one, other: jnp.stack([one, other]), filled(5, [1, 2, 3]).data, filled(5, [7, 8, 9]).data
    )
    fetched = buffer.fetch(several, np.array([2, 0]))
    assert (fetched["reward"] / 3).tolist() == [[3, 1], [9, 7]]
    assert fetched["observation"].tolist() == [[[3, -3], [1, -1]], [[9, -9], [7, -7]]]


def test_rewards_are_scaled_by_the_spread_of_the_returns_of_each_environment():
    """Against numpy, over two environments and seven steps in which episodes terminate; truncation ends no return; added in one part or three, and drawn scaled."""
    generator = np.random.default_rng(0)
    reward, ended = generator.normal(2, 3, (7, 2)).astype(np.float32), np.zeros((7, 2), np.float32)
    ended[[2, 3], [0, 1]] = 1
    running, seen = np.zeros(2), []
    for step in range(7):
        running = 0.9 * running + reward[step]
        seen.append(running.copy())
        running *= 1 - ended[step]
    wanted = max(np.sqrt(np.var(seen) + 1e-8), np.abs(seen).max() / 5)

    flat = lambda field: jnp.asarray(field).reshape(-1)  # noqa: E731
    made = rows(np.arange(14.0))._replace(reward=flat(reward), terminated=flat(ended), truncated=jnp.ones(14))
    whole = buffer.add(buffer.init_replay(SPEC, 20, buffer.init_scale(2, 0.9)), made)
    parts = buffer.init_replay(SPEC, 20, buffer.init_scale(2, 0.9))
    for part in (slice(0, 2), slice(2, 10), slice(10, 14)):
        parts = buffer.add(parts, jax.tree.map(lambda field, p=part: field[p], made))
    for replay in (whole, parts):
        np.testing.assert_allclose(buffer.divisor(replay.scale), wanted, rtol=1e-5)
    np.testing.assert_allclose(whole.scale.running, running, rtol=1e-5)
    drawn = buffer.sample(jax.random.key(0), whole, 50)
    which = (np.asarray(drawn.observation[:, 0])).astype(int)
    np.testing.assert_allclose(drawn.reward, reward.ravel()[which] / wanted, rtol=1e-5)
    np.testing.assert_array_equal(whole.data.reward[:14], reward.ravel())


@pytest.mark.parametrize(("reward", "wanted"), [(0.0, 1e-4), (3.0, 0.6 * 1.75), (1e6, 2e5 * 1.75)])
def test_rewards_without_variance_and_large_ones_have_a_scale(reward, wanted):
    """γ = 0.5, three steps of one environment: G is 1, 1.5, 1.75 times the reward."""
    scale = buffer.init_scale(1, 0.5)
    for _ in range(3):
        scale = buffer.seen_rewards(scale, jnp.full(1, reward), jnp.zeros(1))
    np.testing.assert_allclose(buffer.divisor(scale), wanted, rtol=1e-5)


def test_the_variance_stays_right_after_however_many_rewards():
    """G of variance 4 follow a state that counted 2^24, as far as 32 bits count: two million of them leave its variance at 4, or lead there."""
    returns = jnp.array([1.0, -1.0, 7**0.5, -(7**0.5)])
    many = buffer.init_scale(1, 0.0)._replace(number=jnp.float32(2.0**24))

    @jax.jit
    def after(variance):
        turn = lambda scale, index: (buffer.seen_rewards(scale, returns[index % 4][None], jnp.zeros(1)), None)  # noqa: E731
        return jax.lax.scan(turn, many._replace(squares=variance * many.number), jnp.arange(2**21))[0]

    for variance, wanted in ((4.0, 4.0), (1.0, 4 - 3 * np.exp(-2))):
        scale = after(jnp.float32(variance))
        np.testing.assert_allclose(buffer.divisor(scale) ** 2, wanted, rtol=0.02)
        assert scale.number == buffer.MOST_COUNTED

"""Residual critics against numpy, their folding for one action, and their projection."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.nets.batch_norm import EPSILON, RATE
from s2ac.nets.residual import average_residual, batch_logits, fold_residual, init_residual, projected
from transitions import RELU

ATOMS = jnp.linspace(-2.0, 3.0, 7)


@pytest.fixture(scope="module")
def critic():
    """One whose arrays are not those of the start."""
    made = init_residual(jax.random.key(0), 3, 2, (8, 8), 7)
    leaves, tree = jax.tree.flatten(made)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    moved = [
        leaf * jax.random.uniform(k, leaf.shape, minval=0.5, maxval=2) for k, leaf in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, moved)


@pytest.fixture(scope="module")
def inputs():
    return 2 + 3 * jax.random.normal(jax.random.key(3), (40, 5))


def by_hand(critic, inputs):
    """Logits of a batch, in double precision; and the mean and variance of every norm's inputs, in order."""
    critic, seen = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), critic), []

    def normal(norm, value):
        seen.append((value.mean(0), value.var(0)))
        return (value - value.mean(0)) / np.sqrt(value.var(0) + EPSILON) * norm.scale + norm.shift

    hidden = normal(critic.inputs, np.asarray(inputs, np.float64)) @ critic.first
    for wide, narrow in critic.blocks:
        inner = np.maximum(normal(wide.norm, hidden @ wide.weight), 0)
        hidden = hidden + np.maximum(normal(narrow.norm, inner @ narrow.weight), 0)
    hidden = hidden / np.sqrt((hidden**2).mean(1, keepdims=True) + EPSILON) * critic.gain
    return hidden @ critic.head.weight + critic.head.bias, seen


def norms(critic):
    return [critic.inputs, *(unit.norm for pair in critic.blocks for unit in pair)]


def test_a_batch_by_hand_and_the_statistics_that_it_has_seen(critic, inputs):
    logits, seen = jax.jit(lambda c, x: batch_logits(c, x, jax.nn.relu))(critic, inputs)
    expected, moments = by_hand(critic, inputs)
    np.testing.assert_allclose(logits, expected, atol=5e-5)
    for norm, (mean, variance) in zip(norms(seen), moments, strict=True):
        np.testing.assert_allclose(norm.mean, mean, atol=1e-5)
        np.testing.assert_allclose(norm.variance, variance, rtol=1e-4)
    for norm, was, now in zip(norms(average_residual(critic, seen)), norms(critic), norms(seen), strict=True):
        np.testing.assert_allclose(norm.mean, (1 - RATE) * was.mean + RATE * now.mean, atol=1e-6)
        np.testing.assert_allclose(norm.variance, (1 - RATE) * was.variance + RATE * now.variance, rtol=1e-5)


def test_folded_with_the_batchs_statistics_it_is_the_same_function(critic, inputs):
    """And its value is the distribution's mean. With other statistics it is another function."""

    @jax.jit
    def folded(critic):
        tower = fold_residual(critic, 2, ATOMS)
        observed = jax.vmap(tower.observe, (0, None))(inputs[:, :3], RELU)
        both = [jax.vmap(f, (0, 0, None))(observed, inputs[:, 3:], RELU) for f in (tower.logits, tower.value)]
        return both

    logits, seen = batch_logits(critic, inputs, jax.nn.relu)
    found, values = folded(seen)
    np.testing.assert_allclose(found, logits, atol=2e-4)
    laws = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(values, laws @ ATOMS, atol=2e-4)
    assert np.abs(folded(critic)[0] - logits).max() > 0.1


def test_projection(critic):
    """Output units have norm 1, and norms √H, with the ratios within each as they were; the head's bias is free."""
    made = projected(critic)
    weights = lambda c: [c.first, *(u.weight for pair in c.blocks for u in pair), c.head.weight]  # noqa: E731
    for new, old in zip(weights(made), weights(critic), strict=True):
        np.testing.assert_allclose(np.linalg.norm(new, axis=0), 1, rtol=1e-5)
        np.testing.assert_allclose(np.asarray(new) * np.linalg.norm(old, axis=0), old, rtol=1e-4, atol=1e-6)
    for new, old in zip(norms(made), norms(critic), strict=True):
        both = np.r_[new.scale, new.shift]
        np.testing.assert_allclose(np.sum(both**2), len(new.scale), rtol=1e-5)
        np.testing.assert_allclose(both / both[0], np.r_[old.scale, old.shift] / old.scale[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.sum(made.gain**2), 8, rtol=1e-5)
    np.testing.assert_array_equal(made.head.bias, critic.head.bias)

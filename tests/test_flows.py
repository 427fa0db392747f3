"""Normalising flows: their determinants by autodiff, that they are invertible, and that a row of them mixes all dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.distributions import Gaussian
from s2ac.flows import FLOWS, Flowed, init_flows


def shaken(key, params):
    """Every number moved by noise of its own, far from the start, where flows are the identity."""
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(key, len(leaves))
    return jax.tree.unflatten(
        tree, [leaf + 2 * jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)]
    )


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("dimension", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_flow_log_det_equals_autodiff(x64, name, dimension):
    """The determinant is above 0: what turns a small piece over at one place is not invertible."""
    init, apply = FLOWS[name]

    @jax.jit
    @jax.vmap
    def both(key):
        key_params, key_point = jax.random.split(key)
        params, point = shaken(key_params, init(key_params, dimension)), jax.random.normal(key_point, (dimension,))
        pushed = [lambda x, i=index: apply(params, x, i) for index in (0, 1)]
        log_det = jnp.stack([push(point)[1] for push in pushed])
        return log_det, jnp.linalg.slogdet(jnp.stack([jax.jacfwd(lambda x, p=push: p(x)[0])(point) for push in pushed]))

    log_det, (sign, expected) = both(jax.random.split(jax.random.key(0), 50))
    assert (sign > 0).all()
    np.testing.assert_allclose(log_det, expected, rtol=1e-9, atol=1e-9)
    assert np.std(expected) > 0.1  # no identity


def test_autoregressive_flows_take_turns_in_their_order():
    """Two of one order would leave the last dimension without any influence on the first."""
    flows = shaken(jax.random.key(1), init_flows(jax.random.key(0), "iaf", 2, 3))
    law = Flowed(Gaussian(jnp.zeros(3), jnp.ones(3)), "iaf", flows)
    jacobian = jax.jit(jax.jacfwd(lambda x: law.push(x)[0]))(jnp.array([0.3, -0.2, 0.5]))
    assert np.abs(jacobian).min() > 1e-3

"""Networks that sample in one call: SQL's, and S²AC's mixture."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.stats

from s2ac.algorithms.amortized import (
    COMPONENTS,
    Mixture,
    make_mixture,
    make_network,
    mixture_of,
    policy_target,
    stein_loss,
)
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.start import box_of
from transitions import SPEC


def test_sqls_network_rests_where_its_law_is_the_targets():
    """Outputs that are drawn from the target have no velocity on average, so the loss is 0; with the self term it would be D/M = 0.2."""
    network, box = make_network(SPEC, (4,), "relu"), box_of(SPEC)
    resting = jax.tree.map(jnp.zeros_like, network.init(jax.random.key(0)))  # place 0, width 1: uniform on the box
    target = policy_target(box, lambda action: 0.0 * jnp.sum(action), jnp.float32(0.3))

    def loss(params, key):
        key_noise, key_step = jax.random.split(key)
        return stein_loss(key_step, network.draw(key_noise, params, jnp.zeros(SPEC.observation_size), 10), target)

    one = lambda key: loss(resting, key)  # noqa: E731
    losses = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 4000)))
    assert abs(losses.mean()) < 4 * losses.std() / 4000**0.5
    assert 4 * losses.std() / 4000**0.5 < 0.03

    # Too far to one side, and too wide: descent goes back.
    off = resting[-1]._replace(bias=jnp.ones_like(resting[-1].bias))

    def mean(last, keys):
        return jnp.mean(jax.vmap(lambda key: loss((*resting[:-1], last), key))(keys))

    gradient = jax.jit(jax.grad(mean))(off, jax.random.split(jax.random.key(1), 500))
    assert (gradient.bias > 0).all()


def test_a_mixtures_draws_fit_its_density():
    """Two components in one dimension, by a goodness-of-fit test; with the shares exchanged it fails."""
    law = Mixture(jnp.log(jnp.array([0.2, 0.8])), jnp.array([[-1.0], [1.0]]), jnp.array([[0.3], [0.6]]))
    drawn = np.asarray(jax.jit(jax.vmap(law.sample))(jax.random.split(jax.random.key(0), 8000)))[:, 0]
    other = law._replace(log_share=law.log_share[::-1])
    for one, fits in ((law, True), (other, False)):
        density = np.exp(np.asarray(jax.vmap(lambda x, one=one: one.log_density(x[None]))(jnp.linspace(-5, 5, 4001))))
        mass = np.cumsum(density) * 10 / 4000
        assert abs(mass[-1] - 1) < 1e-3
        assert (
            scipy.stats.kstest(drawn, lambda x, m=mass: np.interp(x, np.linspace(-5, 5, 4001), m)).pvalue > 1e-4
        ) == fits


def test_the_amortised_mixture_finds_the_modes_that_are_executed():
    """Fitted to particles of three narrow modes with unequal shares, it has their shares and places."""
    places, shares = jnp.array([[-0.6, 0.0], [0.5, 0.4], [0.5, -0.6]]), jnp.array([0.5, 0.3, 0.2])
    observation = jnp.zeros(SPEC.observation_size)
    auxiliary = make_mixture(SPEC, S2acConfig(hidden=(8,), min_std=0.02, max_std=2.0))

    @jax.jit
    def fitted(key):
        optimiser = optax.adam(1e-2)
        params = auxiliary.init(key)

        def loss(params, key):
            return auxiliary.loss(params, observation, places + 0.05 * jax.random.normal(key, places.shape), shares)

        def step(carry, key):
            updates, memory = optimiser.update(jax.grad(loss)(carry[0], key), carry[1])
            return (optax.apply_updates(carry[0], updates), memory), None

        carry = (params, optimiser.init(params))
        return mixture_of(
            jax.lax.scan(step, carry, jax.random.split(key, 2000))[0][0], observation, "relu", (0.02, 2.0)
        )

    law = fitted(jax.random.key(3))
    assert law.mean.shape == (COMPONENTS, 2)
    drawn = np.asarray(jax.vmap(law.sample)(jax.random.split(jax.random.key(1), 4000)))
    nearest = np.argmin(np.linalg.norm(drawn[:, None] - np.asarray(places)[None], axis=-1), axis=1)
    np.testing.assert_allclose(np.bincount(nearest) / 4000, shares, atol=0.05)
    assert np.linalg.norm(drawn - np.asarray(places)[nearest], axis=1).mean() < 0.12

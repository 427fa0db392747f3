"""Importance-weighted particles: the soft value and entropy that `soft_value_of` states, and the law that is executed."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from s2ac.algorithms.critics import energy_of, min_value
from s2ac.algorithms.maxent import soft_value_of
from s2ac.algorithms.s2ac import S2acConfig, make_s2ac, start_temperature
from s2ac.checks import InvalidArgument
from s2ac.networks import critic_activations, init_critic
from s2ac.types import EnvSpec, Transition

ALPHA = jnp.float32(0.5)
SPEC = EnvSpec(2, (-1.0,), (1.0,))
RELU = critic_activations("relu", None)
CONFIG = S2acConfig(hidden=(8,), num_particles=3, num_steps=1, min_std=0.2)


def drawn(num, key=0, spread=2.0):
    """Particles of N(0, spread²) with the energy of N(1, 1) at temperature ALPHA: log Z = ½ log 2π."""
    x = spread * jax.random.normal(jax.random.key(key), (2000, num))
    log_prob = -0.5 * (x / spread) ** 2 - jnp.log(spread) - 0.5 * jnp.log(2 * jnp.pi)
    return ALPHA * (-0.5 * (x - 1) ** 2), log_prob


def test_one_particle_needs_no_weights():
    values, log_prob = drawn(1)
    plain, weighted = (
        jax.vmap(lambda v, p, r=r: jnp.stack(soft_value_of(v, p, ALPHA, r)))(values, log_prob) for r in (0, 1)
    )
    np.testing.assert_allclose(plain, weighted, rtol=2e-5, atol=2e-5)


def test_more_particles_bring_the_soft_value_to_the_optimum_from_below():
    """α log Z is the optimum's soft value and ½ log 2πe its entropy: a flipped sign of either term would exceed them."""
    best, most = float(ALPHA) * 0.5 * np.log(2 * np.pi), 0.5 * np.log(2 * np.pi * np.e)
    found = [
        np.asarray(jax.vmap(lambda v, p: jnp.stack(soft_value_of(v, p, ALPHA, True)))(*drawn(m)))
        for m in (1, 4, 64, 1024)
    ]
    value, entropy = np.mean(found, axis=1).T
    error = 4 * np.std(found, axis=1).T / 2000**0.5
    assert (np.diff(value) > 0).all()
    assert (value < best + error[0]).all()
    assert abs(value[-1] - best) < 0.002
    assert abs(entropy[-1] - most) < 0.01


def test_the_executed_law_is_the_energys():
    """S²AC without steps and 256 wide particles: what is executed fits exp(Q/α), which one particle's law does not."""
    config = replace(CONFIG, num_particles=256, num_steps=0, min_std=1.5, max_std=3.0, alpha=0.01)
    algorithm = make_s2ac(SPEC, replace(config, resample=True))
    state = jax.jit(algorithm.init)(jax.random.key(3))
    observation = jnp.array([0.3, -0.7])
    act = jax.jit(jax.vmap(lambda k: algorithm.act(k, state, observation, "sample")[0]))
    actions = np.asarray(act(jax.random.split(jax.random.key(1), 4000)))
    grid = (np.arange(2000) + 0.5) / 1000 - 1
    energy = jax.vmap(min_value(state.critic, observation, config.activations))(jnp.asarray(grid[:, None], jnp.float32))
    mass = np.exp(np.asarray(energy, np.float64) / config.alpha)
    mass = (mass / mass.sum()).reshape(10, -1).sum(1)
    counts = np.histogram(actions, np.linspace(-1, 1, 11))[0]
    assert scipy.stats.chisquare(counts, mass * 4000).pvalue > 1e-4
    assert mass.max() / mass.min() > 1.5  # uniform actions would fail


def test_both_losses_are_of_the_resampled_policy():
    """At a low temperature the best of 32 wide particles has far less entropy than they have: critic and actor see that."""
    config = replace(CONFIG, num_particles=32, num_steps=0, min_std=1.5, max_std=3.0, alpha=1e-4, resample=True)
    with_actor, without = (make_s2ac(SPEC, replace(config, start=start)) for start in ("learned", "fixed"))
    batch = rows()
    for algorithm in (with_actor, without):  # without an actor the metrics are the critic target's
        state = jax.jit(algorithm.init)(jax.random.key(0))
        metrics = jax.jit(algorithm.update)(jax.random.key(1), state, batch)[1]
        whole = metrics["entropy_start"] + metrics["entropy_squash"]
        assert metrics["entropy"] < whole - 1.5


def test_modes_are_chosen_at_their_own_temperature_and_places_at_alpha():
    """Two modes of Q, one better by 4 α: at α it is taken 98 % of the time, at τ = 8 α 62 %, in training (at the start's temperature) still
    less; the spread within each is α's. With τ below α nothing changes. The start is 4.4 times denser at the better mode
    and fresh particles are barely wider than a mode, so with either density's sign flipped, or left out, this fails."""
    alpha, width, centres = 0.05, 0.04, jnp.array([-0.3, 0.5])

    def q(action):  # modes of standard deviation `width` at α
        return alpha * jnp.max(-0.5 * ((action[0] - centres) / width) ** 2 + jnp.array([0.0, 4.0]))

    config = replace(CONFIG, num_particles=400, num_steps=0, resample=True, min_std=0.4, max_std=0.4001)
    observation = jnp.zeros(2)

    def played(rule, mode_alpha):
        spec = replace(config, alpha=alpha, start_alpha=100 * alpha, mode_alpha=mode_alpha)
        with pytest.MonkeyPatch.context() as patch:  # a critic whose exp(Q/α) is known
            patch.setattr("s2ac.algorithms.maxent.min_value", lambda *_: q)
            patch.setattr("s2ac.algorithms.maxent.energy_of", lambda *_: q)
            algorithm = make_s2ac(SPEC, spec)
            state = algorithm.init(jax.random.key(0))
            act = jax.jit(jax.vmap(lambda k: algorithm.act(k, state, observation, rule)[0]))
            return np.asarray(act(jax.random.split(jax.random.key(2), 4000)))

    grid = np.linspace(-0.999, 0.999, 4001)
    energy = np.asarray(jax.vmap(q)(jnp.asarray(grid[:, None], jnp.float32)), np.float64)
    for mode_alpha, hot in ((8 * alpha, 8), (alpha / 2, 1)):
        actions = played("sample", mode_alpha)
        better, mass = actions > 0.1, np.exp(energy / (hot * alpha))
        share = mass[grid > 0.1].sum() / mass.sum()
        assert abs(better.mean() - share) < 0.03
        if hot == 8:
            assert better.mean() < 0.66
            for side, centre in ((actions[better], 0.5), (actions[~better], -0.3)):
                assert abs(side.mean() - centre) < 0.01
                assert abs(side.std() - width) < 0.005
    assert (played("explore", 8 * alpha) > 0.1).mean() < 0.58
    assert abs(played("argmax", 8 * alpha) - 0.5).max() < 0.02
    assert abs((played("softmax", 8 * alpha) > 0.1).mean() - 0.9958) < 0.003  # e⁴ · 4.4 to 1


def test_modes_need_a_wide_start_and_weights():
    for missing in ({"start_alpha": 1.0}, {"resample": True}):
        with pytest.raises(InvalidArgument, match=r"mode_alpha = 1\.0: needs start_alpha, and resample"):
            make_s2ac(SPEC, replace(CONFIG, mode_alpha=1.0, **missing))


@pytest.mark.parametrize(("alpha", "hot"), [(0.2, 10.0), (8.0, 16.0)])
def test_the_start_is_hotter_than_the_policy(alpha, hot):
    config = S2acConfig(start_alpha=10.0, start_ratio=2.0)
    np.testing.assert_allclose(start_temperature(config, alpha), hot)


def rows():
    keys = jax.random.split(jax.random.key(0), 3)
    first = jax.random.normal(keys[0], (8, 2)), jax.random.uniform(keys[1], (8, 1))
    return Transition(*first, jnp.ones(8), jnp.zeros(8), jnp.zeros(8), jax.random.normal(keys[2], (8, 2)))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_relu_critic_as_energy_has_its_own_value_and_gradient_and_no_curvature(dtype):
    critic = jax.vmap(lambda k: init_critic(k, 3, 2, (16, 16)))(jax.random.split(jax.random.key(0), 2))
    observation, points = jnp.ones(3), jax.random.uniform(jax.random.key(1), (50, 2), minval=-1)
    energy, value = energy_of(critic, observation, RELU, dtype), min_value(critic, observation, RELU)
    tolerance = {"rtol": 1e-6, "atol": 1e-7} if dtype == jnp.float32 else {"rtol": 0.03, "atol": 0.003}
    of = lambda f: jax.jit(jax.vmap(lambda x: (*jax.value_and_grad(f)(x), jax.hessian(f)(x))))(points)  # noqa: E731
    (height, slope, curvature), (wanted, wanted_slope, none) = of(energy), of(value)
    np.testing.assert_allclose(height, wanted, **tolerance)
    np.testing.assert_allclose(slope, wanted_slope, **tolerance)
    assert not np.asarray(curvature).any()
    assert not np.asarray(none).any()  # which is why the above may be said


def test_saying_that_relu_has_no_curvature_changes_no_update(monkeypatch):
    """The actor's gradient through the whole sampler, with and without the passes that compute zeros."""
    import s2ac.algorithms.maxent as maxent

    batch = rows()

    def updated():
        algorithm = make_s2ac(SPEC, CONFIG)
        state = jax.jit(algorithm.init)(jax.random.key(0))
        return jax.jit(algorithm.update)(jax.random.key(1), state, batch)[0].actor

    short = updated()
    monkeypatch.setattr(
        maxent,
        "energy_of",
        lambda critic, observation, activation, dtype=None: min_value(critic, observation, activation),
    )
    for one, other in zip(jax.tree.leaves(short), jax.tree.leaves(updated()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)

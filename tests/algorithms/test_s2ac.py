"""S²AC: without steps it is SAC; its particles, their weights, the law that is executed."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from s2ac.algorithms.s2ac import make_s2ac, make_stein_policy
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.algorithms.sac_nf import SacNfConfig, make_sac_nf
from s2ac.errors import InvalidArgument
from s2ac.ranges import settled
from s2ac.settings import PRESETS, resolve
from s2ac.types import EnvSpec
from transitions import SMALL, SPEC, after_updates, assert_same

LINE = EnvSpec(2, (-1.0,), (1.0,))


CONFIG = S2acConfig(hidden=(8,), num_particles=3, num_references=3, num_steps=1, min_std=0.2, start_alpha=None)


def test_without_steps_s2ac_is_sac_and_without_flows_sac_nf_is_sac():
    """Bit for bit after ten updates: parameters, optimiser and temperature."""
    bounds = {"min_std": 0.01, "max_std": 5.0, "learn_alpha": True, **SMALL}
    sac, _ = after_updates(make_sac(SPEC, SacConfig(**bounds)))
    s2ac, _ = after_updates(make_s2ac(SPEC, S2acConfig(**bounds, num_steps=0, num_particles=1, start_alpha=None)))
    assert_same(sac, s2ac)
    flow, _ = after_updates(make_sac_nf(SPEC, SacNfConfig(**bounds, num_flows=0)))
    assert_same(sac, flow)


def test_without_steps_s2ac_with_flows_is_sac_nf():
    """Bit for bit after ten updates, with normalised critics; to rounding where the start has a loss of its own at the policy's temperature."""
    flows = {
        **SMALL,
        "min_std": 0.01,
        "max_std": 5.0,
        "num_flows": 2,
        "flow": "planar",
        "batch_norm": True,
        "learn_alpha": False,
    }
    sac_nf, _ = after_updates(make_sac_nf(SPEC, SacNfConfig(**flows)))
    config = S2acConfig(**flows, num_steps=0, num_particles=1, start_alpha=None)
    s2ac, _ = after_updates(make_s2ac(SPEC, config))
    assert_same(sac_nf, s2ac)
    own, _ = after_updates(make_s2ac(SPEC, replace(config, start_alpha=0.0)))
    for one, other in zip(*map(jax.tree.leaves, (sac_nf, own)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-8)
    makers = (
        make_sac_nf(SPEC, SacNfConfig(**flows)),
        make_s2ac(SPEC, config),
        make_s2ac(SPEC, replace(config, num_flows=0, flow="radial")),
    )
    states = sac_nf, s2ac, s2ac._replace(actor=s2ac.actor[0])
    means = [
        made.act(jax.random.key(0), state, jnp.ones(3), "mean") for made, state in zip(makers, states, strict=True)
    ]
    np.testing.assert_array_equal(means[0], means[1])
    assert np.abs(means[1] - means[2]).max() > 1e-4  # the Gaussian's mean goes through the flows
    with pytest.raises(InvalidArgument, match="num_flows = 2: must be left out"):
        settled(replace(config, start_std=0.7), {"num_flows"})


def test_a_start_with_a_loss_of_its_own_at_the_policys_temperature_learns_as_sac():
    """Bit for bit after an update, with no gradient through the samples; but α is aimed by the entropy at s'."""
    bounds = {"min_std": 0.01, "max_std": 5.0, "learn_alpha": True, "alpha": 0.2, **SMALL}
    sac, told = after_updates(make_sac(SPEC, SacConfig(**bounds)), 1)
    one = S2acConfig(**bounds, num_steps=0, num_particles=1)
    own, metrics = after_updates(make_s2ac(SPEC, one), 1)
    assert_same((sac.actor, sac.actor_memory, sac.critic), (own.actor, own.actor_memory, own.critic))
    np.testing.assert_allclose(metrics["actor_loss"], told["actor_loss"], rtol=1e-5)
    assert metrics["entropy"] != told["entropy"]
    hot, _ = after_updates(make_s2ac(SPEC, replace(one, start_alpha=0.2)), 1)
    assert not np.array_equal(jax.tree.leaves(hot.actor)[0], jax.tree.leaves(own.actor)[0])


def test_particles_of_s2ac_find_the_maximum_entropy_policy():
    """Quadratic Q in action space, several temperatures: converged particles have the target's mean. Q is seen after
    the squash and divided by α; without either, the mean is elsewhere."""
    spec = EnvSpec(1, (-2.0,), (2.0,))
    for alpha in (0.1, 10.0):
        config = S2acConfig(
            start_std=0.7, start_alpha=None, num_steps=200, num_particles=20, num_references=20, step_size=0.1
        )
        actor = make_stein_policy(spec, config)
        q = lambda a: -jnp.sum((a - 0.8) ** 2)  # noqa: E731
        sample = jax.jit(lambda k, a=actor, al=alpha, q=q: a.draw(k, (), jnp.zeros(1), q, jnp.array(al)))
        grid = np.linspace(-8, 8, 4001)
        weight = np.exp(-((2 * np.tanh(grid) - 0.8) ** 2) / alpha) / np.cosh(grid) ** 2
        expected = np.sum(weight * grid) / np.sum(weight)
        drawn = jax.vmap(sample)(jax.random.split(jax.random.key(0), 100))
        assert abs(jnp.mean(drawn.pre_tanh) - expected) < 0.06


def test_a_hotter_start_becomes_wider():
    """One narrow mode of Q: the start learned at a higher temperature has the larger spread, and lies there too."""
    q = lambda action: -20 * jnp.sum((action - 0.3) ** 2)  # noqa: E731

    def learned(start_alpha):
        policy = make_stein_policy(LINE, replace(CONFIG, start_alpha=start_alpha, min_std=0.01))
        optimiser = optax.adam(0.03)

        @jax.jit
        def fit(params, key):
            def step(carry, key):
                params, memory = carry
                loss = lambda p: policy.loss(key, p, jnp.ones(2), q, jnp.float32(0.1))  # noqa: E731
                updates, memory = optimiser.update(jax.grad(loss)(params), memory)
                return (optax.apply_updates(params, updates), memory), None

            return jax.lax.scan(step, (params, optimiser.init(params)), jax.random.split(key, 500))[0][0]

        params = fit(policy.init(jax.random.key(0)), jax.random.key(1))
        drawn = policy.draw(jax.random.key(2), params, jnp.ones(2), q, jnp.float32(0.1))
        return drawn.metrics["std"], policy.mean(params, jnp.ones(2))[0]

    (cold, at), (hot, also) = learned(0.0), learned(2.0)
    assert hot > 2 * cold
    assert abs(at - 0.3) < 0.05
    assert abs(also - 0.3) < 0.2


def test_a_step_is_in_units_of_alpha():
    policy = make_stein_policy(LINE, replace(CONFIG, step_size=1e-3))
    params, energy = policy.init(jax.random.key(0)), lambda action: jnp.sum(action)
    for alpha in (0.1, 2.0):
        told = policy.draw(jax.random.key(1), params, jnp.ones(2), energy, jnp.float32(alpha)).metrics
        assert told["step_size"] == pytest.approx(1e-3 * alpha, rel=1e-4)


@pytest.mark.parametrize(("fields", "message"), [
    ({"num_references": 1}, "num_references = 1: must be at least 2 for form 'tracer'"),
    ({"num_references": 0}, "num_references = 0: must be at least 2"),
    ({"num_particles": 0}, "num_particles = 0: must be an integer of at least 1"),
    ({"form": "paper"}, "num_references = 3: must be 0 for form 'paper'"),
    ({"max_jacobian_norm": None}, "max_jacobian_norm = None: must be below 1 with references"),
    ({"max_jacobian_norm": 1.0}, "max_jacobian_norm = 1.0: must be below 1 with references"),
    ({"form": "all", "num_references": 0, "weighted": True}, "weighted = True: needs an exact density"),
    ({"form": "tracer-own-score", "weighted": True}, "weighted = True: needs an exact density"),
    ({"explore_alpha": 1.0}, "explore_alpha = 1.0: must be left out, it has no effect where weighted is off"),
    ({"start_std": 0.5, "start_alpha": 0.0, "min_std": S2acConfig.min_std}, "start_alpha = 0.0: must be None where the start is fixed"),
    ({"guide": (8,), "num_steps": 0}, "no effect where there are no steps"),
])  # fmt: skip
def test_what_cannot_work_is_refused_by_name(fields, message):
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        settled(replace(CONFIG, **fields), fields)


def test_every_default_and_entry_takes_a_stein_step():
    for env in ("Pendulum-v1", "multigoal", "multigoal-far", "Hopper-v5", "Humanoid-v5"):
        for preset in PRESETS:
            for algo in ("s2ac", "s2ac-phi", "s2ac-amortized"):
                assert resolve(env, algo, preset).algorithm.num_steps >= 1

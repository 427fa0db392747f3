"""Fits whose best answer is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import s2ac
from s2ac.errors import Diverged, InvalidArgument
from targets import two_modes

QUICK = {"num_iterations": 150, "num_clouds": 4, "learning_rate": 0.05, "num_draws": 100}


def test_gaussian_fit_finds_a_gaussian():
    """log Z = 0.7 by construction; the mean-field family contains the target, so the bound is tight."""
    law = s2ac.Gaussian(jnp.array([1.0, -2.0]), jnp.array([0.5, 1.5]))
    fit = s2ac.fit(
        jax.random.key(0), lambda x: law.log_density(x) + 0.7, jnp.zeros(2), 1.0, s2ac.Family(num_steps=0), **QUICK
    )
    np.testing.assert_allclose(fit.start.mean, law.mean, atol=0.1)
    np.testing.assert_allclose(fit.start.std, law.std, rtol=0.1)
    assert 0.66 < fit.elbo < 0.7 + 4 * fit.elbo_standard_error


@pytest.mark.slow
def test_svgd_family_is_closer_to_the_evidence_of_two_modes():
    """log Z of the target is log(2π·½·2) = log 2π; the bound must stay below it and gain at least half of log 2."""
    log_evidence = np.log(2 * np.pi)
    fits = {
        steps: s2ac.fit(jax.random.key(1), two_modes, jnp.zeros(2), 2.0, s2ac.Family(num_steps=steps), **QUICK)
        for steps in (0, 15)
    }
    for fit in fits.values():
        assert fit.elbo < log_evidence + 3 * fit.elbo_standard_error
        np.testing.assert_allclose(jnp.mean(jax.vmap(two_modes)(fit.particles) - fit.log_density), fit.elbo, rtol=1e-4)
    assert fits[15].elbo - fits[0].elbo > 0.5 * np.log(2)
    assert (fits[15].particles[:, 0] > 0).mean() == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean": jnp.zeros((2, 2))}, "one number per dimension"),
        ({"std": 0.0}, "std = 0.0: must be above 0"),
        ({"num_draws": 1}, "num_draws = 1: must be an integer of at least 2"),
        ({"family": s2ac.Family(num_steps=-1)}, "num_steps = -1"),
        ({"family": s2ac.Family(step_size=0.0)}, "step_size = 0.0"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        s2ac.fit(**{"key": jax.random.key(0), "log_target": two_modes, "mean": jnp.zeros(2), **arguments})


def test_divergence_is_named():
    with pytest.raises(Diverged, match="log_target is not finite at draws of the start"):
        s2ac.fit(
            jax.random.key(0), lambda x: jnp.sum(x) * jnp.nan, jnp.zeros(2), family=s2ac.Family(0), num_iterations=2
        )

"""What is executed, by selection rule."""

import jax
import jax.numpy as jnp
import pytest

from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.algorithms.sql import SqlConfig, make_sql
from transitions import SPEC, first_state


@pytest.mark.parametrize("algorithm", [
    make_sac(SPEC, SacConfig(hidden=(8,), alpha=1e-4)), make_sql(SPEC, SqlConfig(hidden=(8,), alpha=1e-4, num_particles=10)),
], ids=["sac", "sql"])  # fmt: skip
def test_at_a_low_temperature_softmax_takes_the_best_candidate_as_argmax_does(algorithm):
    state, observation, keys = first_state(algorithm), jnp.ones(3), jax.random.split(jax.random.key(1), 100)

    @jax.jit
    def chosen():
        actions = [
            jax.vmap(lambda k, r=r: algorithm.act(k, state, observation, r))(keys)
            for r in ("softmax", "argmax", "sample")
        ]
        return actions[:2], [jax.vmap(lambda a: algorithm.value(state, observation, a))(some) for some in actions[1:]]

    (soft, best), (top, plain) = chosen()
    assert (soft == best).all(axis=1).mean() > 0.9
    assert (top > plain).mean() > 0.8  # the best of ten is above another in ten cases of eleven

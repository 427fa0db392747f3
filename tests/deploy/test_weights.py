"""The one network that a rule runs, by numpy alone."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms.ppo import Moments, PpoConfig, make_ppo
from s2ac.deploy.weights import network_of, run_network
from transitions import SPEC, first_state


def test_ppos_network_brings_plain_observations_to_its_own_scale():
    """As measured in training: an agent that has seen nothing yet would act alike without."""
    config = PpoConfig(hidden=(8,), normalize=True)
    algorithm = make_ppo(SPEC, config)
    state = first_state(algorithm)
    state = state._replace(
        params=jax.tree.map(lambda leaf: leaf + 0.3, state.params),
        scale=state.scale._replace(
            observation=Moments(jnp.float32(9.0), jnp.array([5.0, -2.0, 0.0]), jnp.array([4.0, 0.01, 1.0]))
        ),
    )
    agent = SimpleNamespace(algo="ppo", algorithm_config=config, spec=SPEC, policy_state=lambda seed_index: state)
    arrays, about = network_of(agent, "mean", 0, None)
    observations = np.array([[4.0, -2.1, 0.3], [6.0, -1.9, -0.2]], np.float32)
    wanted = jax.jit(jax.vmap(lambda o: algorithm.act(jax.random.key(0), state, o, "mean")))(observations)
    wanted = np.clip(wanted, SPEC.action_low, SPEC.action_high)
    np.testing.assert_allclose(run_network(arrays, about, observations, None), wanted, atol=1e-5)
    assert np.ptp(wanted, axis=0).max() > 0.1

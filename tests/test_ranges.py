"""Numbers out of range are refused when a config is made, in one line that names field, value and range."""

from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument
from s2ac.ranges import ranges_of

BAD = {
    "hidden": [(0,), (16, -1), (2.5,), 16],
    "activation": ["rellu", 3],
    "learning_rate": [0.0, -1e-3, float("nan"), float("inf"), "fast"],
    "critic_learning_rate": [0.0],
    "frequency": [0.0, -1.0],
    "discount": [-0.1, 1.01, float("nan")],
    "target_rate": [0.0, 1.5],
    "alpha": [0.0, -1.0, float("inf")],
    "target_entropy": [float("nan"), float("inf")],
    "adam_b1": [1.0, -0.1],
    "num_critics": [0, 1.5, True],
    "min_std": [0.0, -1.0, 1e9],
    "max_std": [0.0, 1e-9],
    "num_particles": [0],
    "num_steps": [-1],
    "guide": [(0,), 128, (1.5,)],
    "step_size": [0.0],
    "bandwidth_factor": [0.0],
    "max_jacobian_norm": [0.0],
    "start_std": [0.0],
    "start_alpha": [-0.1, float("inf")],
    "explore_alpha": [-0.1, float("inf")],
    "num_references": [-1, 1, 2.0],
    "num_flows": [-1],
    "num_value_samples": [0],
    "noise": [-0.1, float("inf")],
    "trace": [1.1],
    "clip": [0.0, 1.0],
    "num_epochs": [0],
    "num_minibatches": [0],
    "entropy_weight": [-1.0],
    "value_weight": [float("nan")],
    "max_gradient_norm": [0.0],
}


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_number_of_every_config_has_a_range(algo):
    """Whatever the algorithm: each bad value is refused by name, the defaults are fine, and no number lacks a range."""
    config = ALGORITHMS[algo].config
    assert replace(config) == config
    for field in fields(config):
        assert field.name in ranges_of(type(config))
        for bad in BAD.get(field.name, []):
            with pytest.raises(
                InvalidArgument, match=rf"^{field.name} = .*must be|^min_std = .*must be below"
            ) as caught:
                replace(config, **{field.name: bad})
            assert "\n" not in str(caught.value)


def test_particles_that_repel_one_another_are_at_least_two():
    """Each output of SQL's actor is moved by the others: with none it would be divided by zero."""
    config = ALGORITHMS["sql"].config
    assert replace(config, num_particles=2).num_particles == 2
    with pytest.raises(InvalidArgument, match="num_particles = 1: must be an integer of at least 2"):
        replace(config, num_particles=1)


def test_a_traced_number_passes_so_that_it_can_be_an_axis():
    config = ALGORITHMS["sac"].config
    alphas = jax.jit(jax.vmap(lambda alpha: replace(config, alpha=alpha, min_std=alpha).alpha))(jnp.array([0.1, -1.0]))
    assert alphas.shape == (2,)

"""Every setting does something: alone and beside every other one it changes what is computed, or is refused by name."""

import itertools
import random
from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument
from s2ac.ranges import settled
from s2ac.types import EnvSpec, Transition

SPEC = EnvSpec(3, (-1.0, -2.0), (1.0, 2.0))
OTHER = {
    "hidden": (3, 5), "activation": "elu", "learning_rate": 1e-2, "discount": 0.5, "target_rate": 0.5, "frequency": 1.0, "alpha": 0.3,
    "target_entropy": -0.5, "num_critics": 3, "critic_learning_rate": 2e-2, "adam_b1": 0.3, "min_std": 0.02, "max_std": 3.0,
    "flow": "planar", "num_flows": 2, "num_particles": 5, "num_references": 3, "num_steps": 0, "step_size": 0.2,
    "max_jacobian_norm": 0.5, "bandwidth_factor": 0.7, "form": "all", "start_std": 0.6, "start_alpha": 1.0, "explore_alpha": 2.0,
    "guide": (4,), "num_value_samples": 7, "noise": 0.3, "trace": 0.5, "clip": 0.3, "num_epochs": 2, "num_minibatches": 1,
    "entropy_weight": 0.1, "value_weight": 0.2, "max_gradient_norm": 0.2,
}  # fmt: skip
"""Another value for each field; a flag's other value is the opposite."""


def changed(config, *names):
    """The config with other values of these fields."""
    return replace(config, **{name: OTHER[name] if name in OTHER else not getattr(config, name) for name in names})


def traced(algo, config):
    """All that the algorithm computes, as text: operations and constants of its start, its update and its ways to act."""
    made = ALGORITHMS[algo].make(SPEC, config)
    lead = (2, 4) if made.experience == "rollout" else (4,)
    batch = Transition(*(jnp.zeros(lead + shape) for shape in ((3,), (2,), (), (), (), (3,))))
    key = jax.random.key(0)
    state = jax.eval_shape(made.init, key)
    programs = [jax.make_jaxpr(made.init)(key), jax.make_jaxpr(made.update)(key, state, batch)]
    for rule in made.rules[:2]:
        programs.append(jax.make_jaxpr(lambda k, s, o, r=rule: made.act(k, s, o, r))(key, state, jnp.zeros(3)))
    constants = (np.asarray(c).tobytes() for p in programs for c in p.consts)
    return hash(("".join(map(str, programs)), *constants))


def pairs(num):
    """Every pair of fields of every algorithm; so many of them in the fast suite, the rest in the slow one."""
    every = [
        (algo, *pair)
        for algo, entry in ALGORITHMS.items()
        for pair in itertools.combinations([field.name for field in fields(entry.config)], 2)
    ]
    quick = set(random.Random(0).sample(range(len(every)), num))
    return [pair if index in quick else pytest.param(*pair, marks=pytest.mark.slow) for index, pair in enumerate(every)]


KNOWN = {}


def program(algo, *names):
    """`traced` with other values of these fields; None where that is refused."""
    if (algo, *names) not in KNOWN:
        base = replace(ALGORITHMS[algo].config, hidden=(4, 4))
        try:
            config = settled(changed(base, *names), names)
        except InvalidArgument:
            config = None
        KNOWN[algo, *names] = traced(algo, config) if config else None
    return KNOWN[algo, *names]


@pytest.mark.parametrize(("algo", "one", "other"), pairs(40))
def test_a_pair_of_settings_is_effective_or_refused(algo, one, other):
    both = program(algo, one, other)
    if both is not None:
        assert both != program(algo, one), f"{other} does nothing beside {one}"
        assert both != program(algo, other), f"{one} does nothing beside {other}"


LONG = ("s2ac-phi", "s2ac-amortized")  # the fields of s2ac


@pytest.mark.parametrize("algo", [pytest.param(a, marks=pytest.mark.slow) if a in LONG else a for a in ALGORITHMS])
def test_a_setting_alone_is_effective_or_refused(algo):
    plain = program(algo)
    for field in fields(ALGORITHMS[algo].config):
        assert program(algo, field.name) != plain, field.name

"""A JAX environment of one's own is looked at before anything is compiled."""

import jax.numpy as jnp
import pytest

import s2ac
from s2ac.envs.jax_env import JaxEnv, TimeStep, check_jax_env
from s2ac.errors import InvalidArgument
from s2ac.types import EnvSpec

NO = jnp.zeros((), bool)


def env(spec=None, reset=None, max_steps=20, **fields):
    """A line of one number."""
    given = {"observation": jnp.zeros(1), "reward": jnp.zeros(()), "terminated": NO, "truncated": NO, **fields}
    after = given.pop("after", lambda state: state + 1)
    return JaxEnv(
        spec or EnvSpec(1, (-1.0,), (1.0,)),
        reset or (lambda key: (jnp.zeros(1), jnp.zeros(1))),
        lambda key, state, action: (after(state), TimeStep(**given)),
        max_steps,
    )


def test_a_right_one_is_taken():
    check_jax_env(env())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reward": jnp.zeros(1)}, r"the step's reward has shape \(1,\) of floats: must be \(\) of floats"),
        ({"reward": jnp.zeros((), int)}, r"the step's reward has shape \(\) of i: must be \(\) of floats"),
        ({"terminated": jnp.zeros(())}, r"the step's terminated has shape \(\) of floats: must be \(\) of bool"),
        ({"truncated": jnp.zeros(1, bool)}, r"the step's truncated has shape \(1,\) of bool: must be \(\) of bool"),
        ({"observation": jnp.zeros(2)}, r"the step's observation has shape \(2,\) of floats: must be \(1,\)"),
        ({"reset": lambda key: (jnp.zeros(1), jnp.zeros(3))}, r"what reset observes has shape \(3,\)"),
        ({"after": lambda state: (state, state)}, "the state after a step has other shapes or types"),
        ({"after": lambda state: state.astype(int)}, "the state after a step has other shapes or types"),
        ({"after": lambda state: float(state[0])}, "its reset and step cannot be compiled: ConcretizationTypeError"),
        ({"reset": lambda key: jnp.zeros(1).item}, "its reset and step cannot be compiled: TypeError"),
        ({"spec": EnvSpec(1, (1.0,), (-1.0,))}, "must be finite bounds, low below high"),
        ({"spec": EnvSpec(1, (-jnp.inf,), (1.0,))}, "must be finite bounds, low below high"),
        ({"spec": EnvSpec(1, (), ())}, "must be finite bounds, low below high"),
        ({"spec": EnvSpec(0, (-1.0,), (1.0,))}, "observation_size = 0"),
        ({"max_steps": 0}, "max_steps = 0"),
    ],
)
def test_what_a_loop_cannot_compile_is_one_line(wrong, message):
    with pytest.raises(InvalidArgument, match=message) as caught:
        s2ac.Agent(env(**wrong), "sac")
    assert "\n" not in str(caught.value)

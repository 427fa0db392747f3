"""Environments of other JAX libraries: endings apart, true successors, bounds, exact resume; and what is refused."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import s2ac
from runs import digest
from s2ac.envs.adapters import from_brax, from_gymnax
from s2ac.envs.registry import jax_env
from s2ac.errors import InvalidArgument

SMALL = {"hidden": (8,), "batch_size": 8, "warmup_steps": 20, "log_every": 20, "evaluate_every": 40, "checkpoint_every": 20,
         "capacity": 100, "episodes": 2}  # fmt: skip


class BraxState(NamedTuple):
    """What Brax's environments pass around."""

    place: Any
    obs: Any
    reward: Any
    done: Any
    info: Any


class Slide:
    """Of Brax's protocol: a place that moves by the action, reward its size, done beyond 1; the observation is one of several.

    Its state holds a random key, as Playground's does.
    """

    observation_size = {"state": (2,), "privileged_state": (3,)}  # noqa: RUF012
    action_size = 2

    def _state(self, place, done, key):
        obs = {"state": place, "privileged_state": jax.random.normal(key, (3,))}
        return BraxState(place, obs, jnp.sum(jnp.abs(place)), done, {"rng": jax.random.split(key, 1)[0]})

    def reset(self, key):
        return self._state(jax.random.uniform(key, (2,), minval=-0.1, maxval=0.1), jnp.zeros(()), key)

    def step(self, state, action):
        place = state.place + 0.3 * action
        return self._state(place, (jnp.max(jnp.abs(place)) > 1).astype(jnp.float32), state.info["rng"])


def test_braxs_protocol_keeps_endings_apart_and_the_true_successor():
    env = from_brax(Slide(), max_steps=4)
    assert env.spec == s2ac.types.EnvSpec(2, (-1.0, -1.0), (1.0, 1.0))
    for action, endings in (
        ([1.0, 0.0], [(0, 0), (0, 0), (0, 0), (1, 0)]),
        ([0.0, 0.0], [(0, 0), (0, 0), (0, 0), (0, 1)]),
    ):
        state, start = env.reset(jax.random.key(0))
        for index, (terminated, truncated) in enumerate(endings, 1):
            state, new = env.step(jax.random.key(index), state, jnp.array(action))
            assert (bool(new.terminated), bool(new.truncated)) == (terminated, truncated), index
            np.testing.assert_allclose(new.observation, start + 0.3 * index * np.array(action), rtol=1e-5)
            np.testing.assert_allclose(new.reward, np.abs(new.observation).sum(), rtol=1e-6)


class Space(NamedTuple):
    """A box, as gymnax has it."""

    low: Any
    high: Any
    shape: tuple


class Params(NamedTuple):
    """Of an environment of gymnax's protocol."""

    max_steps_in_episode: int = 5


class Countdown:
    """Of gymnax's protocol: the first action, up to 2, sets how fast a clock runs; at 0 it is over."""

    def __init__(self, action_space=None):
        self.space = action_space or Space(-2.0, 2.0, ())

    def action_space(self, params):
        return self.space

    def observation_space(self, params):
        return Space(0, 1, (1, 2))

    def reset_env(self, key, params):
        state = jnp.array([3.0, 0.0])
        return state[None], state

    def step_env(self, key, state, action, params):
        assert action.shape == self.space.shape
        state = state - jnp.array([1.0, -1.0]) * jnp.array([action, 1.0])
        return state[None], state, action, state[0] <= 0, {}

    def is_truncated(self, state, params):
        return state[1] >= params.max_steps_in_episode


def test_gymnaxs_protocol_keeps_endings_apart_and_has_its_own_bounds():
    env = from_gymnax(Countdown(), Params())
    assert env.spec == s2ac.types.EnvSpec(2, (-2.0,), (2.0,))
    assert env.max_steps == 5
    for action, steps, ending in ((2.0, 2, (True, False)), (0.5, 5, (False, True))):
        state, _ = env.reset(jax.random.key(0))
        for _ in range(steps):
            state, new = env.step(jax.random.key(1), state, jnp.array([action]))
        assert (bool(new.terminated), bool(new.truncated)) == ending
        np.testing.assert_allclose(new.observation, [3 - steps * action, steps])


def test_an_environment_that_is_passed_trains_in_one_program_and_resumes_to_the_same_bytes(tmp_path):
    env = from_brax(Slide(), max_steps=7)
    whole = s2ac.Agent(env, "sac", 2, directory=tmp_path / "whole", **SMALL).learn(80)
    s2ac.Agent(env, "sac", 2, directory=tmp_path / "cut", **SMALL).learn(80, callback=lambda progress: False)
    cut = s2ac.load(tmp_path / "cut", env=env)
    assert cut.env_step < 80
    cut.learn(80 - cut.env_step)
    assert digest(tmp_path / "whole") == digest(tmp_path / "cut")
    assert (whole.evaluate(3).lengths <= 7).all()
    again = s2ac.load(tmp_path / "whole", env=env)
    np.testing.assert_array_equal(again.evaluate(3).returns, whole.evaluate(3).returns)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: from_gymnax(Countdown(object()), Params()), "has actions object: must be a Box; discrete actions are not supported"),
    (lambda: from_gymnax(Countdown(Space(-np.inf, 1.0, (1,))), Params()), "must be finite bounds"),
    (lambda: from_brax(object(), 5), "has no observation_size and action_size"),
    (lambda: from_brax(Slide(), 0), "max_steps = 0: must be an integer"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_in_a_line(make, message):
    with pytest.raises(InvalidArgument, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("library", ["gymnax", "brax", "playground"])
def test_a_library_that_is_missing_is_named_with_its_extra(library, monkeypatch):
    import sys

    for module in ("gymnax", "brax.envs", "mujoco_playground"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        InvalidArgument, match=rf"env = '{library}:Any' needs {library} .*pip install 's2ac\[{library}\]'"
    ):
        jax_env(f"{library}:Any")

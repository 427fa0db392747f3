"""Environments that take each action several times. Importing this module imports no JAX."""

from dataclasses import dataclass
from typing import Any

import gymnasium

from s2ac.envs.gymnasium.simulators import MakeEnv


class RepeatAction(gymnasium.Wrapper):
    """A step takes the action so many times, until the episode ends, and sums the rewards."""

    def __init__(self, env: gymnasium.Env, times: int) -> None:
        super().__init__(env)
        self.times = times

    def step(self, action: Any) -> Any:
        """What the last step gave, with the sum of the rewards; what is no step goes on as it is, to be refused."""
        total: Any = 0.0
        for _ in range(self.times):
            given = self.env.step(action)
            if not isinstance(given, tuple) or len(given) != 5:
                return given
            observation, reward, terminated, truncated, info = given
            total = total + reward
            if terminated or truncated:
                break
        return observation, total, terminated, truncated, info


@dataclass(frozen=True)
class Repeating:
    """A function that makes such environments; it can be sent to another process if `make` can."""

    make: MakeEnv
    times: int

    def __call__(self) -> gymnasium.Env:
        """One more."""
        env = self.make()
        return RepeatAction(env, self.times) if isinstance(env, gymnasium.Env) else env

    def at(self, index: int) -> MakeEnv:
        """The function of one of several environments."""
        return Repeating(self.make.at(index), self.times) if hasattr(self.make, "at") else self


def repeating(make: MakeEnv, times: int) -> MakeEnv:
    """The function itself where an action is taken once."""
    return make if times == 1 else Repeating(make, times)

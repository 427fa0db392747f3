"""Vector environments as input: their functions are taken, and their members stepped one by one as any others.

So it does not matter what becomes of an episode's last observation in their autoreset mode: the stored one is always the true successor.
"""

from dataclasses import dataclass

import gymnasium
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from s2ac.envs.gymnasium.adapter import CUSTOM
from s2ac.envs.gymnasium.simulators import MakeEnv, made
from s2ac.errors import InvalidArgument


@dataclass(frozen=True)
class Members:
    """The functions behind a vector environment: the n-th environment of each seed is made by the n-th, and so on from the first again."""

    functions: tuple[MakeEnv, ...]

    def __call__(self) -> gymnasium.Env:
        """One by the first function, where it does not matter which."""
        return self.functions[0]()

    def at(self, index: int) -> MakeEnv:
        """The function of one of them."""
        return self.functions[index % len(self.functions)]


def members_of(env: VectorEnv) -> tuple[str, Members]:
    """A vector environment's name and functions; refuses one that does more than to step what its functions make."""
    what = f"env = {type(env).__name__}"
    if type(env) not in (SyncVectorEnv, AsyncVectorEnv) or getattr(env, "worker", None) is not None:
        raise InvalidArgument(
            f"{what}: must be a plain SyncVectorEnv or AsyncVectorEnv; wrap the single environments, or pass a function that makes one"
        )
    members = Members(tuple(env.env_fns))  # type: ignore[attr-defined]
    one = made(members, what)
    try:
        return f"{CUSTOM}{type(one.unwrapped).__name__}", members
    finally:
        one.close()

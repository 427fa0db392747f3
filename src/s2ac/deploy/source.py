"""What exports and films need of a trained agent; `s2ac.Agent` has it."""

from typing import Any, Protocol

from s2ac.algorithms import Algorithm
from s2ac.types import EnvSpec


class Trained(Protocol):
    """A trained agent."""

    env_name: str
    algo: str
    version: str
    spec: EnvSpec
    algorithm: Algorithm
    algorithm_config: Any
    config: Any

    def policy_state(self, seed_index: int = 0) -> Any:
        """The algorithm's state of one seed."""

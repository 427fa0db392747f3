"""What a run does, apart from its algorithm's own numbers."""

import math
from dataclasses import dataclass
from typing import Annotated

from s2ac.ranges import Count, CountOrZero, Flag, Positive, between, each_of, validate

RULES = ("sample", "softmax", "argmax", "mean", "amortized", "explore")
"""Every algorithm's selection rules; which ones an algorithm has, it says itself."""


OF_GYMNASIUM = ("max_value", "workers", "worker_timeout", "overlap")
"""Fields that do nothing on environments written in JAX."""

OF_REPLAY = ("num_updates", "batch_size", "capacity", "warmup_steps", "overlap")
"""Fields that do nothing for an algorithm that learns from its own rollouts."""


@dataclass(frozen=True)
class RunConfig:
    """What a run does, apart from its algorithm's own numbers."""

    seeds: Count = 1
    """How many seeds to train, all in one compiled call."""

    first_seed: CountOrZero = 0
    """The first of them; the others follow."""

    steps: Annotated[float, between(1, math.inf, open_high=True)] = 100_000
    """Environment steps of each seed."""

    num_envs: Count = 1
    """Environments per seed."""

    horizon: Count = 1
    """Steps of each environment between two rounds of updates."""

    num_updates: Count = 1
    """Updates per round."""

    batch_size: Count = 256
    """Transitions per update."""

    capacity: Count = 100_000
    """Transitions that the replay keeps, per seed."""

    warmup_steps: CountOrZero = 1_000
    """Environment steps of uniform actions before the first update."""

    log_every: Count = 1_000
    """Environment steps between two records; also the length of a compiled chunk."""

    evaluate_every: Count = 10_000
    """Environment steps between two evaluations."""

    episodes: Count = 20
    """Episodes per evaluation, on seeds of their own."""

    select: Annotated[tuple[str, ...], each_of(RULES)] = ("sample",)
    """Selection rules to evaluate."""

    checkpoint_every: Count = 10_000
    """Environment steps between two checkpoints."""

    max_value: Positive = 1e8
    """Gymnasium: an observation or reward beyond this size is an error, as one that is not finite is."""

    workers: CountOrZero = 0
    """Gymnasium: processes that step the environments; 0: this process. The results are the same."""

    worker_timeout: Positive = 120.0
    """Gymnasium: seconds that a worker may take for a step; after that the run ends with an error."""

    overlap: Flag = False
    """Gymnasium: update while the environments step; the acting parameters are then one round old."""

    tensorboard: Flag = False
    """Also write the records to RUN/tensorboard, for TensorBoard (needs the extra `tb`)."""

    def __post_init__(self) -> None:
        validate(self)

    def without_effect(self) -> dict[str, str]:
        """Fields that do nothing beside the others' values: none; the environment and the algorithm decide, see `check_has_effect`."""
        return {}

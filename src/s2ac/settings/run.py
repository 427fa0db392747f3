"""A run's settings, apart from those of its algorithm."""

from dataclasses import dataclass
from typing import Annotated

from s2ac.ranges import (
    MOST,
    MOST_STEPS,
    Count,
    CountInAll,
    CountOrZero,
    Flag,
    at_least,
    between,
    each_of,
    validate,
)

RULES = ("sample", "softmax", "argmax", "mean", "amortized", "explore")
"""Every algorithm's selection rules; which ones an algorithm has, it says itself."""

Period = Annotated[int, at_least(1, 10**15)]
"""Steps between two events; more than the run has means never."""


OF_GYMNASIUM = ("max_value", "workers", "worker_timeout", "overlap")
"""Fields that do nothing on environments written in JAX."""

OF_REPLAY = ("num_updates", "batch_size", "capacity", "warmup_steps", "overlap")
"""Fields that do nothing for an algorithm that learns from its own rollouts."""


@dataclass(frozen=True)
class RunConfig:
    """A run's settings, apart from those of its algorithm."""

    seeds: Count = 1
    """How many seeds to train, all in one compiled call."""

    first_seed: Annotated[int, at_least(0, 2**31 - 1 - MOST)] = 0
    """Number of the first seed; the others follow."""

    steps: Annotated[float, between(1, MOST_STEPS)] = 100_000
    """Environment steps of each seed."""

    num_envs: Annotated[int, at_least(1, 2**20)] = 1
    """Environments per seed."""

    horizon: Annotated[int, at_least(1, 10**6)] = 1
    """Steps of each environment between two rounds of updates."""

    num_updates: Annotated[int, at_least(1, 10**6)] = 1
    """Updates per round."""

    batch_size: Annotated[int, at_least(1, 2**24)] = 256
    """Transitions per update."""

    capacity: CountInAll = 100_000
    """Transitions that the replay keeps, per seed."""

    warmup_steps: Annotated[int, at_least(0, MOST_STEPS)] = 1_000
    """Environment steps of uniform actions before the first update."""

    action_repeat: Annotated[int, at_least(1, 1_000)] = 1
    """Steps of the environment that take the same action. They count as one step of ours, with the sum of their rewards; `discount` is per step of ours."""

    log_every: Period = 1_000
    """Environment steps between two records; also the length of a compiled chunk."""

    evaluate_every: Period = 10_000
    """Environment steps between two evaluations."""

    episodes: Count = 20
    """Episodes per evaluation, with seeds of their own."""

    select: Annotated[tuple[str, ...], each_of(RULES)] = ("sample",)
    """Selection rules to evaluate."""

    checkpoint_every: Period = 10_000
    """Environment steps between two checkpoints."""

    max_value: Annotated[float, between(0, 1e38, open_low=True)] = 1e8
    """Gymnasium: a larger observation or reward is an error, as nan and infinity are."""

    workers: CountOrZero = 0
    """Gymnasium: processes that step the environments; 0: none but this one. The results do not depend on it."""

    worker_timeout: Annotated[float, between(0, 1e6, open_low=True)] = 120.0
    """Gymnasium: seconds that a worker may take for a step; after that the run ends with an error."""

    overlap: Flag = False
    """Gymnasium: update while the environments step; the acting parameters are then one round old."""

    tensorboard: Flag = False
    """Also write the records to RUN/tensorboard, for TensorBoard (needs the extra `tb`)."""

    wandb: Flag = False
    """Also write the records to RUN/wandb, for Weights & Biases; offline unless WANDB_MODE says otherwise (needs the extra `wandb`)."""

    def __post_init__(self) -> None:
        validate(self)

    @property
    def seed_range(self) -> range:
        """The numbers of the seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)

"""What a run does, apart from its algorithm's own numbers."""

import dataclasses
import math
from dataclasses import dataclass

from s2ac.checks import InvalidArgument, check_between, check_count, check_positive
from s2ac.training.device import LoopConfig
from s2ac.training.tensorboard import check_tensorboard


@dataclass(frozen=True)
class RunConfig:
    """What a run does, apart from its algorithm's own numbers."""

    seeds: int = 1
    """How many seeds to train, all in one compiled call."""

    first_seed: int = 0
    """The first of them; the others follow."""

    steps: float = 100_000
    """Environment steps of each seed."""

    num_envs: int = 4
    """Environments per seed."""

    horizon: int = 1
    """Steps of each environment between two rounds of updates."""

    num_updates: int = 1
    """Updates per round."""

    batch_size: int = 256
    """Transitions per update."""

    capacity: int = 100_000
    """Transitions that the replay keeps, per seed."""

    warmup_steps: int = 1_000
    """Environment steps of uniform actions before the first update."""

    log_every: int = 2_000
    """Environment steps between two records; also the length of a compiled chunk."""

    evaluate_every: int = 10_000
    """Environment steps between two evaluations."""

    episodes: int = 20
    """Episodes per evaluation, on seeds of their own."""

    select: tuple[str, ...] = ("sample",)
    """Selection rules to evaluate."""

    checkpoint_every: int = 10_000
    """Environment steps between two checkpoints."""

    max_value: float = 1e8
    """Gymnasium: an observation or reward beyond this size is an error, as one that is not finite is."""

    workers: int = 0
    """Gymnasium: processes that step the environments; 0: this process. The results are the same."""

    worker_timeout: float = 120.0
    """Gymnasium: seconds that a worker may take for a step; after that the run ends with an error."""

    overlap: bool = False
    """Gymnasium: update while the environments step; the acting parameters are then one round old."""

    tensorboard: bool = False
    """Also write the records to RUN/tensorboard, for TensorBoard (needs the extra `tb`)."""

    def check(self) -> None:
        """Refuse numbers out of range."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "steps":
                check_between(field.name, value, 1, math.inf, open_high=True)
            elif field.name in ("max_value", "worker_timeout"):
                check_positive(field.name, value)
            elif field.name in ("tensorboard", "overlap"):
                if not isinstance(value, bool):
                    raise InvalidArgument(f"{field.name} = {value!r}: must be True or False")
            elif field.name != "select":
                check_count(field.name, value, 0 if field.name in ("first_seed", "warmup_steps", "workers") else 1)
        if self.tensorboard:
            check_tensorboard()

    def loop(self) -> LoopConfig:
        """The part that the loop sees."""
        return LoopConfig(**{name: getattr(self, name) for name in LoopConfig._fields})

"""SAC: a squashed Gaussian whose parameters a network gives (Haarnoja et al. 2018); see `start.py` and `maxent.py`."""

from dataclasses import dataclass

from s2ac.algorithms.config import MaxEntConfig
from s2ac.algorithms.maxent import make_maxent
from s2ac.algorithms.protocol import Algorithm
from s2ac.algorithms.start import make_start_policy
from s2ac.errors import InvalidArgument, is_known
from s2ac.ranges import Positive
from s2ac.types import EnvSpec


@dataclass(frozen=True)
class SacConfig(MaxEntConfig):
    """SAC; fixed temperature, or a learned one with `learn_alpha`."""

    min_std: Positive = 0.0067
    """Smallest standard deviation of the Gaussian, before tanh: e⁻⁵."""

    max_std: Positive = 7.389
    """Largest standard deviation, before tanh: e²."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_known(self.min_std) and is_known(self.max_std) and self.min_std >= self.max_std:
            raise InvalidArgument(f"min_std = {self.min_std}: must be below max_std = {self.max_std}")


def make_sac(spec: EnvSpec, config: SacConfig) -> Algorithm:
    """SAC."""
    return make_maxent(spec, config, make_start_policy(spec, config))

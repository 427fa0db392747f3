"""SAC-NF: SAC whose Gaussian passes through a normalising flow before the squash (Mazoure et al. 2019); see `start.py`.

The flows do not depend on the observation, and start near the identity. With `num_flows = 0` this is SAC, bit for bit.
"""

from dataclasses import dataclass
from typing import Annotated

from s2ac.algorithms.maxent import make_maxent
from s2ac.algorithms.protocol import Algorithm
from s2ac.algorithms.sac import SacConfig
from s2ac.algorithms.start import make_start_policy
from s2ac.flows import FLOWS
from s2ac.ranges import CountOrZero, one_of
from s2ac.types import EnvSpec


@dataclass(frozen=True)
class SacNfConfig(SacConfig):
    """SAC with a normalising flow."""

    flow: Annotated[str, one_of(FLOWS)] = "radial"
    """radial, planar, coupling or iaf (inverse autoregressive)."""

    num_flows: CountOrZero = 3
    """K, the number of flows; with 0 it is SAC."""

    def without_effect(self) -> dict[str, str]:
        """Fields that do nothing beside the others' values, each with the reason."""
        return super().without_effect() | (
            {} if self.num_flows else {"flow": "where there are no flows (num_flows = 0)"}
        )


def make_sac_nf(spec: EnvSpec, config: SacNfConfig) -> Algorithm:
    """SAC-NF."""
    return make_maxent(spec, config, make_start_policy(spec, config))

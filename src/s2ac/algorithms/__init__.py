"""The algorithms. Reading path for the paper's reader: `s2ac.py`, `maxent.py`, `samplers/svgd.py`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from s2ac.algorithms.ddpg import DdpgConfig, make_ddpg
from s2ac.algorithms.ppo import PpoConfig, make_ppo
from s2ac.algorithms.protocol import ActionSample, Algorithm, Policy
from s2ac.algorithms.s2ac import make_s2ac
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.algorithms.sac_nf import SacNfConfig, make_sac_nf
from s2ac.algorithms.sql import SqlConfig, make_sql
from s2ac.types import EnvSpec

__all__ = ["ALGORITHMS", "ActionSample", "Algorithm", "Entry", "Policy"]


class Entry(NamedTuple):
    """An algorithm by name: how to make it, the config it starts from, and what its runs do differently."""

    make: Callable[[EnvSpec, Any], Algorithm]
    config: Any
    run: Mapping[str, Any] = MappingProxyType({})  # fields of `RunConfig`


PHI = S2acConfig(
    start_std=0.707, start_alpha=None, num_steps=10, num_particles=16, weighted=True,
    alpha=0.2, learn_alpha=False,  # a fixed start meets no aim of the entropy in many dimensions: α would go to 0
)  # fmt: skip

ALGORITHMS: dict[str, Entry] = {
    "s2ac": Entry(make_s2ac, S2acConfig()),
    "s2ac-phi": Entry(make_s2ac, PHI),
    "s2ac-amortized": Entry(make_s2ac, S2acConfig(amortized=True)),
    "sac": Entry(make_sac, SacConfig()),
    "sac-nf": Entry(make_sac_nf, SacNfConfig()),
    "sql": Entry(make_sql, SqlConfig()),
    "ddpg": Entry(make_ddpg, DdpgConfig()),
    "ppo": Entry(make_ppo, PpoConfig(), {"num_envs": 4, "horizon": 512}),
}

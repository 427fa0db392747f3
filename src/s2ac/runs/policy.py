"""A trained policy from a run's directory: its networks alone, without its replay and without a training loop."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from s2ac.algorithms import ALGORITHMS, Algorithm
from s2ac.envs.gymnasium.simulators import MakeEnv
from s2ac.envs.registry import probe
from s2ac.errors import check_name
from s2ac.runs import checkpoint
from s2ac.runs.about import check_described, configs_of, read_about
from s2ac.settings import RunConfig
from s2ac.types import EnvSpec


class LoadedPolicy(NamedTuple):
    """What loading, evaluation, reports, films and exports need of a run."""

    directory: Path
    about: dict[str, Any]
    algorithm_config: Any
    config: RunConfig
    spec: EnvSpec
    layout: Any
    algorithm: Algorithm
    states: Any  # the algorithm's, [S, …]
    manifest: dict[str, Any]
    arrays: dict[str, np.ndarray]  # all that the checkpoint holds but the replay's rows
    complaints: list[str]

    @property
    def env_name(self) -> str:
        """The environment's name."""
        return self.about["env"]

    @property
    def step(self) -> int:
        """Environment steps of each seed when it was saved."""
        return int(self.manifest["step"])


def load_policy(directory: Path, make: MakeEnv | None = None) -> LoadedPolicy:
    """The policy of the newest checkpoint that verifies; `make` makes an environment that the name does not say, where an old
    checkpoint does not tell its sizes."""
    about = read_about(directory)
    check_name(f"{directory}/run.json: algo", about.get("algo"), ALGORITHMS)
    algorithm_config, config = configs_of(about, directory)
    manifest, arrays, _, complaints = checkpoint.load_latest(directory, replay=False)
    check_described(directory, about, manifest)
    spec, layout = spec_in(manifest["facts"]) or probe(about["env"], make)
    algorithm = ALGORITHMS[about["algo"]].make(spec, algorithm_config)
    like = jax.eval_shape(jax.vmap(algorithm.init), jax.random.split(jax.random.key(0), config.seeds))
    own = {name: array for name, array in arrays.items() if name.startswith("['algorithm']")}
    states = checkpoint.arrays_to_tree({"algorithm": like}, own)["algorithm"]
    return LoadedPolicy(
        directory, about, algorithm_config, config, spec, layout, algorithm, states, manifest, arrays, complaints
    )


def spec_in(facts: dict[str, Any]) -> tuple[EnvSpec, Any] | None:
    """Sizes and layout as a checkpoint tells them; the earliest do not."""
    if "spec" not in facts:
        return None
    low, high = (tuple(facts["spec"][f"action_{end}"]) for end in ("low", "high"))
    return EnvSpec(facts["spec"]["observation_size"], low, high), facts.get("layout")

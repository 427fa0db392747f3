"""The command `export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True)
class Export:
    """Write a trained policy as a file that runs without this package, checked against it on 1,000 observations."""

    run: tyro.conf.Positional[str]
    """The run's directory, or a shipped agent's name."""

    format: Literal["onnx", "stablehlo", "weights"] = "onnx"
    """onnx (any runtime), stablehlo (JAX), or weights (safetensors and JSON, for one network)."""

    select: Literal["argmax", "sample", "softmax", "mean", "amortized"] | None = None
    """The selection rule. Its random numbers become an input of the file. Default: sample; with --format weights, amortized or mean if sample needs more than one network."""

    out: str | None = None
    """The file. Default: RUN/policy-SELECT with the format's ending."""

    batch: int = 1
    """Observations per call, fixed in the file."""

    seed_index: int = 0
    """Which seed's policy, 0 for the run's first seed."""

    noise_seed: int | None = None
    """Draw the noise from this seed and fix it inside, so that the file takes only an observation."""

    def __call__(self) -> None:
        """Export, and say how well the file agrees."""
        from s2ac.agent import load
        from s2ac.deploy.export import CHECKED, FORMATS, export, rule_for

        agent, run = load(self.run), Path(self.run)
        select = self.select or rule_for(agent, self.format)
        beside = run if run.exists() else Path()  # a shipped agent's own place stays as it is
        file = Path(self.out) if self.out else beside / f"policy-{select}{FORMATS[self.format]}"
        made = export(
            agent,
            file,
            self.format,
            select,
            batch=self.batch,
            seed_index=self.seed_index,
            noise_seed=self.noise_seed,
        )
        noise = f" and {made.noise_size} standard normal numbers" if made.noise_size else ""
        ties = f", {made.ties} decided by rounding" if made.ties else ""
        sizes = agent.spec.observation_size, agent.spec.action_size
        print(f"{made.file}: by {select}, an observation of {sizes[0]} numbers{noise} to an action of {sizes[1]}")
        print(
            f"checked on {CHECKED} observations: differs from the JAX policy by at most {made.max_difference:.1e}{ties}"
        )

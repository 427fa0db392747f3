"""The command `export`: an agent from its directory, its policy to a file."""

from pathlib import Path

from s2ac.agent import load
from s2ac.deploy.export import CHECKED, FORMATS, export


def run_export(
    run: Path, out: Path | None, format: str, select: str, batch: int, seed_index: int, noise_seed: int | None
) -> None:
    """The command `export`."""
    agent = load(run)
    beside = run if run.exists() else Path()  # a shipped agent's own place stays as it is
    file = out or beside / f"policy-{select}{FORMATS[format]}"
    made = export(agent, file, format, select, batch=batch, seed_index=seed_index, noise_seed=noise_seed)
    noise = f" and {made.noise_size} standard normal numbers" if made.noise_size else ""
    ties = f", {made.ties} decided by rounding" if made.ties else ""
    sizes = agent.spec.observation_size, agent.spec.action_size
    print(f"{made.file}: an observation of {sizes[0]} numbers{noise} to an action of {sizes[1]}")
    print(f"checked on {CHECKED} observations: differs from the JAX policy by at most {made.max_difference:.1e}{ties}")

"""A run's records for TensorBoard and for Weights & Biases, beside metrics.jsonl; two extras."""

import importlib.util
import os
import secrets
from pathlib import Path
from typing import Any, Protocol

from s2ac.errors import InvalidArgument
from s2ac.settings import RunConfig

PACKAGES = {"tensorboard": ("tensorboardX", "tb"), "wandb": ("wandb", "wandb")}
"""Of each logger's setting, the package that it needs and the extra that has it."""


class Logger(Protocol):
    """Takes records as they are made; a resumed run goes on with what it has."""

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Write every number of the rows."""

    def close(self) -> None:
        """Write what is left."""


def check_loggers(config: RunConfig) -> None:
    """Refuse what is asked for if its package is missing; asked before a run makes any file."""
    for name, (package, extra) in PACKAGES.items():
        if getattr(config, name) and importlib.util.find_spec(package) is None:
            raise InvalidArgument(f"{name} = True needs {package}: pip install 's2ac[{extra}]'")


def loggers(config: RunConfig, directory: Path, about: dict[str, Any], env_step: int) -> list[Logger]:
    """Those that the run asks for."""
    check_loggers(config)
    made: list[Logger] = []
    if config.tensorboard:
        made.append(Tensorboard(directory / "tensorboard", env_step))
    if config.wandb:
        made.append(WeightsAndBiases(directory, about))
    return made


def scalars(row: dict[str, Any]) -> dict[str, float]:
    """A record's numbers by the names that loggers show: `seed_0/train/critic_loss` and so on."""
    group = "/".join([f"seed_{row['seed']}", row["kind"], *([row["rule"]] if "rule" in row else [])])
    numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
    return {f"{group}/{name}": value for name, value in numbers.items() if name not in ("seed", "env_step")}


class Tensorboard:
    """RUN/tensorboard; a resumed run replaces what came after its step."""

    def __init__(self, directory: Path, env_step: int) -> None:
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(directory), purge_step=env_step + 1 if env_step else None)

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Write every number of the rows."""
        for row in rows:
            for name, value in scalars(row).items():
                self.writer.add_scalar(name, value, row["env_step"])
        self.writer.flush()

    def close(self) -> None:
        """Close the file."""
        self.writer.close()


class WeightsAndBiases:
    """RUN/wandb, offline: `wandb sync` sends it, or WANDB_MODE=online in the environment does so at once. A resumed run goes on under
    the same identity. What the package would tell of the machine and the code is left out."""

    def __init__(self, directory: Path, about: dict[str, Any]) -> None:
        import wandb

        place = directory / "wandb"
        place.mkdir(exist_ok=True)
        if not (place / "id").exists():
            (place / "id").write_text(secrets.token_hex(8), encoding="utf-8")
        quiet: Any = {"console": "off", "silent": True, "disable_git": True, "disable_code": True}
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        self.run = wandb.init(
            dir=str(directory),
            id=(place / "id").read_text(encoding="utf-8"),
            resume="allow",
            name=directory.resolve().name,
            project=os.environ.get("WANDB_PROJECT", "s2ac"),
            mode=mode,
            config=about,
            settings=wandb.Settings(x_disable_stats=True, x_disable_meta=True, **quiet),
        )
        self.run.define_metric("*", step_metric="env_step")

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Write every number of the rows."""
        for row in rows:
            self.run.log({"env_step": row["env_step"], **scalars(row)})

    def close(self) -> None:
        """Write what is left."""
        self.run.finish()

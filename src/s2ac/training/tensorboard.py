"""A run's records for TensorBoard, beside metrics.jsonl; an extra."""

import importlib.util
from pathlib import Path
from typing import Any

from s2ac.errors import InvalidArgument


def check_tensorboard() -> None:
    """Refuse if the package is missing; asked before a run makes any file."""
    if importlib.util.find_spec("tensorboardX") is None:
        raise InvalidArgument("tensorboard = True needs tensorboardX: pip install 's2ac[tb]'")


class Tensorboard:
    """Scalars of every seed, `seed_0/train/critic_loss` and so on; a resumed run replaces what came after its step."""

    def __init__(self, directory: Path, env_step: int) -> None:
        check_tensorboard()
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(directory), purge_step=env_step + 1 if env_step else None)

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Write every number of the rows."""
        for row in rows:
            group = "/".join([f"seed_{row['seed']}", row["kind"], *([row["rule"]] if "rule" in row else [])])
            for name, value in row.items():
                if name not in ("seed", "env_step") and isinstance(value, int | float):
                    self.writer.add_scalar(f"{group}/{name}", value, row["env_step"])
        self.writer.flush()

    def __enter__(self) -> "Tensorboard":
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()

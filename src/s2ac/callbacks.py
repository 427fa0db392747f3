"""What `Agent.learn` calls between two chunks of training.

A callback is any function of a `Progress`; it returns False, or raises `StopTraining`, to end training. These are ready to use:

    agent.learn(100_000, callback=together(KeepBest("best"), StopAt(-200)))
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class StopTraining(Exception):
    """Raise it in a callback to end `learn`; the state is saved and `learn` returns."""


class Progress(NamedTuple):
    """What a callback gets between two chunks of training."""

    env_step: int  # environment steps of each seed so far
    records: list[dict[str, Any]]  # of this chunk: one per seed, and those of an evaluation if there was one
    agent: Any  # the `s2ac.Agent` that learns

    def evaluated(self, select: str | None = None) -> float | None:
        """Mean return over all seeds of the evaluation by `select`, or by the first rule; None if there was no evaluation."""
        rows = [row for row in self.records if row["kind"] == "evaluation"]
        rule = select or (rows[0]["rule"] if rows else None)
        returns = [row["return"] for row in rows if row["rule"] == rule]
        return float(np.mean(returns)) if returns else None


Callback = Callable[[Progress], bool | None]


def together(*callbacks: Callback) -> Callback:
    """Call several callbacks in order; training ends if any of them asks for it."""

    def all_of_them(progress: Progress) -> bool:
        said = [callback(progress) for callback in callbacks]  # each is called, whatever the others say
        return all(one is not False for one in said)

    return all_of_them


class StopAt:
    """Ends training once an evaluation's mean return is at least a threshold."""

    def __init__(self, threshold: float, select: str | None = None) -> None:
        self.threshold, self.select = threshold, select

    def __call__(self, progress: Progress) -> bool:
        """Whether to continue."""
        value = progress.evaluated(self.select)
        return value is None or value < self.threshold


class KeepBest:
    """Saves the agent, for `s2ac.load`, whenever an evaluation's mean return is the best so far."""

    def __init__(self, directory: str | Path, select: str | None = None) -> None:
        self.directory, self.select, self.best = Path(directory), select, -np.inf

    def __call__(self, progress: Progress) -> None:
        """Save, if it is the best."""
        value = progress.evaluated(self.select)
        if value is not None and value > self.best:
            self.best = value
            progress.agent.save(self.directory)


class Asked:
    """A callback as the trainer calls it, with what it said."""

    def __init__(self, callback: Callback | None, run: Any, agent: Any) -> None:
        self.callback, self.run, self.agent, self.stopped = callback, run, agent, False

    def __call__(self, records: list[dict[str, Any]]) -> bool:
        """Whether to continue. What the callback raises is passed on, with a word on where the state is."""
        if self.callback is None:
            return True
        try:
            self.stopped = self.callback(Progress(self.run.env_step, records, self.agent)) is False
        except StopTraining:
            self.stopped = True
        except Exception as error:
            inner = error.__traceback__.tb_next if error.__traceback__ else None
            error.add_note(f"(raised by the callback; the state is saved: s2ac.load({str(self.run.directory)!r}))")
            raise error.with_traceback(inner) from error.__cause__
        return not self.stopped

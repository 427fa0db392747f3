"""The trainer: chunks of training, and between them records, evaluation, checkpoints and signals.

    RUN/run.json        what was asked for: environment, algorithm, seeds, every number
    RUN/metrics.jsonl   one line per seed and chunk, and one per seed, evaluation and rule
    RUN/checkpoints, RUN/replay, RUN/lock

A run stopped at any moment and resumed gives the same numbers, bit for bit, as one never stopped, on the same machine and
versions: keys come from the seed and the iteration, and the checkpoint holds the rest.
"""

import dataclasses
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np
from tqdm import tqdm

import s2ac
from s2ac.algorithms import ALGORITHMS
from s2ac.checks import (
    Diverged,
    InvalidArgument,
    S2acError,
    check_name,
)
from s2ac.envs.base import JaxEnv
from s2ac.envs.gymnasium import CUSTOM, MakeEnv, maker
from s2ac.envs.multigoal import MultigoalConfig, make_multigoal
from s2ac.replay import fetch
from s2ac.training import checkpoint
from s2ac.training.about import read_about, same_run
from s2ac.training.config import RunConfig
from s2ac.training.device import DeviceLoop, Episodes, LoopState
from s2ac.training.host import HostLoop
from s2ac.training.lock import lock
from s2ac.training.records import Records
from s2ac.training.signals import signals
from s2ac.training.tensorboard import Tensorboard
from s2ac.types import Transition

ENVS: dict[str, Callable[[], JaxEnv]] = {
    "multigoal": make_multigoal,
    "multigoal-far": lambda: make_multigoal(MultigoalConfig(goal_reward=300.0)),
}


class Run:
    """A run in a directory: its parts, its state, and how far it is."""

    def __init__(
        self,
        directory: Path,
        env_name: str,
        algo: str,
        algorithm_config: Any,
        config: RunConfig,
        make_env: MakeEnv | None = None,
    ) -> None:
        """`make_env` makes an environment of the user's own, which `env_name` then only describes."""
        config.check()
        check_name("algo", algo, ALGORITHMS)
        rollout, parts = config.horizon * config.num_envs, getattr(algorithm_config, "num_minibatches", 1)
        if rollout % parts:
            raise InvalidArgument(
                f"num_minibatches = {parts}: must divide a rollout, horizon · num_envs = {rollout} steps"
            )
        self.directory, self.config = directory, config
        self.about: dict[str, Any] = {
            "env": env_name,
            "algo": algo,
            "algorithm": dataclasses.asdict(algorithm_config),
            "run": dataclasses.asdict(config),
        }
        loop = config.loop()
        seeds = list(range(config.first_seed, config.first_seed + config.seeds))
        make = lambda spec: ALGORITHMS[algo].make(spec, algorithm_config)  # noqa: E731
        self.loop: DeviceLoop | HostLoop
        if make_env is None and env_name.startswith(CUSTOM):
            raise InvalidArgument(
                f"env = {env_name!r} is an environment of your own: s2ac.load({str(directory)!r}, env=...) with it"
            )
        if make_env is None and env_name in ENVS:
            self.loop = DeviceLoop(ENVS[env_name](), make, seeds, loop)
        else:
            self.loop = HostLoop(make_env or maker(env_name, tuple(ENVS)), env_name, make, seeds, loop)
        self.algorithm = self.loop.algorithm
        for rule in config.select:
            check_name("select", rule, self.algorithm.rules)
        self.steps_per_round = loop.num_envs * loop.horizon
        self.env_step = 0
        self.records: Records | None = None
        self.differs = ""  # why training on from a checkpoint is not what it would have been without a stop
        self._ready = False  # whether a chunk has begun, so that the replay is known to be filled
        self._claimed_rows: int | None = None  # of a restored run, until its files are cut back to the checkpoint
        self.aim(config.steps)

    def aim(self, steps: float) -> None:
        """Train up to `steps` in all: in chunks of equal length, so that one compilation serves all of them."""
        config = self.config = dataclasses.replace(self.config, steps=steps)
        self.about["run"]["steps"] = steps
        left = int(steps) - (self.env_step or config.warmup_steps)
        rounds = max(1, -(-left // self.steps_per_round))
        chunks = max(1, -(-rounds * self.steps_per_round // config.log_every))
        self.rounds_per_chunk = -(-rounds // chunks)

    def claim(self) -> None:
        """Drop what a crash left in the replay beyond the checkpoint. Only who holds the lock may: looking at a run that
        another process trains must change nothing."""
        if self._claimed_rows is not None:
            checkpoint.drop_rows_after(self.directory, self._claimed_rows)
            self._claimed_rows = None

    def start_over(self) -> None:
        """Begin where there is no checkpoint; what a crash left is dropped by whoever trains."""
        self.records, self._claimed_rows = Records(self.directory / "metrics.jsonl", 0), 0

    def play(self, rules: tuple[str, ...], episodes: int) -> dict[str, Episodes]:
        """Evaluation episodes of every seed by every rule."""
        return self.loop.play_rules(rules, episodes)

    def advance(self) -> list[dict[str, Any]]:
        """One chunk (the warm-up first); the records of every seed. Divergence is an error before anything is saved."""
        if not self._ready and (self.env_step == 0 or self.lacks_replay()):
            before = int(self.loop.state.iteration[0])
            self.loop.warm_up()
            self.env_step += (int(self.loop.state.iteration[0]) - before) * self.config.num_envs
        self._ready = True
        started = time.perf_counter()
        metrics = self.loop.advance(self.rounds_per_chunk)
        seconds = time.perf_counter() - started
        self.env_step += self.rounds_per_chunk * self.steps_per_round
        for name, values in metrics.items():
            if not np.isfinite(values).all():
                seed = self.config.first_seed + int(np.argmin(np.isfinite(values)))
                raise Diverged(
                    f"{name} of seed {seed} is not finite after {self.env_step} steps; the last checkpoint is good"
                )
        speed = self.config.seeds * self.rounds_per_chunk * self.steps_per_round / seconds
        return [
            {
                "kind": "train",
                "seed": self.config.first_seed + index,
                "env_step": self.env_step,
                **{name: float(values[index]) for name, values in metrics.items()},
                "wall_steps_per_second": round(speed, 1),
            }
            for index in range(self.config.seeds)
        ]

    def lacks_replay(self) -> bool:
        """Whether the replay is empty, as in a run that was saved without it."""
        return self.algorithm.experience == "replay" and int(self.loop.state.replay.added[0]) == 0

    def evaluation(self) -> list[dict[str, Any]]:
        """Records of an evaluation by every rule asked for."""
        rows = []
        for rule, played in self.play(tuple(self.config.select), self.config.episodes).items():
            for index in range(self.config.seeds):
                rows.append(
                    {
                        "kind": "evaluation",
                        "seed": self.config.first_seed + index,
                        "env_step": self.env_step,
                        "rule": rule,
                        "return": float(played.total[index].mean()),
                        "returns": [round(float(value), 4) for value in played.total[index]],
                        "length": float(played.length[index].mean()),
                    }
                )
        return rows

    def save(self, directory: Path | None = None, replay: bool = True) -> None:
        """Write a checkpoint of everything; to another directory, a copy that may leave out the replay."""
        state, to = self.loop.state, directory or self.directory
        added = int(state.replay.added[0]) if replay else 0
        capacity = self.config.capacity
        begin = max(checkpoint.saved_rows(to), added - capacity)
        index = np.arange(begin, added) % capacity
        rows = fetch(state.replay.data, index)
        facts = {
            "about": self.about,
            "metrics_offset": self.records.offset() if self.records and directory is None else 0,
            "spec": self.loop.spec._asdict(),
            "layout": self.loop.layout,
            "copy": directory is not None,
            "fingerprint": fingerprint(),
            "extra": self.loop.extra(),
        }
        small = self._small()
        if not replay:
            small["replay"] = np.zeros_like(small["replay"])
        checkpoint.save_checkpoint(to, self.env_step, small, facts, rows, added, capacity)

    def _small(self) -> Any:
        """The state without the replay's rows, which are saved apart."""
        state = self.loop.state
        return {**state._asdict(), "replay": state.replay.added}

    def restore(self) -> list[str]:
        """Take up the newest good checkpoint; what there is to say about it."""
        manifest, arrays, segments, complaints = checkpoint.load_latest(self.directory)
        if not same_run(manifest["facts"]["about"], read_about(self.directory)):
            raise checkpoint.DamagedCheckpoint(
                f"{self.directory}: the checkpoint is not of the run that run.json describes"
            )
        restored = checkpoint.arrays_to_tree(self._small(), arrays)
        replay = self.loop.state.replay
        data = jax.tree.map(lambda field: np.array(field), jax.device_get(replay.data))
        added = int(manifest["added"])
        for first, rows in segments:
            num = rows["reward"].shape[1]
            index = np.arange(first, first + num)
            index = index[(index >= added - self.config.capacity) & (index < added)]
            for name, field in data._asdict().items():
                field[:, index % self.config.capacity] = rows[name][:, index - first]
        replay = replay._replace(data=Transition(*data), added=restored.pop("replay"))
        self.loop.state = jax.device_put(LoopState(replay=replay, **restored))
        self.loop.set_extra(manifest["facts"]["extra"])
        self._claimed_rows, self._ready = added, False
        self.env_step = int(manifest["step"])
        if not manifest["facts"].get("copy"):
            self.records = Records(self.directory / "metrics.jsonl", int(manifest["facts"]["metrics_offset"]))
        now, then = fingerprint(), manifest["facts"]["fingerprint"]
        changed = [
            f"{name} was {then.get(name) or 'unset'}, is {now[name] or 'unset'}"
            for name in now
            if now[name] != then.get(name)
        ]
        if changed and not manifest["facts"].get("copy"):  # a copy starts anew, wherever it is loaded
            self.differs = "the resumed run is valid but not bit-identical: " + "; ".join(changed)
        return complaints


def fingerprint() -> dict[str, str]:
    """What bit-identity depends on."""
    return {
        "s2ac": s2ac.__version__,
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "device": jax.devices()[0].device_kind,
        "NPROC": os.environ.get("NPROC", ""),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }


def start(directory: Path, env: str, algo: str, algorithm_config: Any, config: RunConfig) -> Run:
    """A new run; its directory must not hold one."""
    run = Run(directory, env, algo, algorithm_config, config)  # refuses bad settings before any file is made
    begin(run)
    return run


def begin(run: Run) -> None:
    """Make the run's directory and its first files."""
    directory = run.directory
    if (directory / "run.json").exists():
        raise InvalidArgument(
            f"out = {str(directory)!r} holds a run already: resume it with `s2ac train --resume {directory}`"
        )
    write_about(run, directory)
    run.records = Records(directory / "metrics.jsonl", 0)


def write_about(run: Run, directory: Path) -> None:
    """Write run.json; a crash leaves the old one or the new one."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        aside = directory / f"run.json.tmp-{os.getpid()}"
        aside.write_text(json.dumps(run.about, indent=2) + "\n", encoding="utf-8")
        aside.replace(directory / "run.json")
    except OSError as error:
        raise checkpoint.DiskError(f"cannot write to {directory}: {error.strerror}") from error


def configs_of(about: dict[str, Any], directory: Path) -> tuple[Any, RunConfig]:
    """The algorithm's config and the run's, from run.json."""
    try:
        entry = ALGORITHMS[about["algo"]]
        tupled = {
            name: tuple(value) if isinstance(value, list) else value for name, value in about["algorithm"].items()
        }
        algorithm_config = dataclasses.replace(entry.config, **tupled)
        return algorithm_config, RunConfig(**{**about["run"], "select": tuple(about["run"]["select"])})
    except (InvalidArgument, ValueError, KeyError, TypeError) as error:
        raise S2acError(f"{directory}/run.json is damaged: {error}") from error


def open_run(directory: Path, make_env: MakeEnv | None = None) -> tuple[Run, list[str]]:
    """A run from its directory, at its newest good checkpoint."""
    run = _run_of(directory, make_env)
    return run, run.restore()


def _run_of(directory: Path, make_env: MakeEnv | None = None) -> Run:
    """A run as run.json describes it, at its beginning."""
    about = read_about(directory)
    algorithm_config, config = configs_of(about, directory)
    return Run(directory, about["env"], about["algo"], algorithm_config, config, make_env)


def resume(directory: Path, steps: float | None = None) -> tuple[Run, list[str]]:
    """A run to go on with, and what there is to say about it: at its newest good checkpoint, or at its beginning if it ended before
    the first one was written. With `steps` it goes on to so many in all."""
    if checkpoint.has_any(directory):
        run, complaints = open_run(directory)
        complaints += [run.differs] if run.differs else []
    else:
        run, complaints = _run_of(directory), ["there is no checkpoint yet: it begins anew, with the same settings"]
        run.start_over()
    if steps is not None:
        if steps <= run.env_step:
            raise InvalidArgument(f"steps = {steps:g}: must be above {run.env_step}, where the run is")
        dataclasses.replace(run.config, steps=steps).check()
        run.aim(steps)
        with lock(directory):
            write_about(run, directory)
    return run, complaints


def train(run: Run, callback: Callable[[list[dict[str, Any]]], bool] | None = None) -> bool:
    """Train until the run's steps are done or a signal asks to stop; whether it is done. Ends with a checkpoint.

    `callback` gets each chunk's records and says whether to go on; if it raises, the state is saved first.
    """
    config, total = run.config, int(run.config.steps)
    records = run.records = run.records or Records(run.directory / "metrics.jsonl", 0)
    board = Tensorboard(run.directory / "tensorboard", run.env_step) if config.tensorboard else None

    def due(every: int, before: int) -> bool:
        return before // every != run.env_step // every

    bar = tqdm(total=total, initial=min(run.env_step, total), unit="step", disable=not sys.stderr.isatty())
    with signals() as stop, lock(run.directory), bar, board or nullcontext():
        run.claim()
        saved = run.env_step
        while run.env_step < total and not stop.asked:
            before = run.env_step
            rows = run.advance()
            evaluated = run.evaluation() if due(config.evaluate_every, before) or run.env_step >= total else []
            records.add([*rows, *evaluated])
            if board:
                board.add([*rows, *evaluated])
            if callback:
                try:
                    if not callback([*rows, *evaluated]):
                        stop.asked = True
                except BaseException:
                    run.save()
                    raise
            if due(config.checkpoint_every, before):
                run.save()
                saved = run.env_step
            ended = [row["return"] for row in rows if row["episodes"]]
            mean_return = f"{np.mean(ended):.1f}" if ended else "–"  # no episode has ended in this chunk
            bar.update(run.env_step - before)
            bar.set_postfix({"return": mean_return})
            if bar.disable:
                print(
                    f"step {run.env_step} of {total}: return {mean_return}, {rows[0]['wall_steps_per_second']:.0f} steps/s",
                    flush=True,
                )
        if run.env_step != saved:  # here, so that no signal can come between a look at it and the loop's end
            run.save()
    if run.env_step < total:
        print(f"stopped at step {run.env_step}; resume with: s2ac train --resume {run.directory}", flush=True)
    return run.env_step >= total

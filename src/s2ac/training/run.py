"""A run in a directory: its parts, its state, how far it is, and its checkpoints."""

import dataclasses
import hashlib
import os
import platform
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

import s2ac
from s2ac.algorithms import ALGORITHMS
from s2ac.envs.jax_env import JaxEnv
from s2ac.envs.registry import Make, jax_env, maker_of
from s2ac.errors import Diverged, InvalidArgument, check_name
from s2ac.ranges import default_of
from s2ac.replay import fetch
from s2ac.runs import checkpoint
from s2ac.runs.about import check_same, read_about
from s2ac.runs.begun import mark_saved
from s2ac.runs.lock import RunInUse
from s2ac.runs.manifest import VERSION, DamagedCheckpoint, facts_of
from s2ac.runs.records import Records
from s2ac.runs.rows import place
from s2ac.runs.rows import refill as refilled
from s2ac.runs.trees import arrays_to_tree, tree_to_arrays
from s2ac.settings import RunConfig
from s2ac.settings.run import OF_GYMNASIUM, OF_REPLAY
from s2ac.training.device import DeviceLoop
from s2ac.training.host import HostLoop
from s2ac.training.loggers import check_loggers
from s2ac.training.loop import LoopState, Tick, ignore, no_episodes, with_warm_up
from s2ac.types import Transition


def check_has_effect(config: RunConfig, names: tuple[str, ...], why: str) -> None:
    """Refuse settings of a run that do nothing with its environment or its algorithm."""
    for name in names:
        if getattr(config, name) != default_of(RunConfig, name):
            raise InvalidArgument(f"{name} = {getattr(config, name)}: must be left out, it has no effect {why}")


class Run:
    """A run in a directory: its parts, its state, and how far it is."""

    def __init__(
        self,
        directory: Path,
        env_name: str,
        algo: str,
        algorithm_config: Any,
        config: RunConfig,
        make_env: Make = None,
    ) -> None:
        """`make_env` makes an environment of the user's own, which `env_name` then only describes."""
        check_loggers(config)
        check_name("algo", algo, ALGORITHMS)
        self.steps_per_round, parts = config.horizon * config.num_envs, getattr(algorithm_config, "num_minibatches", 1)
        if self.steps_per_round % parts:
            raise InvalidArgument(
                f"num_minibatches = {parts}: must divide a rollout, horizon · num_envs = {self.steps_per_round} steps"
            )
        if algo == "ppo":
            check_has_effect(config, OF_REPLAY, "on ppo, which learns from its rollouts")
        self.directory, self.config = directory, config
        self.about: dict[str, Any] = {
            "version": VERSION,
            "env": env_name,
            "algo": algo,
            "algorithm": dataclasses.asdict(algorithm_config),
            "run": dataclasses.asdict(config),
        }
        seeds = list(config.seed_range)
        make = lambda spec: ALGORITHMS[algo].make(spec, algorithm_config)  # noqa: E731
        self.loop: DeviceLoop | HostLoop
        if compiled := jax_env(env_name, make_env, config.action_repeat):
            check_has_effect(config, OF_GYMNASIUM, f"on {env_name}, which is written in JAX")
            self.loop = DeviceLoop(compiled, make, seeds, config)
        else:
            assert not isinstance(make_env, JaxEnv)
            make_host = maker_of(env_name, make_env, config.action_repeat)
            self.loop = HostLoop(make_host, env_name, make, seeds, config)
        self.algorithm = self.loop.algorithm
        for rule in config.select:
            check_name("select", rule, self.algorithm.rules)
        self.env_step = 0
        self.warm_left = 0 if self.algorithm.experience == "rollout" else config.warmup_steps
        self.records: Records | None = None
        self.differs = ""  # why training on from a checkpoint is not what it would have been without a stop
        self.seen: list[str] | None = None  # the checkpoints on disk as this run left or found them, if it trains there
        # Step and rows where it begins, until its files are cut back to them.
        self._claimed: tuple[int, int] | None = (0, 0)
        self._kept: checkpoint.Entries = {}  # the files that hold the replay's rows on disk
        self._num_kept = 0  # the rows that were added up to the end of the last of them
        self.aim(config.steps)

    def aim(self, steps: float) -> None:
        """Train up to `steps` in all; to the end of the last round, where they are not a whole number of rounds."""
        self.config = dataclasses.replace(self.config, steps=steps)
        self.about["run"]["steps"] = steps

    def claim(self) -> None:
        """Drop what a crash left in the replay beyond the checkpoint. Only who holds the lock may: looking at a run that
        another process trains must change nothing."""
        if self.seen is not None and self.seen != checkpoint.names(self.directory):
            raise RunInUse(f"{self.directory} was trained by another process since it was opened: open it again")
        for left_over in self.directory.glob(".*.tmp-*"):  # of a file that was being replaced
            if left_over.is_file():
                left_over.unlink()
        if self.records:
            self.records.check()
        if self._claimed is not None:
            checkpoint.drop_after(self.directory, *self._claimed)
            self._claimed = None
            self.seen = None if self.seen is None else checkpoint.names(self.directory)

    def advance(self, tick: Tick = ignore) -> list[dict[str, Any]]:
        """Up to the next multiple of `log_every` or the end, the warm-up first; the records of every seed. Divergence is an error
        before anything is saved."""
        every, num_envs, before = self.config.log_every, self.config.num_envs, self.env_step
        aim = min(int(self.config.steps), (before // every + 1) * every)
        metrics, warm, started = no_episodes(self.config.seeds), None, time.perf_counter()
        if iterations := -(-min(self.warm_left, aim - before) // num_envs):
            warm = self.loop.warm_up(iterations * num_envs, tick)
            self.env_step += iterations * num_envs
            self.warm_left = max(0, self.warm_left - iterations * num_envs)
        if aim > self.env_step:
            before, started = self.env_step, time.perf_counter()
            rounds = -(-(aim - before) // self.steps_per_round)
            metrics = self.loop.advance(rounds, tick)
            self.env_step += rounds * self.steps_per_round
        speed = self.config.seeds * (self.env_step - before) / (time.perf_counter() - started)
        metrics = with_warm_up(metrics, warm) if warm else metrics
        self._check_finite(metrics)
        return [
            {
                "kind": "train",
                "seed": seed,
                "env_step": self.env_step,
                **{name: float(values[index]) for name, values in metrics.items()},
                "wall_steps_per_second": round(speed, 1),
            }
            for index, seed in enumerate(self.config.seed_range)
        ]

    def _check_finite(self, named: Mapping[str, Any]) -> None:
        """Divergence of numbers `[seeds, …]` is an error before they are saved."""
        for name, values in named.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                whole = np.isfinite(values).reshape(self.config.seeds, -1).all(axis=1)
                seed = self.config.seed_range[int(np.argmin(whole))]
                raise Diverged(
                    f"{name} of seed {seed} is not finite after {self.env_step} steps; the last checkpoint is good"
                )

    def lacks_replay(self) -> bool:
        """Whether the replay is empty, as in a run that was saved without it."""
        return self.algorithm.experience == "replay" and int(self.loop.state.replay.added[0]) == 0

    def evaluation(self) -> list[dict[str, Any]]:
        """Records of an evaluation by every rule asked for."""
        rows = []
        for rule, played in self.loop.play(self.config.select, self.config.episodes).items():
            for index, seed in enumerate(self.config.seed_range):
                rows.append(
                    {
                        "kind": "evaluation",
                        "seed": seed,
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
        if directory is None and not checkpoint.are_there(to, self._kept):  # someone has removed some: write them again
            self._kept, self._num_kept = {}, 0
        kept, num_kept = (self._kept, self._num_kept) if directory is None else ({}, 0)
        rows = fetch(state.replay.data, np.arange(max(num_kept, added - capacity), added) % capacity)
        facts = {
            "about": self.about,
            **(self.records.facts() if self.records and directory is None else {"metrics_offset": 0}),
            "spec": self.loop.spec._asdict(),
            "layout": self.loop.layout,
            "copy": directory is not None,
            "fingerprint": fingerprint(),
            "extra": self.loop.extra(),
        }
        small = self._small()
        if not replay:
            small["replay"] = np.zeros_like(small["replay"])
        arrays = tree_to_arrays(small)
        self._check_finite({name: array for name, array in arrays.items() if name.startswith("algorithm")})
        kept = checkpoint.save_checkpoint(to, self.env_step, arrays, facts, rows, added, capacity, kept)
        if directory is None:
            self._kept, self._num_kept = kept, added
            mark_saved(to)
            self.seen = checkpoint.names(to)

    def _small(self) -> Any:
        """The state without the replay's rows, which are saved apart."""
        state = self.loop.state
        return {**state._asdict(), "replay": state.replay.added, "reward_scale": state.replay.scale}

    def restore(self, refill: bool = False) -> list[str]:
        """Take up the newest good checkpoint; what there is to say about it. With `refill` replay files that are damaged are done without."""
        seen = checkpoint.names(self.directory)
        lost: list[str] | None = [] if refill else None
        manifest, arrays, segments, complaints = checkpoint.load_latest(self.directory, True, lost)
        facts = facts_of(manifest)
        check_same(self.directory, read_about(self.directory), facts["about"])
        restored = arrays_to_tree(self._small(), arrays)
        added = int(manifest["added"])
        if (np.asarray(restored["replay"]) != added).any():
            raise DamagedCheckpoint(
                f"{self.directory}: the checkpoint's replay has other rows than the checkpoint says"
            )
        buffer = self.loop.state.replay
        data: Any = {name: np.array(field) for name, field in jax.device_get(buffer.data)._asdict().items()}
        missing = place(data, segments, added)
        if missing.size and not refill:
            raise DamagedCheckpoint(f"{self.directory}: the checkpoint's replay lacks {missing.size} of its rows")
        whole = not missing.size
        if not refilled(data, missing, added):
            added, restored["replay"] = 0, np.zeros_like(restored["replay"])
        if not whole:
            what = (
                "copies of the others take their places" if added else "the replay is filled again with uniform actions"
            )
            complaints += [*(lost or []), f"the replay lacks {missing.size} of its rows: {what}"]
        buffer = buffer._replace(data=Transition(**data))
        buffer = buffer._replace(added=restored.pop("replay"), scale=restored.pop("reward_scale"))
        self.loop.state = jax.device_put(LoopState(replay=buffer, **restored))
        self.loop.set_extra(facts["extra"])
        self.env_step = int(manifest["step"])
        self._claimed = (self.env_step, added)
        self.warm_left = max(0, self.warm_left - added)
        if not facts.get("copy"):
            metrics = self.directory / "metrics.jsonl"
            self.records = Records(metrics, facts["metrics_offset"], facts.get("metrics_sha256"))
            self.seen = seen
            self._kept, self._num_kept = (checkpoint.rows_of(manifest), added) if whole else ({}, 0)
        # A copy starts again, wherever it is loaded.
        self.differs = "" if facts.get("copy") else _difference(facts["fingerprint"])
        return complaints


def _difference(then: dict[str, str]) -> str:
    """Why going on is not what it would have been without a stop, if it is not."""
    now = fingerprint()
    changed = [
        f"{name} was {then.get(name) or 'unset'}, is {now[name] or 'unset'}"
        for name in now
        if now[name] != then.get(name)
    ]
    return "the resumed run is valid but not bit-identical: " + "; ".join(changed) if changed else ""


@cache
def sources() -> str:
    """The first digits of a digest of the package's own code: two versions of one number may differ in it."""
    package = Path(s2ac.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def fingerprint() -> dict[str, str]:
    """What bit-identity depends on."""
    return {
        "s2ac": s2ac.__version__,
        "sources": sources(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
        "device": jax.devices()[0].device_kind,
        "NPROC": os.environ.get("NPROC", ""),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }

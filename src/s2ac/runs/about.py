"""run.json, read back: what was asked for."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument, S2acError
from s2ac.ranges import default_of
from s2ac.runs.checkpoint import DamagedCheckpoint
from s2ac.settings import RunConfig, names_of
from s2ac.settings.run import OF_REPLAY


def read_about(directory: Path) -> dict[str, Any]:
    """What run.json says."""
    try:
        about = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise S2acError(f"{directory} is not a run: {error.strerror} (run.json)") from error
    except ValueError as error:
        raise S2acError(f"{directory}/run.json is damaged: {error}") from error
    if not isinstance(about, dict):
        raise S2acError(f"{directory}/run.json is damaged: not an object")
    return about


VERSION = 4
"""Of run.json. Version 1 did not say so, and may lack fields; version 2 holds every field; in version 3 S²AC's are those of one policy; in
version 4 a field without effect has its default."""

_VERSION1 = json.loads((Path(__file__).parent / "version1.json").read_text(encoding="utf-8"))
"""The defaults at the end of version 1: a field that did not exist when a file was written has this value, whatever its default is now."""

RETIRED = {"late_action": False, "num_climbed": None}
"""Fields that algorithms once had, and the value with which they did nothing."""


def with_defaults(algo: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of an algorithm and a run as files hold them, in the fields of this version: those that version 1 left out are there, those that
    are no more and did nothing are not."""
    version = settings.get("version", 1)
    if version == VERSION:
        return settings
    if version not in (1, 2, 3):
        raise S2acError(f"version {version!r} of run.json: this s2ac reads up to {VERSION}; install a newer one")
    if version == 1:
        known = {"run": _VERSION1["run"], "algorithm": _VERSION1["algorithm"].get(algo, {})}
        settings = {**settings, **{part: {**known[part], **settings.get(part, {})} for part in known}}
    algorithm = settings["algorithm"]
    if isinstance(algorithm, dict):
        algorithm = {n: v for n, v in algorithm.items() if n not in RETIRED or v != RETIRED[n]}
        algorithm = _stein3(algorithm) if algo.startswith("s2ac") and version < 3 else algorithm
        algorithm = _effective(algo, algorithm)
    run = settings["run"]
    if algo == "ppo" and isinstance(run, dict):
        run = {**run, **{name: default_of(RunConfig, name) for name in OF_REPLAY if name in run}}
    return {**settings, "version": VERSION, "algorithm": algorithm, "run": run}


def _effective(algo: str, algorithm: dict[str, Any]) -> dict[str, Any]:
    """Settings in which those that do nothing have their default."""
    kind = type(ALGORITHMS[algo].config) if algo in ALGORITHMS else None
    names = {} if kind is None else kind.__dataclass_fields__
    if kind is None or not algorithm.keys() <= names.keys():
        return algorithm  # refused by name later
    bare = object.__new__(kind)  # not yet checked
    for name in names:
        object.__setattr__(bare, name, algorithm.get(name, default_of(kind, name)))
    idle = bare.without_effect()
    return {n: json.loads(json.dumps(default_of(kind, n))) if n in idle else value for n, value in algorithm.items()}


def check_unchanged(algo: str, settings: dict[str, Any]) -> None:
    """Refuse runs of earlier versions whose policy this version would take for another one, though it has their fields."""
    if not algo.startswith("s2ac") or settings.get("version", 1) in (3, VERSION):
        return
    old = settings["algorithm"]
    if old.get("amortized"):
        raise InvalidArgument("amortized = True: f_ψ is another network since version 3; train it again")
    if old.get("num_steps") and str(old.get("form")).startswith("tracer"):
        raise InvalidArgument(f"form = {old['form']!r}: its steps are shorter since version 3; train it again")


def _stein3(old: dict[str, Any]) -> dict[str, Any]:
    """S²AC's settings of version 2 in the fields of version 3, for policies without references and weights, which are what they were.

    What cannot be said in them is left as it is: an unknown field, refused by name.
    """
    fixed, form, moved = old.get("start") == "fixed", old.get("form", ""), bool(old.get("num_steps"))
    in_alpha = old.get("scale_step_by_alpha") or not moved or not old.get("learn_alpha")
    said = {  # whether version 3 can say what the old field said
        "bandwidth": old.get("bandwidth") is None,
        "density": not moved or old.get("density") == "trace",
        "differentiate_score": old.get("differentiate_score") is True,
        "hessian": not moved or old.get("hessian") == "hutchinson" or form in ("leave-one-out", "paper"),
        "mode_alpha": old.get("mode_alpha") is None,
        "resample": not old.get("resample"),
        "scale_step_by_alpha": in_alpha,
        "score_precision": old.get("score_precision") in ("auto", "float32"),
        "start": True,
        "start_ratio": fixed
        or old.get("start_alpha") is None
        or (old["start_alpha"], old.get("start_ratio")) == (0, 1),
    }
    new = {name: value for name, value in old.items() if not said.get(name)}
    if not old.get("scale_step_by_alpha") and in_alpha:
        new["step_size"] = old["step_size"] / old["alpha"]
    new |= {"num_references": 0, "weighted": False, "explore_alpha": 0.0}
    return new | ({"start_alpha": None} if fixed else {"start_std": None})


NO_MATTER = ("workers", "worker_timeout")
"""Fields of a run that its results do not depend on."""


def same_run(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both describe the same run; it may have been told to go on for longer."""
    free = dict.fromkeys(("steps", *NO_MATTER))

    def settings(about: dict[str, Any]) -> dict[str, Any]:
        whole = with_defaults(about.get("algo", ""), about)
        return {**whole, "version": VERSION, "run": {**whole["run"], **free}}

    return settings(one) == settings(other)


def configs_of(about: dict[str, Any], directory: Path) -> tuple[Any, RunConfig]:
    """The algorithm's config and the run's, from run.json."""
    try:
        entry = ALGORITHMS[about["algo"]]
        check_unchanged(about["algo"], about)
        about = with_defaults(about["algo"], about)
        given = about["algorithm"]
        tupled = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        if unknown := sorted(tupled.keys() - names_of(entry.config)):
            raise InvalidArgument(f"{about['algo']} has no field {', '.join(unknown)} in this version")
        algorithm_config = dataclasses.replace(entry.config, **tupled)
        return algorithm_config, RunConfig(**{**about["run"], "select": tuple(about["run"]["select"])})
    except (InvalidArgument, ValueError, KeyError, TypeError) as error:
        raise S2acError(f"{directory}/run.json cannot be used: {error}") from error


def check_described(directory: Path, about: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Refuse a checkpoint of another run than the one that run.json describes."""
    if not same_run(manifest["facts"]["about"], about):
        raise DamagedCheckpoint(f"{directory}: the checkpoint is not of the run that run.json describes")

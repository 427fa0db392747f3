"""run.json, read back: what was asked for, and whether a checkpoint is of it."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument, S2acError, check_name, listed, shown
from s2ac.ranges import default_of, settled
from s2ac.runs.files import SMALL, parse_json, read_regular
from s2ac.runs.manifest import VERSION, DamagedCheckpoint
from s2ac.settings import RunConfig, names_of
from s2ac.settings.run import OF_REPLAY


def read_about(directory: Path) -> dict[str, Any]:
    """What run.json says, each part of its kind."""
    try:
        about = parse_json(read_regular(directory / "run.json", SMALL))
    except OSError as error:
        raise S2acError(f"{directory} is not a run: {error.strerror} (run.json)") from error
    except ValueError as error:
        raise S2acError(f"{directory}/run.json is damaged: {error}") from error
    if wrong := _wrong_part(about):
        raise S2acError(f"{directory}/run.json is damaged: {wrong!r} is missing or of the wrong kind")
    return about


PARTS: dict[str, type] = {"env": str, "algo": str, "algorithm": dict, "run": dict}


def _wrong_part(about: Any) -> str | None:
    """The first part that is missing or of the wrong kind."""
    if not isinstance(about, dict):
        return "env"
    return next((name for name, kind in PARTS.items() if not isinstance(about.get(name), kind)), None)


def check_same(directory: Path, about: dict[str, Any], saved: dict[str, Any]) -> None:
    """Refuse a checkpoint that was saved with other settings than run.json says."""
    if not same_run(saved, about):
        differ = differences(about, saved)
        raise DamagedCheckpoint(
            f"{directory}: the checkpoint is not of the run that run.json describes; put run.json back, from a copy or from "
            "body.facts.about in the checkpoint's manifest.json"
            + (f"; what differs: {listed(differ)}" if differ else "")
        )


_VERSION1 = json.loads((Path(__file__).parent / "version1.json").read_text(encoding="utf-8"))
"""The defaults at the end of version 1: a field that did not exist when a file was written has this value, whatever its default is now."""

ADDED: dict[str, dict[str, Any]] = {
    "algorithm": {"categorical": False, "relative_entropy": False},
    "run": {"wandb": False, "action_repeat": 1},
}
"""Fields that came after version 4, and what runs without them did."""

RETIRED = {"late_action": False, "num_climbed": None, "hold": 1}
"""Fields that algorithms and runs once had, and the value with which they did nothing."""


def with_defaults(algo: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of an algorithm and a run as files hold them, in the fields of this version: those that version 1 left out are there, those that
    are no more and did nothing are not."""
    version = settings.get("version", 1)
    if version == VERSION:
        return settings
    if version not in range(1, VERSION):
        raise S2acError(f"version {version!r} of run.json: this s2ac reads up to {VERSION}; install a newer one")
    if version == 1:
        known = {"run": _VERSION1["run"], "algorithm": _VERSION1["algorithm"].get(algo, {})}
        settings = {**settings, **{part: {**known[part], **settings.get(part, {})} for part in known}}
    algorithm, run = _known(settings["algorithm"]), _known(settings["run"])
    if isinstance(algorithm, dict):
        algorithm = _stein3(algorithm) if algo.startswith("s2ac") and version < 3 else algorithm
        algorithm = _effective(
            algo, _added("algorithm", algorithm, ALGORITHMS[algo].config if algo in ALGORITHMS else None)
        )
    run = _added("run", run, RunConfig())
    if algo == "ppo" and isinstance(run, dict):
        run = {**run, **{name: default_of(RunConfig, name) for name in OF_REPLAY if name in run}}
    return {**settings, "version": VERSION, "algorithm": algorithm, "run": run}


def _known(settings: Any) -> Any:
    """The settings without retired ones that did nothing."""
    if not isinstance(settings, dict):
        return settings
    return {name: value for name, value in settings.items() if name not in RETIRED or value != RETIRED[name]}


def _added(part: str, settings: Any, config: Any) -> Any:
    """The settings with the fields that the config has and earlier versions had not."""
    new = {name: value for name, value in ADDED[part].items() if hasattr(config, name)}
    return {**new, **settings} if isinstance(settings, dict) else settings


def _effective(algo: str, algorithm: dict[str, Any]) -> dict[str, Any]:
    """Settings in which those that do nothing have their default; those that cannot be used are refused later."""
    kind = type(ALGORITHMS[algo].config) if algo in ALGORITHMS else None
    try:
        config = settled(kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in algorithm.items()}), ())  # type: ignore[misc]
    except (InvalidArgument, TypeError, ValueError):
        return algorithm
    return {name: json.loads(json.dumps(getattr(config, name))) for name in algorithm}


def check_unchanged(algo: str, settings: dict[str, Any]) -> None:
    """Refuse runs of earlier versions whose policy this version would take for another one, though it has their fields."""
    if not algo.startswith("s2ac") or settings.get("version", 1) in range(3, VERSION + 1):
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


ODD = (S2acError, KeyError, TypeError, AttributeError, ValueError, ArithmeticError)
"""What settings lead to that anyone may have written."""


def _compared(about: dict[str, Any]) -> dict[str, Any]:
    """What must be the same in two descriptions of a run; it may have been told to go on for longer."""
    whole = with_defaults(about.get("algo", ""), about)
    return {**whole, "version": VERSION, "run": {**whole["run"], **dict.fromkeys(("steps", *NO_MATTER))}}


def same_run(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both describe the same run."""
    try:
        return _compared(one) == _compared(other)
    except ODD:
        return False


def differences(about: dict[str, Any], saved: dict[str, Any]) -> list[str]:
    """The fields in which run.json and a checkpoint differ, in words; none if their settings cannot be compared."""
    try:
        one, other = _flat(_compared(about)), _flat(_compared(saved))
    except ODD:
        return []

    def said(fields: dict[str, Any], name: str) -> str:
        return shown(fields[name]) if name in fields else "nothing"

    names = [name for name in {**one, **other} if (name in one) != (name in other) or one[name] != other[name]]
    return [f"{name} is {said(one, name)} in run.json and {said(other, name)} in the checkpoint" for name in names]


def _flat(about: dict[str, Any]) -> dict[str, Any]:
    """Every field by its name, those of the algorithm and of the run after the others."""
    return {n: v for n, v in about.items() if n not in ("algorithm", "run")} | about["algorithm"] | about["run"]


def configs_of(about: dict[str, Any], directory: Path) -> tuple[Any, RunConfig]:
    """The algorithm's config and the run's, from run.json."""
    try:
        check_name("algo", about["algo"], ALGORITHMS)
        entry = ALGORITHMS[about["algo"]]
        check_unchanged(about["algo"], about)
        about = with_defaults(about["algo"], about)
        given = about["algorithm"]
        tupled = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        if unknown := sorted(tupled.keys() - names_of(entry.config)):
            raise InvalidArgument(f"{about['algo']} has no field {', '.join(unknown)} in this version")
        algorithm_config = dataclasses.replace(entry.config, **tupled)
        return algorithm_config, RunConfig(**{**about["run"], "select": tuple(about["run"]["select"])})
    except (InvalidArgument, ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise S2acError(f"{directory}/run.json cannot be used: {error}") from error

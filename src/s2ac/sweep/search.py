"""A search: Optuna chooses settings within ranges, and ASHA stops what does worse than others at the same step. On Ray, by its Tune."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from s2ac.errors import InvalidArgument, check_count, check_name, shown
from s2ac.launch.calls import Place
from s2ac.launch.cluster import cluster
from s2ac.output import say
from s2ac.runs.about import read_about
from s2ac.sweep.asked import Asked, Text, Values
from s2ac.sweep.plan import Planned, axes_of, check_names, hints_of, planned
from s2ac.sweep.results import Progress, result_of
from s2ac.sweep.work import train_one
from s2ac.text import printable

RUNGS = 3
"""ASHA looks at a run after a ninth and a third of its steps, and lets the best third go on."""

WORST = -1e30
"""The return of a run that failed, for a sampler that must be told something."""


class Range(NamedTuple):
    """What a number may be chosen from."""

    low: float
    high: float
    log: bool
    whole: bool


class Space(NamedTuple):
    """What is to be chosen, and what is not."""

    ranges: dict[str, Range]
    lists: dict[str, list[Any]]
    fixed: Values

    @property
    def chosen(self) -> set[str]:
        """The names of what is to be chosen."""
        return {*self.ranges, *self.lists}

    def corner(self, end: str) -> Values:
        """An end of every range, `low` or `high`, and the first of every list."""
        first = {name: values[0] for name, values in self.lists.items()}
        return first | {name: getattr(range_, end) for name, range_ in self.ranges.items()}


def space_of(asked: Asked, text: Text) -> Space:
    """The space of a search; its ends are tried as settings before anything runs."""
    check_name("search", asked.search, ("optuna",))
    check_count("samples", asked.samples, 1)
    check_names(asked, text)
    for name, value in (("env", asked.env), ("algo", asked.algo)):
        if len(value) > 1:
            raise InvalidArgument(f"{text.at(name)}{name} = {shown(value)}: a search needs exactly one")
    if isinstance(asked.seeds, list):
        raise InvalidArgument(f"{text.at('seeds')}seeds = {asked.seeds}: must be a number in a search")
    algo = asked.algo[0]
    hints = hints_of(algo)
    space = Space({}, {}, {"seeds": asked.seeds})
    for name, values in axes_of(asked, algo, text).items():
        if len(values) > 1 and any(isinstance(value, dict) for value in values):
            raise InvalidArgument(
                f"{text.at(name, algo)}{name} = {shown(values)}: must be one range, or a list of values"
            )
        if isinstance(values[0], dict):
            space.ranges[name] = range_of(name, values[0], hints[name] is int, text)
        elif len(values) > 1:
            space.lists[name] = values
        else:
            space.fixed[name] = values[0]
    if not space.chosen:
        raise InvalidArgument(
            "a search needs something to choose: a range, as in step_size = {low = 0.01, high = 1.0, log = true}, or a list"
        )
    for end in ("low", "high"):
        settings = run_of(asked, space, space.corner(end), text).settings
    if "evaluate_every" not in space.fixed | space.lists:
        space.fixed["evaluate_every"] = max(1, int(settings.run.steps) // 3 ** (RUNGS - 1))
    return space


def range_of(name: str, value: Mapping[str, Any], whole: bool, text: Text) -> Range:
    """A range with its bounds."""
    where = f"{text.at(name, 'settings')}{name} = {shown(value)}: a range"
    if not {"low", "high"} <= value.keys() <= {"low", "high", "log"}:
        raise InvalidArgument(f"{where} needs its bounds, {{low = …, high = …}}, and may have log = true")
    low, high, log = value["low"], value["high"], value.get("log", False)
    kind = int if whole else int | float
    if not all(isinstance(end, kind) and not isinstance(end, bool) and math.isfinite(end) for end in (low, high)):
        raise InvalidArgument(f"{where} must be of {'whole ' if whole else ''}numbers")
    if not low < high or (log and low <= 0):
        raise InvalidArgument(f"{where} needs low below high{', and low above 0 with log = true' if log else ''}")
    return Range(low, high, bool(log), whole)


def run_of(asked: Asked, space: Space, chosen: Mapping[str, Any], text: Text) -> Planned:
    """The run of what was chosen."""
    some = {name: chosen[name] for name in (*space.ranges, *space.lists)}
    some |= {
        name: float(f"{some[name]:.4g}") for name, of in space.ranges.items() if not of.whole
    }  # as names can hold it
    return planned(asked, asked.env[0], asked.algo[0], {**space.fixed, **some}, some, text)


def usual_of(asked: Asked, space: Space, text: Text) -> list[Values]:
    """What the environment's default settings have of what is chosen, to be tried first; nothing where the space does not hold it."""
    usual = planned(asked, asked.env[0], asked.algo[0], space.fixed, {}, text).settings
    values = {**vars(usual.run), **vars(usual.algorithm)}
    found = {name: _plain(values[name]) for name in (*space.ranges, *space.lists)}
    held = [found[name] is not None and of.low <= found[name] <= of.high for name, of in space.ranges.items()]
    held += [found[name] in values for name, values in space.lists.items()]
    return [found] if all(held) else []


def _plain(value: Any) -> Any:
    """As a sweep's file has it."""
    return list(value) if isinstance(value, tuple) else value


def begun(asked: Asked, space: Space, out: Path) -> list[Planned]:
    """The runs of a search that there are."""
    runs = []
    for path in sorted(out.glob("runs/*/run.json"), key=lambda path: path.stat().st_mtime):
        about = read_about(path.parent)
        runs.append(run_of(asked, space, about["run"] | about["algorithm"], Text(None, "")))
    return runs


def search(
    asked: Asked, space: Space, place: Place, out: Path, progress: Progress, text: Text
) -> dict[str, int | None]:
    """Run the search, or go on with it; exit codes by name, None of what a signal interrupted."""
    _quiet_optuna()
    with cluster(place.address):
        from ray import tune
        from ray.tune.schedulers import ASHAScheduler
        from ray.tune.search.optuna import OptunaSearch

        from s2ac.launch.trials import fit, logged

        def trial(config: dict[str, Any]) -> None:
            try:
                run = run_of(asked, space, config, text)
            except InvalidArgument as error:  # of settings that do not go together
                tune.report({"return": WORST, "env_step": 0, "code": error.exit_code})
                return
            directory = out / "runs" / run.name
            report = partial(_report, tune, run)
            with logged(out / "logs" / f"{run.name}.txt"):
                code = train_one(directory, run.settings, report)
            mean = result_of(directory, run).mean if code == 0 else WORST
            tune.report({"return": mean, "env_step": int(run.settings.run.steps), "code": code})

        names: dict[str, str] = {}

        def name_of(config: Mapping[str, Any]) -> str:
            key = str(config)
            if key not in names:
                try:
                    run = run_of(asked, space, config, text)
                    progress.add(run)
                    names[key] = run.name
                except InvalidArgument as error:
                    names[key] = key
                    say(printable(f"skipped: {key}: {error}"))
            return names[key]

        steps = int(run_of(asked, space, space.corner("low"), text).settings.run.steps)
        how = tune.TuneConfig(
            metric="return", mode="max", num_samples=asked.samples, search_alg=OptunaSearch(seed=0, points_to_evaluate=usual_of(asked, space, text) or None),
            scheduler=ASHAScheduler("env_step", max_t=2 * steps, grace_period=max(1, steps // 3 ** (RUNGS - 1)), reduction_factor=3),
        )  # fmt: skip
        return fit(trial, _tune_space(tune, space), how, place, out / "ray", asked.retries, progress, name_of)


def _quiet_optuna() -> None:
    try:
        import optuna
    except ImportError as error:
        raise InvalidArgument(f"search = 'optuna': needs Optuna ({error}): pip install 's2ac[ray]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def _report(tune: Any, run: Planned, rows: list[dict[str, Any]]) -> bool:
    """Tell Tune of an evaluation, which may end the trial there and then; the last is told when the run is saved."""
    found = [row for row in rows if row.get("rule") == run.settings.run.select[0]]
    if found and found[0]["env_step"] < run.settings.run.steps:
        mean = sum(row["return"] for row in found) / len(found)
        tune.report({"return": mean, "env_step": found[0]["env_step"]})
    return True


def _tune_space(tune: Any, space: Space) -> dict[str, Any]:
    """As Tune has it; a whole number's upper end is one that it leaves out."""
    made = {name: tune.choice(values) for name, values in space.lists.items()}
    for name, (low, high, log, whole) in space.ranges.items():
        kind = f"{'log' if log else ''}{'randint' if whole else 'uniform'}"
        made[name] = getattr(tune, kind)(low, high + 1 if whole else high)
    return made

"""The report's data: curves, intervals, comparisons and what a run says of itself."""

import json
import math

import numpy as np
import pytest
import scipy.stats

from report_runs import make_run, read, train_row
from s2ac.cli.main import main
from s2ac.report import data as report_data
from s2ac.report.data import collect, summary
from s2ac.report.records import Series
from s2ac.runs.lock import lock
from s2ac.studies.statistics import t_interval


def test_curves_hold_every_seed_and_the_t_interval_of_their_mean(tmp_path):
    run = collect(read(make_run(tmp_path / "run", seeds=5)))["runs"][0]
    curve = next(curve for curve in run["curves"] if curve["name"] == "return")
    assert [one["seed"] for one in curve["seeds"]] == [0, 1, 2, 3, 4]
    for index, step in enumerate(curve["steps"]):
        values = [step / 10 + seed * 7 % 5 for seed in range(5)]
        assert [one["values"][index] for one in curve["seeds"]] == pytest.approx(values)
        exact = t_interval(np.array(values))
        shown = curve["mean"][index], curve["low"][index], curve["high"][index]
        assert shown == pytest.approx((exact.value, exact.low, exact.high), rel=1e-5)
    assert run["final"]["step"] == 1200
    exact = t_interval(np.array([1200 / 9 + 3 * seed for seed in range(5)]))
    last = run["final"]
    assert (last["kind"], last["num"]) == ("evaluation sample", 5)
    assert (last["mean"], last["low"], last["high"]) == pytest.approx((exact.value, exact.low, exact.high))
    assert (run["state"], run["notes"]) == ("done", [])


def test_a_stopped_run_says_how_to_go_on(tmp_path):
    run = collect(read(make_run(tmp_path / "a run", records=5)))["runs"][0]
    assert run["state"] == "stopped"
    assert run["notes"] == [f"It stopped at step 500 of 1200; continue with: s2ac train --resume '{tmp_path}/a run'"]
    with lock(tmp_path / "a run"):
        run = collect(read(tmp_path / "a run"))["runs"][0]
    assert (run["state"], run["notes"]) == ("running", [])


def test_a_run_of_an_own_environment_is_gone_on_with_in_python(tmp_path):
    run = collect(read(make_run(tmp_path / "run", records=5, about={"env": "custom:Mine"})))["runs"][0]
    where = repr(str(tmp_path / "run"))
    assert run["notes"] == [
        f"It stopped at step 500 of 1200; continue in Python, with its environment: s2ac.load({where}, env=…)"
    ]
    assert run["command"].startswith(f"s2ac.Agent(env, algo='s2ac', directory={where}")


def test_many_seeds_do_not_swell_the_page():
    values = np.arange(5000.0)[:, None] + np.zeros((1, 1000))
    curve = summary(Series(np.arange(1000), list(range(5000)), values))
    assert len(curve["steps"]) <= 50
    assert (len(curve["seeds"]), curve["num"]) == (100, 5000)
    assert set(curve["mean"]) == {2499.5}  # of all, not of those that are drawn


def test_one_seed_has_no_interval_and_an_incomplete_step_no_mean():
    one = summary(Series(np.array([1, 2]), [0], np.array([[1.0, 2.0]])))
    assert (one["mean"], one["low"]) == ([1.0, 2.0], [None, None])
    two = summary(Series(np.array([1, 2]), [0, 1], np.array([[1.0, 2.0], [3.0, math.nan]])))
    assert two["mean"] == [2.0, None]
    assert two["seeds"][1]["values"] == [3.0, None]


def test_long_curves_are_means_of_records_and_say_so():
    values = np.arange(3000.0).reshape(1, -1).repeat(2, axis=0)
    curve = summary(Series(np.arange(3000), [0, 1], values))
    assert curve["each"] == 13
    assert len(curve["steps"]) <= report_data.MOST_POINTS
    assert curve["mean"][0] == 6.0  # of 0 … 12
    assert curve["steps"][-1] == 2999


def test_an_interval_without_episodes_has_no_return(tmp_path):
    run = make_run(tmp_path / "run", seeds=1, records=3, evaluate=False)
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(train_row(0, 400, episodes=0.0, **{"return": 0.0})) + "\n")
    assert read(run)[0].series("train", "return").steps.tolist() == [100, 200, 300]


def test_reader_takes_only_new_whole_lines_and_sees_a_cut(tmp_path):
    run = make_run(tmp_path / "run", seeds=1, records=2, evaluate=False)
    path = run / "metrics.jsonl"
    (reader,) = read(run)
    assert not reader.update()
    line = json.dumps(train_row(0, 300)).encode()
    with path.open("ab") as file:
        file.write(line[:40])
    assert not reader.update()
    assert reader.half_line
    with path.open("ab") as file:
        file.write(line[40:] + b"\n")
    assert reader.update()
    assert not reader.half_line
    assert reader.series("train", "return").steps.tolist() == [100, 200, 300]
    # A resume cuts the file back and writes other numbers, more of them than there were.
    kept = path.read_bytes().split(b"\n")[0] + b"\n"
    new = [json.dumps(train_row(0, step, **{"return": -1.0})).encode() for step in (200, 300, 400)]
    path.write_bytes(kept + b"\n".join(new) + b"\n")
    assert reader.update()
    assert reader.series("train", "return").values.tolist() == [[10.0, -1.0, -1.0, -1.0]]


def test_damaged_lines_are_counted_and_left_out(tmp_path):
    run = make_run(tmp_path / "run", seeds=2, records=4)
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'\xff\xfe{"kind\n[1]\n{"kind": "train"}\n"x"\n{"kind":"train","seed":"a","env_step":1}\n{"half')
    reader = read(run)[0]
    assert reader.damaged == 5
    notes = " ".join(collect([reader])["runs"][0]["notes"])
    assert "5 damaged lines" in notes
    assert "half written" in notes


def test_environments_are_never_mixed(tmp_path):
    runs = [make_run(tmp_path / name, about={"env": env}) for name, env in (("a", "one"), ("b", "two"), ("c", "one"))]
    data = collect(read(*runs))
    assert [(group["env"], group["runs"]) for group in data["groups"]] == [("one", [0, 2]), ("two", [1])]
    assert [row["run"] for row in data["groups"][0]["comparison"]] == ["a", "c"]


def test_runs_of_one_name_are_told_apart(tmp_path):
    runs = [make_run(tmp_path / parent / "run") for parent in "ab"]
    assert [run["name"] for run in collect(read(*runs))["runs"]] == [str(run) for run in runs]


def test_difference_is_welchs(tmp_path):
    returns = {"first": [1.0, 2.0, 4.0, 3.0], "second": [5.0, 9.0, 6.0], "alone": [7.0]}
    for name, values in returns.items():
        run = make_run(tmp_path / name, records=0)
        rows = [train_row(seed, 100, **{"return": value}) for seed, value in enumerate(values)]
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, second, alone = collect(read(*(tmp_path / name for name in returns)))["groups"][0]["comparison"]
    exact = scipy.stats.ttest_ind(returns["second"], returns["first"], equal_var=False).confidence_interval(0.95)
    shown = second["difference"]
    assert (shown["low"], shown["high"]) == pytest.approx((exact.low, exact.high))
    assert (alone["difference"]["mean"], alone["difference"]["low"]) == (4.5, None)


def test_the_command_makes_the_same_run_again(tmp_path, monkeypatch):
    import dataclasses
    import shlex

    from s2ac.cli import train as command

    seen = []
    monkeypatch.setattr(command, "_start", seen.append)
    given = [
        "train",
        "multigoal",
        "--algo",
        "s2ac-phi",
        "--preset",
        "demo",
        "--hidden",
        "8",
        "4",
        "--learn-alpha",
        "--seeds",
        "2",
    ]
    assert main(given) == 0
    parts = {"algorithm": dataclasses.asdict(seen[0].algorithm), "run": dataclasses.asdict(seen[0].run)}
    about = json.loads(json.dumps({"env": "multigoal", "algo": "s2ac-phi", **parts}))
    assert main(shlex.split(report_data.command(about, tmp_path / "a b"))[1:]) == 0
    assert seen[1].out == str(tmp_path / "a b")
    assert (seen[1].algorithm, seen[1].run) == (seen[0].algorithm, seen[0].run)

"""The report: records to curves and verdicts, a page that nothing in a run can break, and the server of `watch`."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.stats

import chromium
from s2ac.cli.main import main
from s2ac.errors import S2acError
from s2ac.report import data as report_data
from s2ac.report.data import collect, difference, summary
from s2ac.report.health import verdicts
from s2ac.report.page import render
from s2ac.report.records import READS_FORMAT, Reader, Series, read_about
from s2ac.report.watch import make_server
from s2ac.report.write import write_report
from s2ac.runs import checkpoint
from s2ac.runs.lock import lock
from s2ac.studies.statistics import t_interval
from s2ac.text import inert, printable, to_json

ABOUT = {
    "env": "multigoal",
    "algo": "s2ac",
    "algorithm": {"step_size": 0.1, "alpha": 1.0, "learn_alpha": False, "min_std": 0.3, "density": "trace", "start": "learned",
                  "max_jacobian_norm": 0.9, "target_entropy": None, "hidden": [8, 8]},
    "run": {"seeds": 3, "first_seed": 0, "steps": 1200, "select": ["sample"]},
}  # fmt: skip


def train_row(seed, step, **changes):
    row = {
        "return": step / 10 + seed * 7 % 5,
        "alpha": 1.0,
        "entropy": 0.5,
        "entropy_start": 2.0,
        "entropy_sampler": -1.0,
    }
    row |= {
        "entropy_squash": -0.5,
        "guarded": 0.1,
        "step_size": 0.1,
        "jacobian_norm": 0.4,
        "particle_std": 0.5,
        "std": 0.7,
    }
    row |= {"critic_loss": 3.0, "q_mean": 1.0, "episodes": 5.0, "wall_steps_per_second": 900.0}
    return {"kind": "train", "seed": seed, "env_step": step, **row, **changes}


def make_run(directory, seeds=3, records=12, about=None, changes=None, evaluate=True):
    """A run's directory as training leaves it, without its checkpoints."""
    directory.mkdir(parents=True)
    (directory / "run.json").write_text(json.dumps({**ABOUT, **(about or {})}))
    rows = []
    for step in range(100, 100 * records + 1, 100):
        rows += [train_row(seed, step, **(changes or {})) for seed in range(seeds)]
        if evaluate and step % 400 == 0:
            rows += [{"kind": "evaluation", "seed": s, "env_step": step, "rule": "sample", "return": step / 9 + 3 * s,
                      "returns": [1.0], "length": 9.0} for s in range(seeds)]  # fmt: skip
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def read(*directories):
    readers = [Reader(directory) for directory in directories]
    for reader in readers:
        reader.update()
    return readers


def cloud_data(dimension, num_states=3):
    """Clouds as `collect_clouds` gives them."""
    generator = np.random.default_rng(0)
    grid = {1: 121, 2: 37**2}.get(dimension)
    states = []
    for index in range(num_states):
        particles = generator.uniform(-1, 1, (64, dimension))
        state = {"episode": 0, "time": index, "observation": [float(index), 0.5], "particles": particles.tolist()}
        state |= {"log_prob": [-1.0] * 64, "q": particles[:, 0].tolist()}
        states.append(state | ({"grid": generator.uniform(-9, 9, grid).tolist()} if grid else {}))
    common = {"seed": 0, "step": 1200, "rule": "sample", "low": [-1.0] * dimension, "high": [1.0] * dimension, "set": 8}
    return {**common, "states": states, "paths": [[[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]]] if dimension == 2 else None}


# --- Records to data -----------------------------------------------------------------------------------------


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
    assert run["final"]["values"] == pytest.approx([1200 / 9 + 3 * seed for seed in range(5)])
    assert (run["state"], run["notes"]) == ("done", [])


def test_a_stopped_run_says_how_to_go_on(tmp_path):
    run = collect(read(make_run(tmp_path / "a run", records=5)))["runs"][0]
    assert run["state"] == "stopped"
    assert run["notes"] == [f"It stopped at step 500 of 1200; go on with: s2ac train --resume '{tmp_path}/a run'"]
    with lock(tmp_path / "a run"):
        run = collect(read(tmp_path / "a run"))["runs"][0]
    assert (run["state"], run["notes"]) == ("running", [])


def test_many_seeds_do_not_swell_the_page():
    curve = summary(Series(np.arange(1000), list(range(100)), np.zeros((100, 1000))))
    assert len(curve["steps"]) <= 50


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


def test_difference_is_welchs():
    first, second = [1.0, 2.0, 4.0, 3.0], [5.0, 9.0, 6.0]
    exact = scipy.stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    shown = difference(second, first)
    assert (shown["low"], shown["high"]) == pytest.approx((exact.low, exact.high))
    assert difference([1.0], [2.0, 3.0])["low"] is None
    assert difference([2.0, 2.0], [1.0, 1.0])["high"] == 1.0


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


# --- Verdicts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "algorithm", "level", "words"),
    [
        ({}, {}, "good", "healthy"),
        ({"guarded": 0.93, "step_size": 0.01}, {}, "bad", "particles are frozen: the bound is active in 93 % of steps"),
        ({"guarded": 0.93, "step_size": 0.06}, {}, "warn", "particles are held back: the bound is active in 93 % of steps"),
        ({"guarded": 0.93, "step_size": 0.01, "alpha": 0.1}, {"scale_step_by_alpha": True}, "note", "particles are held back"),
        ({"guarded": 0.93, "step_size": 0.01}, {"form": "tracer"}, "note", "steps are bounded: the bound is active in 93 % of steps"),
        ({"effective_sample_size": 1.1}, {"num_particles": 16}, "warn", "the weights leave 1.10 particles of 16"),
        ({"effective_sample_size": 5.0}, {}, "good", "healthy"),
        ({"folded": 0.01}, {}, "warn", "1 % of the sampler's steps fold"),
        ({"alpha": 0.001}, {"learn_alpha": True}, "bad", "α fell to 0.001: the policy is nearly deterministic"),
        ({"alpha": 0.001}, {}, "good", "healthy"),
        ({"alpha": 400.0}, {"learn_alpha": True}, "warn", "α rose to 400"),
        ({"jacobian_norm": 1.7}, {}, "bad", "‖εJ‖ is 1.7"),
        ({"particle_std": 0.001}, {}, "bad", "particles have collapsed"),
        ({"std": 0.3}, {}, "warn", "as narrow as it may be"),
        ({"entropy_sampler": 0.001}, {}, "note", "the sampler hardly moves the particles"),
        ({"return": 3.0}, {}, "note", "no measurable progress"),
        ({"critic_loss": math.nan}, {}, "note", "critic_loss is no number"),
    ],
)  # fmt: skip
def test_verdicts_name_the_number(tmp_path, changes, algorithm, level, words):
    about = {"algorithm": {**ABOUT["algorithm"], **algorithm}}
    found = verdicts(read(make_run(tmp_path / "run", about=about, changes=changes))[0])
    assert any(verdict.level == level and words in verdict.title for verdict in found), found
    assert any(verdict.level == "good" for verdict in found) == (level in ("good", "note"))


@pytest.mark.parametrize("who", ["critic", "guide"])
def test_a_diverging_critic_and_a_falling_return_are_seen(tmp_path, who):
    run = make_run(tmp_path / "run", records=0)
    rows = [train_row(seed, 100 * index, **{f"{who}_loss": 1e3 if index > 18 else 1.0, "return": -index + 0.1 * seed})
            for index in range(1, 21) for seed in range(3)]  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    titles = [verdict.title for verdict in verdicts(read(run)[0])]
    assert [title for title in titles if "diverges" in title] == [
        f"the {who} diverges: its loss is 500 times its median"
    ]
    assert "the return fell" in titles


# --- Hostile text --------------------------------------------------------------------------------------------

HOSTILE = [
    "</script><script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "<svg/onload=window.hacked=1>",
    "<!--", "-->", "]]>", "<![CDATA[", "'\"><script>alert(1)</script>", "\" onmouseover=\"window.hacked=1", "' autofocus onfocus='alert(1)",
    "javascript:window.hacked=1", "data:text/html,<script>alert(1)</script>", "</style><script>window.hacked=1</script>",
    "</title><script>window.hacked=1</script>", "<iframe src='javascript:alert(1)'>", "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>", "<link rel=stylesheet href=http://evil.example/x.css>",
    "{{constructor.constructor('window.hacked=1')()}}", "${window.hacked=1}", "`;window.hacked=1;`", "\\u003cscript\\u003e",
    "=cmd|' /C calc'!A0", "@SUM(1+1)*cmd()", "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J", "a\u202egnp.exe\u2066\u200f", "nul\x00byte\r\nsecond line",
    "\u2028\u2029\x85", "__proto__", "constructor", "\ud800 lone", "\U000e0041tag\ufeff", "A" * 100_000, "@@DATA@@ @@SCRIPT@@", "\u0301" * 200,
]  # fmt: skip


class Outline(HTMLParser):
    """Elements and the text of scripts, as a browser's parser sees them."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.scripts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.lasttag == "script" and self.elements[-1][0] == "script":
            self.scripts[-1] += data


def hostile_run(directory):
    """Hostile strings wherever a run can hold text."""
    about = {
        "env": HOSTILE[0],
        "algo": HOSTILE[1],
        "algorithm": {**{text: text for text in HOSTILE}, "hidden": HOSTILE},
        "run": {**ABOUT["run"], **{text: [text] for text in HOSTILE}},
    }
    run = make_run(directory, about=about, changes=dict.fromkeys(HOSTILE, 1.0))
    rows = [{"kind": "evaluation", "seed": 0, "env_step": 1200, "rule": text, "return": 1.0} for text in HOSTILE]
    rows += [{"kind": text, "seed": 0, "env_step": 100, "x": 1.0} for text in HOSTILE]
    with (run / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    return run


def test_hostile_text_is_inert_in_the_page(tmp_path):
    assert len(HOSTILE) >= 30
    data = collect(read(hostile_run(tmp_path / "run")), ["<b>" + "".join(HOSTILE)])
    page, harmless = render(data), render(collect(read(make_run(tmp_path / "plain"))))
    outline, plain = Outline(page), Outline(harmless)
    assert outline.elements == plain.elements  # not one element or attribute more
    assert len(outline.scripts) == 2
    assert outline.scripts[1] == plain.scripts[1]
    assert json.loads(outline.scripts[0]) == inert(data)
    assert page.isascii() or not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b\u2028\u2029]", page)
    assert not re.search(r"[<>&\x00-\x1f]", outline.scripts[0].strip())
    assert len(page) < 2_000_000


def test_the_page_names_no_address_and_runs_only_its_own_code(tmp_path):
    page = render(collect(read(make_run(tmp_path / "run"))))
    addresses = set(re.findall(r"[a-z]+://[^\s\"'`]*", page)) - {"http://www.w3.org/2000/svg"}  # a name, never fetched
    assert not addresses
    policy = next(a["content"] for tag, a in Outline(page).elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in page


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert_in_the_terminal(text, tmp_path, capsys):
    shown = printable(text)
    assert shown.isprintable() or not re.search(
        r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]", shown
    )
    assert len(shown) < 40_000
    shown.encode()
    assert json.loads(to_json({text: text})) == {shown: shown}
    name = text.replace("/", "_").replace("\x00", "_")[:60]
    try:
        os.fsencode(name)
        missing = tmp_path / name
        assert main(["report", str(missing)]) == 2
    except (UnicodeEncodeError, SystemExit):
        return  # no file can have this name, or it reads as an option
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.strip("\n") == printable(error.strip("\n"))
    assert "not a run" in error


# --- Bad input -----------------------------------------------------------------------------------------------


def test_bad_runs_are_one_line_with_a_remedy(tmp_path, capsys):
    damaged = make_run(tmp_path / "damaged")
    (damaged / "run.json").write_text('{"env": "mult')
    lacking = make_run(tmp_path / "lacking", about={"algorithm": None})
    newer = make_run(tmp_path / "newer", about={"format": 7})
    odd = make_run(tmp_path / "odd")
    (odd / "run.json").write_bytes(b"[" * 100_000)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    cases = [
        (tmp_path / "nowhere", "is not a run: it has no run.json; name the directory that `s2ac train --out` made"),
        (tmp_path / "empty", "is not a run"),
        (tmp_path / "file", "is not a run"),
        (damaged, "run.json is damaged: it is not JSON; put it back from a copy"),
        (odd, "run.json is damaged"),
        (lacking, "run.json is damaged: 'algorithm' is missing or of the wrong kind"),
        (newer, "has format 7, this version reads up to 1: install a newer s2ac"),
    ]
    for directory, message in cases:
        for command in ("report", "watch"):
            assert main([command, str(directory)]) == 2
            error = capsys.readouterr().err
            assert error.count("\n") == 1
            assert message in error
    good = make_run(tmp_path / "good")
    assert main(["report", str(good), "--out", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
    assert main(["report", str(good), "--no-clouds", "--out", str(tmp_path / "file" / "x.html")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert main(["watch", str(good), "--port", "70000"]) == 2
    assert "port = 70000" in capsys.readouterr().err
    with pytest.raises(S2acError, match="report of what"):
        write_report([])


def test_empty_and_half_written_runs_get_a_page_that_says_so(tmp_path):
    empty = make_run(tmp_path / "empty", records=0)
    page = write_report([empty]).read_text()
    assert "no records yet" in page
    assert "no checkpoint yet" in page
    (empty / "metrics.jsonl").unlink()
    assert "no records yet" in write_report([empty], clouds=False).read_text()
    half = make_run(tmp_path / "half", records=1, evaluate=False)
    text = (half / "metrics.jsonl").read_text()
    (half / "metrics.jsonl").write_text(text[:-30])
    assert "half written" in write_report([half], clouds=False).read_text()


def test_a_newer_checkpoint_is_named(tmp_path):
    run = make_run(tmp_path / "run")
    manifest = run / "checkpoints" / "step_000000001200" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"body": {"format": 9, "facts": {"fingerprint": {"jax": "99"}}}, "sha256": ""}))
    page = write_report([run]).read_text()
    assert "has format 9" in page
    assert "There are no action clouds" in page
    assert collect(read(run))["runs"][0]["versions"] == {"jax": "99"}
    assert READS_FORMAT == checkpoint.FORMAT
    (run / "run.json").write_text("")
    with pytest.raises(S2acError, match=r"from body.facts.about in .*manifest.json"):
        read_about(run)


# --- Clouds --------------------------------------------------------------------------------------------------


def snapshot(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != "report.html"}


@pytest.mark.parametrize(("env", "algo"), [("multigoal", "s2ac"), ("multigoal", "ppo"), ("Pendulum-v1", "sql")])
def test_clouds_come_from_the_checkpoint_and_change_nothing(env, algo, tmp_path):
    from dataclasses import replace

    from s2ac.algorithms import ALGORITHMS
    from s2ac.report.clouds import collect_clouds
    from s2ac.settings import RunConfig
    from s2ac.training.trainer import start

    small = {"num_particles": 4, "num_steps": 1} if algo == "s2ac" else {}
    config = replace(ALGORITHMS[algo].config, hidden=(8,), **small)
    run = start(
        tmp_path / "run", env, algo, config, RunConfig(seeds=2, first_seed=3, num_envs=1, horizon=8, capacity=50)
    )
    run.save()
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:  # written after the checkpoint, as by a live run
        file.write(json.dumps(train_row(3, 100)) + "\n")
    before = snapshot(tmp_path / "run")
    clouds = collect_clouds(tmp_path / "run", read_about(tmp_path / "run"))
    assert snapshot(tmp_path / "run") == before
    assert (clouds["seed"], len(clouds["states"])) == (3, 8)
    dimension = len(clouds["low"])
    for state in clouds["states"]:
        assert np.shape(state["particles"]) == (64, dimension)
        assert np.all(np.abs(state["particles"]) <= np.array(clouds["high"]))
        if algo != "ppo":  # it has no Q
            assert len(state["grid"]) == {1: 121, 2: 37**2}[dimension]
    if algo == "s2ac":
        # The grid's order: its entry for the nearest action agrees with Q at a particle.
        state = clouds["states"][0]
        column, row = [round((value + 1) / 2 * 36) for value in state["particles"][0]]
        scale = max(state["grid"]) - min(state["grid"])
        assert abs(state["grid"][row * 37 + column] - state["q"][0]) < 0.06 * scale
        assert np.isfinite(state["log_prob"]).all()
        assert len(clouds["paths"]) == 6


def test_clouds_of_an_own_environment_are_refused_in_words(tmp_path):
    page = write_report([make_run(tmp_path / "run", about={"env": "custom:Mine"})]).read_text()
    assert "There are no action clouds: the environment is one of your own" in page


def test_a_run_ends_with_its_report(tmp_path, capsys):
    tiny = ["--hidden", "8", "--batch-size", "8", "--num-envs", "2", "--warmup-steps", "20", "--log-every", "40", "--steps", "80",
            "--evaluate-every", "40", "--episodes", "2", "--capacity", "100", "--seeds", "2"]  # fmt: skip
    assert main(["train", "multigoal", "--algo", "ddpg", "--out", str(tmp_path / "run"), *tiny]) == 0
    assert f"report: {tmp_path}/run/report.html\n" in capsys.readouterr().out
    data = json.loads(Outline((tmp_path / "run" / "report.html").read_text()).scripts[0])
    run = data["runs"][0]
    assert (run["env"], run["algo"], run["seeds"], run["state"]) == ("multigoal", "ddpg", [0, 1], "done")
    assert len(run["clouds"]["states"]) == 8
    assert run["versions"]["jax"]


# --- Watch ---------------------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path):
    """A run, its server's address, and a way to ask it."""
    run = make_run(tmp_path / "run", records=4)
    server = make_server(run)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield run, server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server, path, method="GET", **headers):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.server_address[1]}{path}", headers=headers, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def test_watch_serves_the_page_and_only_what_is_new(served):
    run, server = served
    assert server.server_address[0] == "127.0.0.1"
    status, page, headers = ask(server, "/")
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    assert "connect-src 'self'" in page
    data = json.loads(Outline(page).scripts[0])
    assert (data["live"], data["wait"] >= 2, data["runs"][0]["done"]) == (True, True, 400)
    assert "left out while watching" in data["runs"][0]["no_clouds"]
    version = data["version_of_data"]
    assert ask(server, f"/data.json?version={version}")[:2] == (204, "")
    with (run / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(train_row(seed, 500)) + "\n" for seed in range(3)))
    status, text, _ = ask(server, f"/data.json?version={version}")
    assert status == 200
    assert json.loads(text)["runs"][0]["done"] == 500


def test_watch_answers_local_names_and_known_paths_only(served):
    _, server = served
    port = server.server_address[1]
    assert ask(server, "/", Host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "127.0.0.1:1", ""):
        assert ask(server, "/data.json", Host=host)[0] == 403
    for path in ("/run.json", "/../run.json", "/%2e%2e/metrics.jsonl", "/data.json/x", "/favicon.ico"):
        assert ask(server, path)[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "X"):
        assert ask(server, "/", method)[0] == 405
    assert "<" not in ask(server, "/<script>")[1]


WATCH = """
import signal, sys
from s2ac.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits that it is ignored
sys.exit(main(sys.argv[1:]))
"""


def test_watch_prints_its_address_and_ends_cleanly(tmp_path):
    run = make_run(tmp_path / "run", records=2)
    process = subprocess.Popen(
        [sys.executable, "-c", WATCH, "watch", str(run)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=20)
    assert (process.returncode, error) == (0, "")
    assert "stopped watching" in output


def test_watch_needs_no_jax():
    code = "import s2ac.report.watch, s2ac.report.write, sys; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- A real browser ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if chromium.PATH is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    browser = chromium.Chromium(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def test_page_in_chromium(browser, tmp_path):
    """It loads, charts have data, hover tells values, paging works by button and key, and the console stays silent."""
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(make_run(tmp_path / "run")), [cloud_data(2)])))
    browser.open(path.as_uri())
    charts = browser.value("[...document.querySelectorAll('[data-chart]')].map(c => [c.dataset.chart, "
                           "Math.max(...[...c.querySelectorAll('polyline')].map(p => +p.dataset.points))])")  # fmt: skip
    assert len(charts) >= 11
    assert dict(map(tuple, charts))["Return in training"] == 12
    assert all(points >= 3 for _, points in charts)
    assert browser.value("document.querySelectorAll('[data-chart=\"Return in training\"] polyline').length") == 4

    tip = "[data-chart='Return in training'] .tip"
    assert browser.value(f'document.querySelector("{tip}").hidden')
    browser.hover("[data-chart='Return in training'] svg", 0.99)
    browser.wait(f'!document.querySelector("{tip}").hidden')
    text = browser.value(f'document.querySelector("{tip}").innerText')
    for words in ("step 1,200", "seed 0", "120", "seed 1", "122", "mean of 3 seeds", "[117, 127]"):
        assert words in text.replace("\n", " "), text

    number = "document.getElementById('state-number').textContent"
    picture = "document.querySelector('.cloud').innerHTML"
    assert browser.value(number) == "state 1 of 3"
    assert browser.value("document.querySelector('[data-cells]').dataset.cells") == str(37**2)
    assert browser.value("document.querySelectorAll('.cloud .particle').length") == 64
    first = browser.value(picture)
    browser.click("#next")
    assert browser.value(number) == "state 2 of 3"
    second = browser.value(picture)
    browser.key("ArrowRight")
    assert browser.value(number) == "state 3 of 3"
    browser.key("ArrowLeft")
    browser.click("#previous")
    browser.hover("[data-cloud]", 0.3, 0.3)
    browser.wait("!document.querySelector('.plot .tip').hidden")
    assert "action 1" in browser.value("document.querySelector('.plot .tip').innerText")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert (browser.value(number), first == second) == ("state 1 of 3", False)

    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(ground)
    browser.click("#theme")
    assert browser.value(ground) != light
    assert browser.value("document.documentElement.scrollWidth") <= 1400
    assert not browser.complaints()


@pytest.mark.parametrize(
    ("dimension", "kind", "particles"), [(1, "curve", 64), (3, "pairs", 3 * 64), (17, "pairs", 10 * 64)]
)
def test_clouds_of_other_dimensions_in_chromium(browser, tmp_path, dimension, kind, particles):
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(make_run(tmp_path / "run")), [cloud_data(dimension)])))
    browser.open(path.as_uri())
    assert browser.value("document.querySelector('[data-cloud]').dataset.cloud") == kind
    assert browser.value("document.querySelectorAll('.cloud .particle').length") == particles
    if dimension > 5:
        browser.click(".chips button:nth-child(17)")
        assert browser.value("document.querySelectorAll('.chips [aria-pressed=true]').length") == 5
    assert not browser.complaints()


def test_several_runs_in_chromium(browser, tmp_path):
    runs = [make_run(tmp_path / name, about={"env": env}) for name, env in (("a", "x"), ("b", "y"), ("c", "x"))]
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(*runs), [cloud_data(2), "None here.", cloud_data(3)])))
    browser.open(path.as_uri())
    assert browser.value("document.querySelectorAll('.compare tbody tr').length") == 2
    assert "nothing is averaged" in browser.value("document.body.innerText")
    browser.click(".tabs button:nth-child(2)")
    assert "None here." in browser.value("document.body.innerText")
    browser.click(".tabs button:nth-child(3)")
    assert browser.value("document.querySelector('[data-cloud]').dataset.cloud") == "pairs"
    assert not browser.complaints()


def test_hostile_text_is_inert_in_chromium(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(hostile_run(tmp_path / "run")), ["<img src=x onerror=window.hacked=1>"])))
    browser.open(path.as_uri())
    browser.value("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.hover("[data-chart='Return in training'] svg")
    browser.wait("document.querySelectorAll('[data-chart]').length >= 30")
    assert browser.value("window.hacked") is None
    assert (
        browser.value(
            "document.querySelectorAll('main img, main iframe, main script, main base, main link, main meta').length"
        )
        == 0
    )
    text = browser.value("document.body.textContent")
    for hostile in HOSTILE:
        assert printable(hostile) in text
    assert browser.value("document.documentElement.scrollWidth") <= 1400
    assert not browser.complaints()


def test_empty_run_in_chromium(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render(collect(read(make_run(tmp_path / "run", records=0)))))
    browser.open(path.as_uri())
    assert "no records yet" in browser.value("document.body.innerText")
    assert not browser.complaints()


def test_watched_page_renews_itself(browser, served):
    run, server = served
    browser.open(f"http://127.0.0.1:{server.server_address[1]}/")
    assert browser.value("document.getElementById('live').textContent") == "live"
    steps = "document.querySelectorAll('.stat dd')[1].firstChild.textContent"
    assert browser.value(steps) == "400"
    with (run / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(train_row(seed, 700)) + "\n" for seed in range(3)))
    browser.wait(f"{steps} === '700'", seconds=10)
    assert not browser.complaints()

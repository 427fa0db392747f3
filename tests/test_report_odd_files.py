"""A run's files may be anything: nothing hangs, nothing fills the memory, and what is wrong is one line."""

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest

from report_runs import make_run, read, train_row
from s2ac.cli.main import main
from s2ac.report import data as report_data
from s2ac.report import records
from s2ac.report.data import collect
from s2ac.report.page import render
from s2ac.report.write import write_report
from s2ac.text import to_json

MANIFEST = "checkpoints/step_000000001200/manifest.json"


def odd(path, kind):
    """Something that is no plain file of a sensible size, in the place of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 40 * 2**30)  # sparse


@pytest.fixture
def small_memory():
    """So little memory beyond what there is that a large file cannot be read by mistake; not for what compiles."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + 600 * 2**20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


KINDS = ("pipe", "device", "directory", "sparse")


@pytest.mark.parametrize("kind", KINDS)
def test_odd_run_json_and_metrics_are_a_line(tmp_path, capsys, small_memory, kind):
    run = make_run(tmp_path / "run")
    if kind != "sparse":
        odd(run / "metrics.jsonl", kind)
        for command in ("report", "watch"):
            assert main([command, str(run)]) == 2
            assert capsys.readouterr().err == f"s2ac: cannot read {run}/metrics.jsonl: not a plain file\n"
    odd(run / "run.json", kind)
    for command in ("report", "watch"):
        assert main([command, str(run)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert error.startswith(f"s2ac: cannot read {run}/run.json: ")
        assert ("has 42949672960 bytes" if kind == "sparse" else "not a plain file") in error


@pytest.mark.parametrize("kind", KINDS)
def test_odd_manifests_and_locks_are_passed_over(tmp_path, small_memory, kind):
    run = make_run(tmp_path / "run")
    for name in (MANIFEST, "lock"):
        odd(run / name, kind)
    write_report([run], clouds=False)
    assert collect(read(run))["runs"][0]["versions"] == {}


def test_an_odd_manifest_leaves_the_page_without_clouds(tmp_path):
    run = make_run(tmp_path / "run")
    odd(run / MANIFEST, "pipe")
    assert "There are no action clouds" in write_report([run]).read_text()


def test_a_huge_sparse_record_file_is_read_in_part(tmp_path, small_memory):
    run = make_run(tmp_path / "run")
    os.truncate(run / "metrics.jsonl", 40 * 2**30)
    (reader,) = read(run)
    assert reader.taken <= records.MOST_BYTES
    assert reader.series("train", "return").steps.tolist() == list(range(100, 1300, 100))
    assert "only its beginning and its end were read" in " ".join(collect([reader])["runs"][0]["notes"])
    assert not reader.update()


def test_of_a_long_file_the_ends_are_read_while_it_grows(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", seeds=1, records=400, evaluate=False)
    size = (run / "metrics.jsonl").stat().st_size
    monkeypatch.setattr(records, "MOST_BYTES", size // 4)
    monkeypatch.setattr(records, "BLOCK", 4096)
    (reader,) = read(run)
    steps = reader.series("train", "return").steps
    assert (steps[0], steps[-1]) == (100, 40_000)
    assert 90 <= len(steps) <= 101
    assert (np.diff(steps) > 100).sum() == 1  # one gap
    assert (reader.damaged, reader.half_line) == (0, False)
    assert reader.taken + reader.skipped == size
    for step in range(40_100, 50_100, 100):  # another quarter of the size
        with (run / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(train_row(0, step)) + "\n")
        assert reader.update()
        assert reader.series("train", "return").steps[-1] == step
        assert reader.taken < size // 4 * 1.6
    assert reader.damaged == 0


def test_lines_without_an_end_and_names_without_number_are_left_out(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", seeds=1, records=2, evaluate=False)
    monkeypatch.setattr(records, "BLOCK", 4096)
    monkeypatch.setattr(records, "MOST_METRICS", 20)
    odd_rows = [
        {"kind": "train", "seed": 10**400, "env_step": 1, "return": 1.0},
        {"kind": "train", "seed": -1, "env_step": 1, "return": 1.0},
        {"kind": "evaluation", "seed": 0, "env_step": 1, "rule": ["sample"], "return": 1.0},
        {"kind": "train", "seed": 0, "env_step": 1e999, "return": 1.0},
    ]
    with (run / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in odd_rows))
        file.write("x" * 20_000 + "\n")
        file.write(json.dumps({"kind": "strange", "seed": 0, "env_step": 1, "return": 1.0}) + "\n")
        file.write(json.dumps({**train_row(0, 300), **{f"name {index}": 1.0 for index in range(100)}}) + "\n")
    (reader,) = read(run)
    assert reader.series("train", "return").steps.tolist() == [100, 200, 300]
    assert (len(reader.columns), reader.damaged) == (20, 4 + 5)  # four blocks of the line, and its end
    assert "more than 20 metrics" in " ".join(collect([reader])["runs"][0]["notes"])


@pytest.mark.parametrize("what", ["run.json", "manifest"])
def test_deep_json_is_no_traceback(tmp_path, capsys, what):
    run = make_run(tmp_path / "run")
    for depth in (21, 900, 5_000, 100_000):
        deep = "[" * depth + "]" * depth
        if what == "run.json":
            about = json.dumps(json.loads((make_run(tmp_path / str(depth)) / "run.json").read_text()))
            (run / "run.json").write_text(about[:-1] + f', "more": {deep}}}')
            assert main(["report", str(run), "--no-clouds"]) == 2
            error = capsys.readouterr().err
            assert "is damaged: it is" in error
            assert error.count("\n") == 1
        else:
            (run / MANIFEST).parent.mkdir(parents=True, exist_ok=True)
            fingerprint = f'{{"deep": {deep}, "jax": "99"}}'
            (run / MANIFEST).write_text(f'{{"body": {{"format": {deep}, "facts": {{"fingerprint": {fingerprint}}}}}}}')
            write_report([run])


def test_a_diagonal_of_seeds_and_steps_takes_little_memory(tmp_path):
    """5,000 seeds with a record each, at 5,000 steps: as a table 25 million cells a metric."""
    run = make_run(tmp_path / "run", records=0)
    rows = [json.dumps(train_row(index, index)) for index in range(5_000)]
    (run / "metrics.jsonl").write_text("\n".join(rows) + "\n")
    code = f"""
import resource, sys
from pathlib import Path
from s2ac.report.write import write_report
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
write_report([Path({str(run)!r})], clouds=False)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert int(ended.stdout) < 200  # MB; one such table alone has 200
    page = (run / "report.html").stat().st_size
    assert page < 2_000_000


def test_numbers_that_overflow_are_left_out_without_a_word(tmp_path):
    run = make_run(tmp_path / "run", changes={"return": 1.7e308, "alpha": -1.7e308, "q_mean": 1e999})
    data = collect(read(run))
    assert json.loads(to_json(data))["runs"][0]["judged"]


def test_large_settings_are_shown_in_part(tmp_path):
    many = {f"field_{index}": index for index in range(5_000)}
    run = make_run(tmp_path / "run", about={"algorithm": {**many, "alpha": 10**400, "step_size": float("inf")}})
    shown = collect(read(run))["runs"][0]
    assert len(shown["config"]["algorithm"]) == report_data.MOST_FIELDS
    assert len(render(collect(read(run)))) < 1_000_000

"""Files that were made to hurt: pipes, devices, huge sizes, manifests that verify and lie. One line each, soon, in little memory."""

import gc
import json
import os
import shutil
import subprocess
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import s2ac
from damage import ABOUT, answer, bounded, forget_peak, peak, read_all, small_run
from runs import COMMAND
from s2ac.agent import Agent
from s2ac.cli.main import main
from s2ac.errors import S2acError
from s2ac.report.records import Reader
from s2ac.runs.about import configs_of
from s2ac.runs.begun import make_empty
from s2ac.runs.files import read_regular
from s2ac.runs.lock import holder, lock
from s2ac.runs.manifest import digest
from s2ac.runs.records import Records

LAST = "checkpoints/step_000000000004"
FILES = ["run.json", "metrics.jsonl", "lock", "checkpointed", f"{LAST}/manifest.json", f"{LAST}/state.safetensors",
         "replay/rows_000000000000_000000000005.safetensors"]  # fmt: skip
KINDS = {
    "a pipe": lambda path: os.mkfifo(path),
    "a link to zeros": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to(path.parent / "gone"),
    "a directory": lambda path: path.mkdir(),
    "40 GB of nothing": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR, 0o644), 40 * 10**9),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    run = tmp_path_factory.mktemp("made") / "run"
    small_run(run)
    return run


@pytest.fixture
def run(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", FILES)
def test_a_file_of_another_kind_is_refused_at_once(run, file, kind):
    step, whole, said = read_all(run)
    assert (step, said) == (4, [])
    (run / file).unlink(missing_ok=True)
    KINDS[kind](run / file)
    found = answer(read_all, run)
    if file == "checkpointed" or (file, kind) == ("lock", "40 GB of nothing"):  # what they hold does not matter
        assert found[:2] == (step, whole)
    elif file.startswith(LAST):
        assert found[0] == 3
        assert Path(file).name in found.said[0]
    else:
        assert Path(file).name in found, found
    for look in (holder, Reader):
        answer(look, run)
    assert not (run / "gone").exists()


def test_reading_looks_at_size_and_kind_first(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="has 5 bytes, more than the 4"):
        read_regular(tmp_path / "file", 4)
    with pytest.raises(OSError, match="not a plain file"):
        read_regular(Path("/dev/zero"), 10)


def test_memory_is_measured():
    gc.collect()  # or it is given back meanwhile
    forget_peak()
    before = peak()
    np.ones(50 * 2**17).sum()
    assert 45 * 2**20 < peak() - before < 120 * 2**20


def test_an_offset_beyond_the_records_makes_no_file_of_that_size(run):
    sign(run, lambda body: body["facts"].update(metrics_offset=10**13))
    assert "when the checkpoint was written" in answer(read_all, run)
    records = Records(run / "metrics.jsonl", 10**13)
    with pytest.raises(S2acError, match="when the checkpoint was written"):
        records.add([{"kind": "train"}])
    assert (run / "metrics.jsonl").stat().st_size < 1000


def test_a_new_run_never_writes_through_a_link(tmp_path):
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "metrics.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(S2acError, match=r"cannot write to .*: not a plain file"):
        make_empty(tmp_path / "run")
    (tmp_path / "run" / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(S2acError, match=r"cannot write .*lock: not a plain file"), lock(tmp_path / "run"):
        pass
    assert not (tmp_path / "elsewhere").exists()


# --- Manifests that verify and lie ---------------------------------------------------------------------------


def sign(run, change):
    """Change the newest manifest's body, and sign it again."""
    path = run / LAST / "manifest.json"
    body = json.loads(path.read_text())["body"]
    changed = change(body)
    body = body if changed is None else changed
    path.write_text(json.dumps({"body": body, "sha256": digest(body)}))


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers(-(10**20), 10**20) | strategies.floats() | strategies.text(max_size=5),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def places(body, path=()):
    """Every place in a tree of JSON values."""
    yield path
    inside = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def put(body, place, value):
    if not place:
        return value
    for key in place[:-1]:
        body = body[key]
    body[place[-1]] = value
    return None


def assert_manifests_of_any_kind_are_refused(made, tmp_path_factory, examples):
    run = Path(shutil.copytree(made, tmp_path_factory.mktemp("signed") / "run"))
    written = (run / LAST / "manifest.json").read_text()
    every = list(places(json.loads(written)["body"]))
    whole = read_all(run)[1]

    @hypothesis.settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @hypothesis.given(strategies.sampled_from(every), JSON)
    def check(place, value):
        (run / LAST / "manifest.json").write_text(written)
        sign(run, lambda body: put(body, place, value))
        found = answer(read_all, run)
        if not isinstance(found, str) and found[0] == 4 and not found.said:
            assert found[1] == whole or place[:2] in (("facts", "extra"), ("format",))

    check()


def test_signed_manifests_of_any_kind_are_refused(made, tmp_path_factory):
    assert_manifests_of_any_kind_are_refused(made, tmp_path_factory, 150)


@pytest.mark.slow
def test_many_signed_manifests_of_any_kind_are_refused(made, tmp_path_factory):
    assert_manifests_of_any_kind_are_refused(made, tmp_path_factory, 5000)


def test_a_deep_and_a_wrong_run_json(run):
    texts = ["[" * 100_000, '{"a":' * 50_000, "null", "[]", "3", '"x"', "{}", "\ud83d".encode("utf-8", "surrogatepass"), b"\xff\xfe",
             json.dumps({**ABOUT, "env": None}), json.dumps({**ABOUT, "algo": ["sac"]}), json.dumps({**ABOUT, "run": 3}),
             json.dumps({**ABOUT, "version": "new"}), json.dumps({**ABOUT, "version": [1]}),
             json.dumps({**ABOUT, "algorithm": {"hidden": {}}}), '{"run": ' + "9" * 5000 + "}"]  # fmt: skip
    for text in texts:
        (run / "run.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        found = answer(read_all, run)
        assert isinstance(found, str), text[:80]
        assert "run.json" in found
        assert isinstance(answer(Reader, run), str | Reader)


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True, database=None)
@hypothesis.given(strategies.sampled_from(list(places(json.loads(json.dumps(ABOUT))))), JSON)
def test_a_run_json_of_any_kind_is_understood_or_refused(tmp_path_factory, place, value):
    about = json.loads(json.dumps(ABOUT))
    changed = put(about, place, value)
    about = about if not place else changed
    run = tmp_path_factory.mktemp("odd")
    (run / "run.json").write_text(json.dumps(about))

    def understood():
        from s2ac.runs.about import read_about, same_run

        found = read_about(run)
        same_run(found, ABOUT)
        return configs_of(found, run)

    answer(understood)


# --- An agent whose files are not of one run -----------------------------------------------------------------


def test_an_edited_run_json_is_refused_not_played(tmp_path, capsys):
    """Another activation is another policy: said in one line, also where only the agent is loaded."""
    agent = Agent("multigoal", "sac", directory=tmp_path / "never", hidden=(4,), capacity=100, seeds=1)
    copy = agent.save(tmp_path / "copy")
    about = json.loads((copy / "run.json").read_text())
    s2ac.load(copy)
    used, about["algorithm"]["activation"] = about["algorithm"]["activation"], "tanh"
    (copy / "run.json").write_text(json.dumps(about))
    with pytest.raises(S2acError, match=r"not of the run that run\.json describes; put run\.json back"):
        s2ac.load(copy)
    assert main(["evaluate", str(copy)]) == 4
    assert capsys.readouterr().err.count("\n") == 1
    about["algorithm"]["activation"] = used
    about["run"]["workers"] = 0
    about["run"]["steps"] = 17
    (copy / "run.json").write_text(json.dumps(about))
    s2ac.load(copy)  # what does not matter to the policy may differ


def test_changed_records_are_said_on_resume(run, tmp_path):
    metrics = run / "metrics.jsonl"
    text = metrics.read_text()
    metrics.write_text(text.replace("-1.5", "-2.5", 1))
    assert "some of its records are not the run's" in read_all(run).said[0]
    metrics.write_text(text + '{"kind": "train"')  # what a crash leaves is no change
    assert read_all(run).said == []


@pytest.mark.parametrize(("study", "file"), [("entropy", "records.jsonl"), ("multigoal", "records.jsonl"), ("mujoco", "Hopper.json"), ("runtime", "records.json")])  # fmt: skip
def test_records_of_a_study_that_are_no_files_are_refused_at_once(study, file, tmp_path, capsys):
    for index, make in enumerate((lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero"), lambda path: path.write_text("[" * 10**5))):  # fmt: skip
        place = tmp_path / str(index)
        place.mkdir()
        make(place / file)
        code = bounded(
            main, ["reproduce", study, "--from-results", str(place), "--out", str(tmp_path / "out")], memory=2**30
        )
        assert code == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert str(place) in error


BAD_RUNS = {
    "missing": lambda path: None,
    "empty": lambda path: path.mkdir(),
    "a file": lambda path: path.write_text("run"),
    "a circle": lambda path: path.symlink_to(path),
    "a pipe": lambda path: (path.mkdir(), os.mkfifo(path / "run.json")),
    "a device": lambda path: (path.mkdir(), (path / "run.json").symlink_to("/dev/zero")),
    "nothing written": lambda path: (path.mkdir(), (path / "run.json").touch()),
    "binary": lambda path: (path.mkdir(), (path / "run.json").write_bytes(bytes(range(256)) * 100)),
    "NUL": lambda path: (path.mkdir(), (path / "run.json").write_bytes(bytes(1000))),
    "deep": lambda path: (path.mkdir(), (path / "run.json").write_text("[" * 10**6)),
    "100 MB": lambda path: (path.mkdir(), (path / "run.json").write_bytes(b'{"env": "' + b"x" * 10**8 + b'"}')),
    "no checkpoint": lambda path: (path.mkdir(), (path / "run.json").write_text(json.dumps(ABOUT)), (path / "checkpointed").touch()),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bad", BAD_RUNS)
def test_bad_runs_are_one_line_in_processes_of_their_own(bad, tmp_path):
    BAD_RUNS[bad](tmp_path / "run")
    for words in (["report"], ["evaluate"], ["export"], ["play"], ["train", "--resume"]):
        done = subprocess.run([*COMMAND, *words, "run"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        if (bad, words) == ("no checkpoint", ["report"]):  # there is a page, which says so
            assert done.returncode == 0
            continue
        assert done.returncode in (2, 4), done
        assert done.stderr.startswith("s2ac: ")
        assert done.stderr.count("\n") == 1
        assert "run" in done.stderr

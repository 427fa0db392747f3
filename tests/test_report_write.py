"""The command `report`: odd runs get a page or one line that says what to do."""

import json

import pytest

from report_runs import make_run, read
from s2ac.cli.main import main
from s2ac.errors import S2acError
from s2ac.report.about import read_about
from s2ac.report.data import collect
from s2ac.report.write import write_report
from s2ac.runs.manifest import VERSION


def test_bad_runs_are_one_line_with_a_remedy(tmp_path, capsys):
    damaged = make_run(tmp_path / "damaged")
    (damaged / "run.json").write_text('{"env": "mult')
    lacking = make_run(tmp_path / "lacking", about={"algorithm": None})
    newer = make_run(tmp_path / "newer", about={"version": VERSION + 2})
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
        (newer, f"has version {VERSION + 2}, this s2ac reads up to {VERSION}: install a newer one"),
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
    assert "The first record comes after 100 steps" in page
    assert "the run has no checkpoint yet" in page
    (empty / "metrics.jsonl").unlink()
    assert "The first record comes after 100 steps" in write_report([empty], clouds=False).read_text()
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
    (run / "run.json").write_text("")
    with pytest.raises(S2acError, match=r"from body.facts.about in .*manifest.json"):
        read_about(run)


def test_a_page_that_is_written_again_is_the_same_to_the_byte(tmp_path):
    run = make_run(tmp_path / "run")
    first = write_report([run], clouds=False).read_bytes()
    assert write_report([run], clouds=False).read_bytes() == first

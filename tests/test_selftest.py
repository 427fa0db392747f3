"""The self-test: what it says of a promise that holds, that does not, and that cannot be tried; and all of it, once."""

import json
from pathlib import Path

import pytest

from s2ac.cli.main import main
from s2ac.selftest import checks, page
from s2ac.selftest.checks import CHECKS, NotTried
from s2ac.selftest.page import about_here, page_of, run_selftest, try_all
from s2ac.selftest.tiny import NotHeld


def broken(here):
    """Never | so."""
    assert here.place.is_absolute()  # trainings have it as their working directory
    raise NotHeld("other\nbytes")


def impossible(here):
    """Not here."""
    raise NotTried("no such disk")


def wrong(here):
    """By mistake."""
    raise ZeroDivisionError("by nothing")


def test_every_promise_is_a_sentence():
    for check in CHECKS.values():
        assert check.__doc__.strip().endswith(".")


def test_the_page_and_the_verdict(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        page, "CHECKS", {"file system": checks.file_system, "broken": broken, "impossible": impossible, "wrong": wrong}
    )
    monkeypatch.setattr(page, "try_all", lambda here: try_all(here, ("file system", "broken", "impossible", "wrong")))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotHeld, match=r"2 of 4 promises do not hold here \(broken, wrong\): see .*selftest\.md"):
        run_selftest(Path("out"), thorough=False)
    assert "NOT HELD: broken: NotHeld: other bytes" in capsys.readouterr().out
    text = (tmp_path / "out" / "selftest.md").read_text()
    assert "1 of 4 promises held on this machine, 2 did not, 1 could not be tested." in text
    assert "| Never &#124; so. | NOT HELD | NotHeld: other bytes |" in text
    assert "ZeroDivisionError: by nothing" in text
    whole = json.loads((tmp_path / "out" / "selftest.json").read_text())
    assert [each["held"] for each in whole["findings"]] == [True, False, None, False]
    assert whole["about"]["file_system"] not in ("", "unknown")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["selftest.json", "selftest.md"]


def test_a_place_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["selftest", "--out", str(tmp_path / "file")]) == 5
    assert capsys.readouterr().err.count("\n") == 1


def test_a_relative_place_is_found_by_the_processes_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = []
    monkeypatch.setattr(page, "try_all", lambda here: places.append(here.place) or [])
    assert main(["selftest", "--out", "out"]) == 0
    assert [place.parent for place in places] == [tmp_path / "out"]


def test_what_the_page_says_of_nothing():
    assert page_of([], {"date": ""}).startswith("# Self-test of s2ac\n\n0 of 0 promises held")
    assert about_here(checks.Path("/proc"), False)["file_system"] == "proc"


@pytest.mark.slow
def test_every_promise_holds_here(tmp_path):
    assert main(["selftest", "--out", str(tmp_path / "out")]) == 0
    findings = json.loads((tmp_path / "out" / "selftest.json").read_text())["findings"]
    assert [each["name"] for each in findings] == list(CHECKS)
    assert {each["held"] for each in findings} <= {True, None}

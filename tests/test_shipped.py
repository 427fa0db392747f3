"""What a wheel holds beside the code, found by name from anywhere."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import S2acError
from s2ac.runs.places import find_agent, find_records

ROOT = Path(__file__).parents[1]
STUDIES = {
    "entropy": "records.jsonl", "multigoal": "records.jsonl", "runtime": "records.json", "mujoco": "claims.json", "pointmaze": "records.jsonl",
}  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The wheel, unpacked where nothing may be written."""
    pytest.importorskip("hatchling")
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    assert wheel.stat().st_size < 4e6
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    for path in [*(place / "site").rglob("*"), place / "site"]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield place / "site"
    for path in [place / "site", *(place / "site").rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_the_wheel_holds_agents_and_records_as_in_the_repository(installed):
    inside = installed / "s2ac" / "results"
    assert {path.parent.name for path in (inside / "agents").glob("*/*/run.json")} == set(ALGORITHMS)
    for name in ("agents", *STUDIES):
        for path in (ROOT / "results" / name).rglob("*"):
            if path.is_file():
                assert (inside / path.relative_to(ROOT / "results")).read_bytes() == path.read_bytes()


def test_the_wheel_holds_the_report_page(installed):
    page = Path("s2ac", "report", "web")
    names = {path.name for path in (ROOT / "src" / page).iterdir()}
    assert {"page.html", "page.css", "main.js"} < names
    assert {path.name for path in (installed / page).iterdir()} == names


def test_an_installed_wheel_loads_a_shipped_agent_by_name(installed, tmp_path):
    code = """
import numpy as np, s2ac
from s2ac.runs.places import find_records
agent = s2ac.load("multigoal/s2ac")
print(s2ac.__file__, agent.directory, agent.predict(np.zeros(2, np.float32), draw=1).shape, find_records("results/entropy"))
"""
    env = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    package = installed / "s2ac"
    results = package / "results"
    assert ended.stdout == f"{package}/__init__.py {results}/agents/multigoal/s2ac (2,) {results}/entropy\n"
    assert not list(tmp_path.iterdir())


def test_names_are_looked_up_only_where_there_is_no_such_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for study, file in STUDIES.items():
        assert (find_records(study) / file).exists()
        assert (find_records(f"results/{study}") / file).exists()
    assert find_records("nothing") == Path("nothing")
    assert find_records("results/../results") == Path("results/../results")
    Path("entropy").mkdir()
    assert find_records("entropy") == Path("entropy")
    assert find_agent("multigoal/sac").is_dir()
    for name in ("multigoal/../multigoal/sac", "multigoal", "/multigoal/sac"):
        with pytest.raises(S2acError, match="neither a directory nor a shipped agent"):
            find_agent(name)

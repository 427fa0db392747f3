"""Every code block of the README and the docs runs; every command line parses, and the short ones run too."""

import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.cli import parse

ROOT = Path(__file__).parent.parent
SHORT = ["--steps", "600", "--log-every", "600"]  # for the pages whose commands train to the end
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    """The fenced blocks of a page; in a list they are indented."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(page):
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


@pytest.mark.parametrize(
    "page",
    [p if p.name == "README.md" else pytest.param(p, marks=pytest.mark.slow) for p in PAGES if blocks(p, "python")],
    ids=lambda p: p.name,
)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """One after the other in one namespace, as a reader would paste them."""
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "sh")], ids=lambda p: p.name)
def test_commands_are_known(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(page):
        program = Path(words[0]).name
        if program == "make":
            assert set(words[1:]) <= targets
        elif program == "python":
            assert (ROOT / words[1]).exists()
        else:
            assert program in ("s2ac", "pip")
            if program == "s2ac" and "--help" not in words:
                parse(words[1:])


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.parent.name in ("docs", "algorithms") and blocks(p, "sh")],
    ids=lambda p: p.name,
)
def test_commands_run(page, tmp_path):
    for words in commands(page):
        if Path(words[0]).name == "s2ac":
            short = SHORT if page.parent.name == "algorithms" else []
            subprocess.run([sys.executable, "-m", "s2ac.cli", *words[1:], *short], cwd=tmp_path, check=True)


def test_every_algorithm_has_its_page_and_picture():
    overview = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    for name in ALGORITHMS:
        page = "s2ac" if name.startswith("s2ac") else name
        text = (ROOT / "docs" / "algorithms" / f"{page}.md").read_text(encoding="utf-8")
        assert f"[`{name}`](algorithms/{page}.md)" in overview
        for part in (
            "Idea",
            "Equations",
            "Where we differ",
            "Fields that matter",
            "Selection rules",
            "Train it",
            "Results",
        ):
            assert f"\n## {part}" in text, (page, part)
        assert f"(img/{name}.png)" in text
        assert (ROOT / "docs" / "algorithms" / "img" / f"{name}.png").stat().st_size < 60_000
    assert (ROOT / "docs" / "img" / "demo.png").stat().st_size < 60_000


def test_the_readme_says_what_the_results_say():
    example = runpy.run_path(str(ROOT / "examples" / "results_table.py"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text == example["with_results"](text, example["results"]()), (
        "results/ has changed: python examples/results_table.py --write"
    )


def test_results_are_told_from_files_alone(tmp_path):
    """A study that is there is told, one that is not is left out; a long measurement is left to its file."""
    example = runpy.run_path(str(ROOT / "examples" / "results_table.py"))
    (tmp_path / "multigoal").mkdir()
    claim = {"number": 4, "claim": "all goals", "place": "4.2", "measured": "x" * 300, "verdict": "does not hold"}
    about = {"about": {"command": "s2ac reproduce multigoal"}, "claims": [claim]}
    (tmp_path / "multigoal" / "claims.json").write_text(json.dumps(about))
    made = example["results"](tmp_path)
    assert "| all goals | 4.2 | **does not hold** | [in the file](results/multigoal/claims.json) |" in made
    assert "MuJoCo" not in made
    assert "Entropy" not in made


def test_the_mujoco_page_shows_the_readmes_table():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("| | Hopper | Walker2d |") :].split("\n\n", 1)[0]
    assert table in (ROOT / "docs" / "studies" / "mujoco.md").read_text(encoding="utf-8")

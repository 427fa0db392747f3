"""Every code block of the README and the docs runs; every command line parses, and the short ones run too."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from s2ac.cli import parse

ROOT = Path(__file__).parent.parent
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
    "page", [p for p in PAGES if p.parent.name == "docs" and blocks(p, "sh")], ids=lambda p: p.name
)
def test_commands_run(page, tmp_path):
    for words in commands(page):
        if Path(words[0]).name == "s2ac":
            subprocess.run([sys.executable, "-m", "s2ac.cli", *words[1:]], cwd=tmp_path, check=True)

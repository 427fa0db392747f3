"""Tables in csv and Markdown: text from names, settings, errors and files of records makes no formula, no row, no markup and no element."""

import csv
import io
import json
from functools import cache

import pytest
from markdown import markdown as render

from report_runs import HOSTILE, Outline
from s2ac.selftest.page import Finding, page_of
from s2ac.settings import resolve
from s2ac.studies.mujoco.claims import whole_table
from s2ac.studies.mujoco.exchange import long_csv
from s2ac.studies.runtime import table
from s2ac.sweep.plan import Planned
from s2ac.sweep.results import Result, write_csv
from s2ac.text import escaped, printable, spreadsheet
from test_mujoco_study import made_up
from test_runtime_study import made_up as timed

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "=HYPERLINK(\"http://evil.example\")", "\t=1+1", "  -2+3", "＝1+1", "\r=1", "-", "+A1|B"]  # fmt: skip
MARKUP = ["a | b", "|---|", "`code`", "*a* **b**", "_a_ __b__", "[a](http://evil.example)", "![a](http://evil.example/a.png)", "~~a~~", "$x$",
          "&lt;b&gt;", "\\<b>", "\n\n# Heading", "\n| a | b |\n", "<!-- a", "a\\|b", "``a`` <b>`"]  # fmt: skip
TEXTS = [*HOSTILE, *FORMULAS, *MARKUP]
NUMBERS = [-137.25, 0, -3, 1e-5, -1e20, True, None, ""]


def cells(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def is_inert(cell):
    return not cell.lstrip().startswith(("=", "+", "-", "@", "＝")) and "\n" not in cell and "\r" not in cell


def test_no_text_is_a_formula_and_every_number_a_number():
    assert all(is_inert(spreadsheet(text)) for text in TEXTS)
    assert all(spreadsheet(text).lstrip("'") == printable(text).lstrip("'") for text in TEXTS)
    assert [spreadsheet(number) for number in NUMBERS] == NUMBERS
    assert [spreadsheet(text) for text in ("multigoal-sac-alpha=0.1-seed0", "done", "1e-3")] == ["multigoal-sac-alpha=0.1-seed0", "done", "1e-3"]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_the_csv_of_a_sweep(text, tmp_path):
    settings = resolve("multigoal", "sac")._replace(env=text)
    run = Planned(text, settings, {"activation": text, "alpha": -0.5})
    write_csv(tmp_path / "results.csv", [run], {text: Result("failed", text, {0: (60, -137.25)})})
    first, *others = cells((tmp_path / "results.csv").read_text(encoding="utf-8"))
    assert first == ["run", "env", "algo", "seed", "activation", "alpha", "step", "return", "status", "reason"]
    assert len(others) == run.settings.run.seeds
    assert all(len(row) == len(first) for row in others)
    row = dict(zip(first, others[0], strict=True))
    assert (row["alpha"], row["return"], row["step"], row["status"]) == ("-0.5", "-137.25", "60", "failed")
    assert all(is_inert(row[name]) for name in ("run", "env", "activation", "reason"))


@pytest.mark.parametrize("text", TEXTS)
def test_the_csv_of_records(text):
    """Anyone may have written them."""
    found = cells(long_csv([made_up(env=text, seeds=1, level=-1.0)]))
    assert all(len(row) == 6 for row in found)
    assert all(is_inert(row[1]) for row in found)
    assert min(float(row[-1]) for row in found[1:]) < 0


@cache
def outlines(text):
    """Elements and lines of every page that has the text wherever it can be."""
    about = dict.fromkeys(("device", "cores", "load", "turns"), text)
    rows = [{**row, "task": text} for row in timed()["rows"][:1]]
    pages = [
        page_of([Finding("kills", text, True, text, 1.0)], {"file_system": text}),
        table({"about": about, "rows": rows}),
        whole_table([made_up(failures={"1": text}), made_up("sac")]),
    ]
    return [([tag for tag, _ in Outline(render(page, extensions=["tables"])).elements], page.count("\n")) for page in pages]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_the_tables_in_markdown(text):
    """The elements of a page with hostile text are those of one with harmless text."""
    assert outlines(text) == outlines("harmless")
    shown = "".join(Shown(render(f"x {escaped(text)} x")).text)
    assert shown == f"x {printable(text)} x"


class Shown(Outline):
    """The text that a reader sees."""

    def __init__(self, page):
        self.text = []
        super().__init__(page)

    def handle_data(self, data):
        self.text.append(data)


def test_what_is_harmless_stays_readable():
    for text in ("/tmp/a_run/out", "s2ac 0.1.0", "x86_64", "(3, 1)", "-137.2"):
        assert escaped(text) == text
    assert json.loads(json.dumps(spreadsheet(-1.5))) == -1.5

"""Every code block of the README and the docs runs; every command line parses, and the short ones run too."""

import json
import re
import runpy
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
import scipy.stats

from s2ac.algorithms import ALGORITHMS
from s2ac.cli.main import parse
from s2ac.settings import resolve
from s2ac.studies.statistics import t_interval

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


@pytest.mark.slow
def test_the_notebook_runs_and_its_stored_outputs_are_small(tmp_path, monkeypatch):
    """Cell after cell, as a kernel would; what it has printed before is in the page."""
    notebook = ROOT / "docs" / "first-look.ipynb"
    assert notebook.stat().st_size < 60_000
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    assert {output["output_type"] for cell in cells for output in cell["outputs"]} == {"stream", "display_data"}
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for cell in cells:
        exec(compile("".join(cell["source"]), notebook.name, "exec"), namespace)
    assert namespace["exported"].file.exists()
    assert namespace["result"].mean > -400


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
            subprocess.run([sys.executable, "-m", "s2ac", *words[1:], *short], cwd=tmp_path, check=True)


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


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(ROOT / "examples" / "results_table.py"))


@pytest.mark.parametrize("name", ["README.md", "docs/results.md"])
def test_the_page_says_what_the_results_say(name, example):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == example["with_results"](text, example["PAGES"][name](ROOT / "results")), (
        "results/ has changed: python examples/results_table.py --write"
    )


def headlines():
    """README's table, as cells by its first column."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text[text.index("| actions by `sample` |") :].split("\n\n", 1)[0].splitlines()
    head, *rows = [line.strip("| ").split(" | ") for line in lines]
    assert head[1:4] == ["S²AC", "SAC-NF", "SAC"]
    return {re.sub(r"\(docs[^)]*\)", "", name): cells for name, *cells in rows[1:]}


def numbers(text):
    return [float(found) for found in re.findall(r"\d+(?:\.\d+)?", text)]


def test_headlines_of_multigoal_are_of_the_rule_they_name():
    """Computed here from the records of `sample`, without the code that makes the table."""
    records, rows = multigoal_records(), headlines()
    goals = rows["[Multigoal], α as above: agents with all goals"]
    for index, alpha in enumerate((0.2, 1, 10, 20)):
        *cells, verdict = rows[f"[Multigoal], α = {alpha:g}: gap"]
        for system, cell, kept in zip(("S²AC(φ,θ)", "SAC-NF", "SAC"), cells, goals, strict=False):
            agents = [r["sample"] for r in records if r.get("system") == system and r["alpha"] == alpha]
            assert len(agents) == 20
            mean = sum(agent["gap"] for agent in agents) / len(agents)
            assert numbers(cell)[0] == pytest.approx(mean, abs=0.00501)
            shares = [min(agent["shares"][:3]) > 0.02 for agent in agents]
            assert numbers(kept)[index] == pytest.approx(100 * sum(shares) / len(agents))
        (ours, *others) = [numbers(cell) for cell in cells]
        assert all(sum(ours) < value - half for value, half in others)  # "Which algorithm when" says so
        assert verdict == "closer than SAC-NF and SAC"
    assert goals[0] == "100, 100, 100, 100 %"
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert re.search(r"keeps all three goals( in each of 20 agents)? at every temperature", text)


@cache
def multigoal_records():
    lines = (ROOT / "results" / "multigoal" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def gaps(system, alpha):
    """Of each agent by `sample`, by seed."""
    found = [r for r in multigoal_records() if r.get("system") == system and r["alpha"] == alpha]
    return {r["seed"]: r["sample"]["gap"] for r in found}


def test_what_is_said_of_stein_steps_is_what_the_records_say():
    """The share of the gap that they remove, and with which α a learned start that takes five has a smaller gap than a fixed one with three."""
    moved, unmoved = (sum(gaps(system, 0.2).values()) for system in ("S²AC(φ,θ)", "S²AC(φ,θ), L = 0"))
    page = (ROOT / "docs" / "studies" / "multigoal.md").read_text(encoding="utf-8")
    for text in (page, (ROOT / "README.md").read_text(encoding="utf-8")):
        assert re.findall(r"remove (\d+) % of the gap", text) == [f"{100 * (1 - moved / unmoved):.0f}"]
    few, learned = ([gaps(system, alpha) for alpha in (0.2, 1, 10, 20)] for system in ("S²AC(φ), L = 3", "S²AC(φ,θ)"))
    paired = [t_interval([a[seed] - b[seed] for seed in a]) for a, b in zip(few, learned, strict=True)]
    assert [found.low > 0 for found in paired] == [True, True, False, False]
    assert all(found.high > 0 for found in paired)
    assert f"At α = 1 the difference is {paired[1]:.2f}, paired by seed. At α = 10 and 20 there is none" in page
    assert f"a gap of {mean(few[0].values()):.2f}, and" in page
    assert f"with 5 steps {mean(learned[0][seed] for seed in few[0]):.2f} on the same seeds" in page


def finals(system, task):
    """Of each seed by `sample`: the mean of its evaluations in the last tenth."""
    record = ROOT / "results" / "mujoco" / "records" / f"{system}-{task}-seeds0-4.json"
    rows = json.loads(record.read_text(encoding="utf-8"))["evaluations"]["sample"]
    return [sum(value for _, value in seed[-3:]) / 3 for seed in rows.values()]


def test_headlines_of_pointmaze_are_decided_by_the_interval_of_the_difference(example):
    """Five seeds each: means two standard deviations apart, their own intervals overlap and Welch's leaves out 0."""
    spread = 0.05 * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    scores = {"s2ac": (0.7 + spread, 0.5 + spread), "sac": (0.62 + spread, 0.52 + spread)}
    removal, obstacle = zip(*scores.values(), strict=True)
    ours, sac = map(t_interval, removal)
    assert ours.low < sac.high
    assert scipy.stats.ttest_ind(*removal, equal_var=False).pvalue < 0.05
    assert scipy.stats.ttest_ind(*obstacle, equal_var=False).pvalue > 0.05
    for first, second, word in (("s2ac", "sac", "above SAC"), ("sac", "s2ac", "below SAC")):
        records = [
            {"map": "simple", "system": system, "seed": seed, "steps": 40_000, "removal": one, "obstacle": other}
            for system, of in (("s2ac", first), ("sac", second))
            for seed, (one, other) in enumerate(zip(*scores[of], strict=True))
        ]
        words = [line.split(" | ")[-1] for line in example["headlines_of_pointmaze"](records)]
        assert words == [f"{word} |", "not significantly different from SAC |"]


def test_headlines_of_mujoco_are_of_the_rule_they_name():
    """The chance that a run of one is above a run of the other, computed here from the records of `sample`."""
    rows, names = headlines(), {"S²AC": "s2ac", "SAC-NF": "sac-nf", "SAC": "sac"}
    for other in ("SAC", "SAC-NF"):
        cells = rows[f"[MuJoCo], 5 tasks: chance to beat {other}"]
        for (name, system), cell in zip(names.items(), cells, strict=False):
            if name == other:
                assert cell == "–"
                continue
            pairs = [
                (mine > theirs)
                for task in ("Hopper", "Walker2d", "HalfCheetah", "Ant", "Humanoid")
                for mine in finals(system, task)
                for theirs in finals(names[other], task)
            ]
            assert numbers(cell)[0] == pytest.approx(sum(pairs) / len(pairs), abs=0.00501)
    assert rows["[MuJoCo], 5 tasks: chance to beat SAC"][3] == "no significant difference from SAC"
    assert rows["[MuJoCo], 5 tasks: chance to beat SAC-NF"][3] == "worse than SAC-NF"
    page = (ROOT / "docs" / "studies" / "mujoco.md").read_text(encoding="utf-8")
    for other, index in (("SAC", 1), ("SAC-NF", 0)):  # the intervals and words are the study's own
        assert rows[f"[MuJoCo], 5 tasks: chance to beat {other}"][index] in page
    assert "| SAC-NF against SAC | 0.70 [0.53, 0.88], better |" in page


def test_what_the_readme_says_outside_its_table():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    claim = json.loads((ROOT / "results" / "runtime" / "claims.json").read_text(encoding="utf-8"))["claims"][0]
    low, high = re.search(r"our preset ([\d.]+) to ([\d.]+) times SAC", claim["measured"]).groups()
    assert f"{float(low):.1f} to {float(high):.2g} times as long" in text
    for name, part in (("multigoal", "5 Stein steps"), ("Hopper-v5", "1 Stein step")):
        steps = resolve(name, "s2ac").algorithm.num_steps
        assert part.startswith(str(steps))
        assert part in text
    for link in re.findall(r"\]\((?!https:)([^)#]+)", text):
        assert (ROOT / link).exists(), link
    for path in re.findall(r"`((?:tests|examples|results)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    made = re.search(r"^Made by (.+)$", text, re.MULTILINE)[1]
    commands_of_studies = re.findall(r"`(.+?)`", made)
    assert len(commands_of_studies) == 3
    for command in commands_of_studies:
        parse(shlex.split(command)[1:])


def test_results_are_told_from_files_alone(tmp_path, example):
    """A study that is there is told, one that is not is left out; a long measurement is left to its file."""
    (tmp_path / "multigoal").mkdir()
    claim = {"number": 4, "claim": "all goals", "place": "4.2", "measured": "x" * 300, "verdict": "does not hold"}
    about = {"about": {"command": "s2ac reproduce multigoal"}, "claims": [claim]}
    (tmp_path / "multigoal" / "claims.json").write_text(json.dumps(about))
    made = example["results"](tmp_path)
    assert "| 4 | all goals | 4.2 | **does not hold** | in `results/multigoal/claims.json` |" in made
    assert "MuJoCo" not in made
    assert "Entropy" not in made
    assert example["headline_table"](tmp_path).strip().count("\n") == 1  # without records only its head


def test_the_mujoco_page_shows_the_table_of_the_results():
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    table = results[results.index("| | Hopper | Walker2d |") :].split("\n\n", 1)[0]
    assert table in (ROOT / "docs" / "studies" / "mujoco.md").read_text(encoding="utf-8")


def test_the_tests_that_the_reliability_page_names_are_there():
    """A goal's row names files; those marked * have tests in the slow suite. Only a file to be read needs none."""
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\| [A-Z]\d+\w? \|.*", page.replace("\\|", "/"), re.MULTILINE)]  # fmt: skip
    assert len(rows) >= 55
    for goal, _, verdict, figure, tests in rows:
        assert verdict in ("holds", "in part", "not yet"), goal
        assert tests or verdict == "not yet" or figure == "`SECURITY.md`", goal
        for name, star in re.findall(r"`((?:\w+/)?test_\w+)`(\*?)", tests):
            path = ROOT / "tests" / f"{name}.py"
            assert path.is_file(), (goal, name)
            assert not star or "pytest.mark.slow" in path.read_text(encoding="utf-8"), (goal, name)
    for name in re.findall(r"tests/(test_\w+\.py)", page):
        assert (ROOT / "tests" / name).is_file(), name

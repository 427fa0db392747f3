"""What the package must never do, whatever it is given."""

import ast
import contextlib
import dataclasses
import io
from pathlib import Path

import hypothesis
from hypothesis import strategies

import s2ac
from s2ac.algorithms import ALGORITHMS
from s2ac.cli.main import parse
from s2ac.errors import S2acError
from s2ac.settings import RunConfig

MODULES = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "urllib.request", "http.client", "requests"}
CALLS = {"eval", "exec", "compile", "__import__", "system", "popen"}
FLAGS = {"shell", "allow_pickle", "weights_only"}


def dangers(tree):
    """What in a module could run code that comes as data, or reach for the network."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield node.module
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", None)
            owner = getattr(getattr(node.func, "value", None), "id", None)
            if name in CALLS or (owner == "os" and node.func.attr in CALLS):
                yield name or node.func.attr
            yield from (word.arg for word in node.keywords if word.arg in FLAGS)


def test_nothing_that_is_read_is_run():
    files = list(Path(s2ac.__file__).parent.rglob("*.py"))
    assert len(files) > 50
    found = [(file.name, danger) for file in files for danger in dangers(ast.parse(file.read_text()))]
    assert found == []
    bad = "import pickle\nos.system('x')\neval(x)\nrun(x, shell=True)\nfrom urllib.request import urlopen"
    assert sorted(dangers(ast.parse(bad))) == ["eval", "pickle", "shell", "system", "urllib.request"]


WEIRD = ["nan", "inf", "-inf", "-1", "0", "1e400", "None", "True", "", "[]", "64 64", "0x10", "9" * 40, "--", "-", "--steps",
         "\0", "é🙂", "a" * 3000, "1,2", "sample", "../..", "%s", "{x}"]  # fmt: skip


@strategies.composite
def command_lines(draw):
    algo = draw(strategies.sampled_from(sorted(ALGORITHMS)))
    fields = [field.name for config in (ALGORITHMS[algo].config, RunConfig) for field in dataclasses.fields(config)]
    arguments = ["train", draw(strategies.sampled_from(["multigoal", "Hopper-v5", "nothing", ""])), "--algo", algo]
    number = strategies.one_of(strategies.integers(), strategies.floats()).map(str)
    value = strategies.one_of(strategies.sampled_from(WEIRD), number, strategies.text(max_size=8))
    for _ in range(draw(strategies.integers(1, 3))):
        name = draw(strategies.sampled_from([*fields, "out", "preset", "resume"])).replace("_", "-")
        arguments.append(f"--{draw(strategies.sampled_from(['', '', '', 'no-']))}{name}")
        arguments += draw(strategies.lists(value, max_size=2))
    return arguments


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True, database=None)
@hypothesis.given(command_lines())
def test_no_command_line_ends_in_a_traceback(arguments):
    """It is understood, or refused in one line of ours or by the parser."""
    refused, code = "", 2
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            parse(arguments)
        except S2acError as error:
            refused = str(error)
        except SystemExit as end:
            code = end.code
    assert "\n" not in refused
    assert code in (0, 2)

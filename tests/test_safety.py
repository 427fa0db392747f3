"""What the package must never do, whatever it is given."""

import ast
from pathlib import Path

import s2ac

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

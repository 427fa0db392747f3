"""The house: imports go one way, and no function, file or reading path is longer than a reader can hold."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "s2ac"
FILES = sorted(PACKAGE.rglob("*.py"))

ORDER = (
    ("types", "errors", "text", "output", "ranges"),
    ("distributions", "nets"),
    ("flows", "replay"),
    ("samplers",),
    ("algorithms", "inference"),
    ("envs",),
    ("settings",),
    ("runs",),
    ("training",),
    ("launch", "studies", "report", "deploy"),
    ("sweep",),
    ("asking", "callbacks"),
    ("agent",),
    ("selftest",),
    ("cli",),
    ("__main__",),
)
"""Rooms from the ground up; rooms of one floor may use one another, but not in a circle of modules."""

FLOOR = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms}

HEAVY = {"gymnasium", "ray", "matplotlib", "pathlib", "os", "time", "tqdm"}
"""What the mathematics must not know."""


def imports_of(path):
    """Every module that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{node.module}.{alias.name}" if node.module == "s2ac" else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def test_every_module_has_a_room():
    assert {room_of(path) for path in FILES} == FLOOR.keys() | {"__init__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    own = room_of(path)
    if own == "__init__":
        return
    for module in imports_of(path):
        if module.startswith("s2ac.") and module.split(".")[1] in FLOOR:
            assert FLOOR[module.split(".")[1]] <= FLOOR[own], f"{path} imports {module}"
        if own in ("nets", "samplers", "algorithms", "distributions", "flows"):
            assert module.split(".")[0] not in HEAVY, f"{path} imports {module}"


def test_no_modules_import_each_other():
    """A circle of modules cannot be read in any order."""
    names = {".".join(("s2ac", *path.relative_to(PACKAGE).with_suffix("").parts)): path for path in FILES}
    graph = {name: {found for found in imports_of(path) if found in names} for name, path in names.items()}
    done = set()

    def visit(name, above):
        assert name not in above, f"a circle: {' → '.join([*above, name])}"
        if name not in done:
            for following in graph[name]:
                visit(following, [*above, name])
            done.add(name)

    for name in graph:
        visit(name, [])


def test_no_function_is_over_60_lines():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"


def lines_of(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_over_300_lines_and_no_script_over_250():
    assert {path: lines_of(path) for path in FILES if lines_of(path) > 300} == {}
    assert {path: lines_of(path) for path in PACKAGE.rglob("*.js") if lines_of(path) > 250} == {}


def test_a_reader_of_the_paper_reads_550_lines():
    path = ("algorithms/s2ac.py", "algorithms/maxent.py", "samplers/svgd.py")
    assert sum(lines_of(PACKAGE / file) for file in path) <= 550

"""docs/architecture.md: the ways of one environment step and of one update are those that the code takes."""

import re
import sys
from pathlib import Path

import jax
import pytest

import s2ac
from s2ac.settings import resolve
from s2ac.training.run import Run
from s2ac.training.trainer import begin, train

PACKAGE = Path(s2ac.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")


def listed(name):
    """The (file, function) of a walk, as the page has them."""
    text = re.search(rf"<!-- walk: {name} -->\n(.*?)<!-- end of walk -->", PAGE, re.DOTALL)[1]
    return re.findall(r"^\d+\. `(.+?)` `(.+?)`$", text, re.MULTILINE)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Every call into the package, in order, of a training that steps and learns."""
    given = {
        "hidden": (4, 4),
        "warmup_steps": 2,
        "batch_size": 2,
        "capacity": 10,
        "steps": 6,
        "log_every": 2,
        "episodes": 1,
    }
    settings = resolve("Pendulum-v1", "s2ac", given=given)
    run = Run(tmp_path_factory.mktemp("walk") / "run", settings.env, settings.algo, settings.algorithm, settings.run)
    begin(run)
    made = []

    def seen(frame, event, _):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(PACKAGE)):
            made.append((str(Path(path).relative_to(PACKAGE)), frame.f_code.co_name))

    sys.setprofile(seen)
    try:
        train(
            run, lambda rows: jax.clear_caches() or True
        )  # what was traced to say how long compiling takes is traced again
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", ["step", "update"])
def test_the_walk_is_the_way_of_the_code(name, calls):
    hops, left = listed(name), iter(calls)
    assert len(hops) < 25
    for hop in hops:
        assert hop in left, f"{hop} is not called after the one before it"


def test_the_walk_names_functions_that_exist():
    for file, function in [*listed("step"), *listed("update")]:
        assert f"def {function}(" in (PACKAGE / file).read_text(encoding="utf-8"), (file, function)

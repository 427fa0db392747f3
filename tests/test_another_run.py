"""A checkpoint that is of another run is refused in one line with all that differs: the settings, and where those are the same the arrays."""

import dataclasses
import json
from itertools import permutations
from pathlib import Path

import jax
import numpy as np
import pytest

from damage import ABOUT, FACTS
from s2ac.algorithms import ALGORITHMS
from s2ac.runs.about import check_same
from s2ac.runs.manifest import DamagedCheckpoint
from s2ac.runs.trees import arrays_to_tree
from s2ac.settings import resolve
from s2ac.types import EnvSpec

POINT, HOPPER = EnvSpec(2, (-1.0,) * 2, (1.0,) * 2), EnvSpec(11, (-1.0,) * 3, (1.0,) * 3)
RUNS = {
    "sac": ("multigoal", "sac", {}, POINT),
    "another environment": ("Hopper-v5", "sac", {}, HOPPER),
    "other sizes": ("multigoal", "sac", {"hidden": (8, 8), "batch_size": 32, "seeds": 2}, POINT),
    "another algorithm": ("multigoal", "ppo", {}, POINT),
}
PAIRS = list(permutations(RUNS, 2))


def about_of(name):
    env, algo, given, _ = RUNS[name]
    settings = resolve(env, algo, given={"hidden": (4,), **given})
    parts = {"algorithm": settings.algorithm, "run": settings.run}
    return json.loads(json.dumps({**ABOUT, "env": env, "algo": algo} | {n: dataclasses.asdict(part) for n, part in parts.items()}))  # fmt: skip


def tree_of(name):
    _, algo, given, spec = RUNS[name]
    algorithm = ALGORITHMS[algo].make(spec, dataclasses.replace(ALGORITHMS[algo].config, hidden=given.get("hidden", (4,))))  # fmt: skip
    return jax.eval_shape(algorithm.init, jax.random.key(0))


def refusal(function, *arguments):
    with pytest.raises(DamagedCheckpoint) as error:
        function(*arguments)
    assert error.value.exit_code == 4
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 2000
    return str(error.value)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_settings_that_differ_are_all_named(one, other):
    about, saved = about_of(one), about_of(other)
    said = refusal(check_same, Path("run"), about, saved)
    for name in ("env", "algo"):
        both = f"{name} is {about[name]!r} in run.json and {saved[name]!r} in the checkpoint"
        assert (both in said) == (about[name] != saved[name])
    mine, theirs = ({**given["algorithm"], **given["run"], "env": given["env"], "algo": given["algo"], "steps": 0} for given in (about, saved))  # fmt: skip
    fields = [name for name in {**mine, **theirs} if mine.get(name, "none") != theirs.get(name, "none")]
    assert sum(f" {name} is " in said for name in fields) == min(8, len(fields))
    assert said.endswith(f"and {len(fields) - 8} more") == (len(fields) > 8)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_arrays_that_differ_are_all_named(one, other):
    like, leaves = tree_of(one), flat(tree_of(other))
    mine = flat(like)
    arrays = {name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in leaves.items()}
    said = refusal(arrays_to_tree, like, arrays)
    shapes = [n for n in mine if n in leaves and (mine[n].shape, mine[n].dtype) != (leaves[n].shape, leaves[n].dtype)]
    wrong = [f"{n} is missing" for n in mine if n not in leaves] + [f"{n} is too many" for n in sorted(leaves) if n not in mine]  # fmt: skip
    wrong += [f"{n} is {leaves[n].dtype}{list(leaves[n].shape)}, not {mine[n].dtype}{list(mine[n].shape)}" for n in shapes]  # fmt: skip
    assert wrong
    assert all(text in said for text in wrong[:8])
    assert said.endswith(f"and {len(wrong) - 8} more") == (len(wrong) > 8)


def flat(tree):
    from s2ac.runs.trees import name_of, numbers

    return {name_of(path): numbers(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


def test_hostile_names_stay_one_short_line():
    odd = {**FACTS["about"], "run": {**FACTS["about"]["run"], "x\ny\x1b[2J" * 1000: "v" * 10**6}}
    assert "x\\x0ay\\x1b[2J" in refusal(check_same, Path("run"), FACTS["about"], odd)
    assert "a\\x0ab is too many" in refusal(arrays_to_tree, {}, {"a\nb": np.zeros(3)})

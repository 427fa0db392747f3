"""Damage to every file of a run and of a saved agent: nothing wrong is ever loaded in silence, nothing hangs, nothing ends in a traceback."""

import collections
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest

import s2ac
from damage import FACTS, answer, policy_at, read_all, small_run
from s2ac.agent import Agent
from s2ac.runs.about import check_same, configs_of, read_about, same_run
from s2ac.runs.checkpoint import load_latest
from s2ac.runs.manifest import facts_of
from s2ac.runs.saving import write_copy

KINDS = (
    "flip",
    "flip",
    "flip",
    "flips",
    "cut",
    "zeros",
    "noise",
    "longer",
    "empty",
    "remove",
    "swap",
    "rename",
    "copy over",
)


def contents(root):
    return {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def restore(root, before):
    """As it was."""
    for path in [path for path in root.rglob("*") if path.is_file() and path not in before]:
        path.unlink()
    for path, data in before.items():
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def harm(files, generator):
    """Damage one file, or two; what was done."""
    path, kind = generator.choice(files), generator.choice(KINDS)
    other = generator.choice([file for file in files if file != path])
    data = path.read_bytes()
    place, size = generator.randrange(max(1, len(data))), generator.choice((1, 16, 512))
    changed = bytearray(data)
    if kind in ("flip", "flips"):
        for _ in range(1 if kind == "flip" else generator.randint(2, 9)):
            if data:
                changed[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    elif kind == "cut":
        del changed[place:]
    elif kind in ("zeros", "noise"):
        changed[place : place + size] = bytes(size) if kind == "zeros" else generator.randbytes(size)
        del changed[max(len(data), 1) :]
    elif kind == "longer":
        changed += generator.randbytes(size)
    if kind == "remove":
        path.unlink()
    elif kind == "swap":
        path.write_bytes(other.read_bytes())
        other.write_bytes(data)
    elif kind == "rename":
        path.rename(path.with_name(generator.choice((f"{path.name}.bak", "x", other.name))))
    elif kind == "copy over":
        other.write_bytes(data)
    else:
        path.write_bytes(b"" if kind == "empty" else changed)
    return kind, path, other


def judge(root, read, num, seed):
    """`num` damages: how many were harmless, fell back, were noted and were refused. Asserts that none was silent."""
    before, generator, count = contents(root), random.Random(seed), collections.Counter()
    good = {step: loaded for step, loaded, *_ in [read(root)]}
    newest = max(good)
    for _ in range(num):
        done = harm(sorted(before), generator)
        told = [path.relative_to(root).as_posix() for path in done[1:]], done[0]
        found = answer(read, root)
        if isinstance(found, str):
            assert any(
                name in found for name in ("run.json", "metrics.jsonl", "step_", "rows_", "checkpoints", "lock")
            ), (told, found)
            count["refused"] += 1
        else:
            step, loaded, _, said = found
            assert same_run(read_about(root), FACTS["about"]), told
            if step == newest:
                assert loaded == good[newest], told
                count["noted" if said else "harmless"] += 1
                changed = [path for path, data in before.items() if not path.is_file() or path.read_bytes() != data]
                if not said:
                    assert all(does_not_matter(root, path) for path in changed), told
            else:
                assert any(f"step_{newest:012d}" in line for line in said) or not list(
                    root.glob(f"*/step_{newest:012d}/manifest.json")
                ), told
                assert loaded == good.setdefault(step, loaded), told
                count["fell back"] += 1
        restore(root, before)
    assert read(root)[:2] == (newest, good[newest])
    return count


def does_not_matter(root, path):
    """Whether a file may be changed without a word: what the newest checkpoint neither lists nor is described by."""
    inside = path.relative_to(root).as_posix()
    if inside in (
        "run.json",
        "metrics.jsonl",
    ):  # its settings are compared, and its bytes, as far as the checkpoint knows them
        return True
    newest = max((root / "checkpoints").glob("step_????????????"))
    files = json.loads((newest / "manifest.json").read_text())["body"]["files"]
    listed = {os.path.normpath(newest / file) for file in files} | {str(newest / "manifest.json")}
    return str(path) not in listed or path.name == "manifest.json"


def read_copy(root):
    """What `s2ac.load` reads of a saved agent."""
    about = read_about(root)
    configs_of(about, root)
    manifest, arrays, _, said = load_latest(root, replay=False)
    check_same(root, about, facts_of(manifest)["about"])
    return manifest["step"], [(name, array.tobytes()) for name, array in sorted(arrays.items())], "", said


def damaged_runs(place, num):
    small_run(place / "run")
    return judge(place / "run", read_all, num, 0)


def damaged_copies(place, num):
    (place / "copy").mkdir()
    write_copy(policy_at(4), place / "copy", False)
    return judge(place / "copy", read_copy, num, 1)


def test_no_damage_to_a_run_is_silent(tmp_path):
    count = damaged_runs(tmp_path, 500)
    assert min(count["refused"], count["fell back"], count["harmless"]) > 40
    assert count["noted"] > 1


def test_no_damage_to_a_saved_agent_is_silent(tmp_path):
    count = damaged_copies(tmp_path, 300)
    assert count["refused"] > 200
    assert count["fell back"] == 0


@pytest.mark.slow
def test_ten_thousand_damages(tmp_path):
    runs, copies = damaged_runs(tmp_path, 7000), damaged_copies(tmp_path, 3000)
    print(f"runs: {dict(runs)}; saved agents: {dict(copies)}")
    assert sum(runs.values()) + sum(copies.values()) == 10_000


@pytest.mark.parametrize("num", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_damaged_agent_does_not_load_as_another(num, tmp_path):
    """With networks: it predicts what it did, or is refused in a line."""
    agent = Agent("multigoal", "sac", directory=tmp_path / "never", hidden=(4,), capacity=100)
    copy = agent.save(tmp_path / "copy")
    here = np.array([0.5, -1.0], np.float32)
    wanted, before, generator = s2ac.load(copy).predict(here, "mean"), contents(copy), random.Random(2)
    refused = 0
    for _ in range(num):
        done = harm(sorted(before), generator)
        found = answer(s2ac.load, copy, seconds=30, memory=2**30)
        if isinstance(found, str):
            refused += 1
        else:
            np.testing.assert_array_equal(found.predict(here, "mean"), wanted, err_msg=str(done))
        restore(copy, before)
    assert refused > num / 2
    assert Path(copy).exists()

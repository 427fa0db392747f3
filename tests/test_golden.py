"""Numbers of earlier commits: a change that moves them also changes a file of tests/golden, and says why.

Entries are held to 1e-5 on any machine, and to the bit where processor and versions are those of the file.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import golden
from golden import SHIPPED
from golden.updates import CASES, after_ten_updates
from s2ac.cli.main import main
from s2ac.runs.manifest import read_manifest
from s2ac.runs.policy import load_policy

TOLERANCE = 1e-5
FAST = ("s2ac/default", "s2ac/multigoal", "s2ac/mujoco", "s2ac/paper", "s2ac-phi/multigoal", "s2ac-amortized/multigoal",
        "sac/default", "sac/mujoco", "sac-nf/default", "sql/default", "ddpg/default", "ppo/mujoco")  # fmt: skip
QUICK_AGENTS = ("multigoal/s2ac", "multigoal/s2ac-amortized", "multigoal/sac")


def updates():
    return json.loads(golden.UPDATES.read_text(encoding="utf-8"))


def speed(name):
    return name if name in FAST else pytest.param(name, marks=pytest.mark.slow)


def test_every_algorithm_and_preset_has_golden_numbers():
    assert sorted(updates()["cases"]) == CASES


@pytest.mark.parametrize("name", [speed(name) for name in CASES])
def test_ten_updates_give_the_parameters_of_the_file(name):
    kept = updates()
    found, wanted = after_ten_updates(name), kept["cases"][name]
    assert [row[0] for row in found["arrays"]] == [row[0] for row in wanted["arrays"]]
    for (_, numbers), (_, kept_numbers) in zip(found["arrays"], wanted["arrays"], strict=True):
        np.testing.assert_allclose(numbers, kept_numbers, rtol=TOLERANCE, atol=TOLERANCE)
    if golden.machine() == kept["machine"]:
        assert found["sha256"] == wanted["sha256"]


def test_every_shipped_agent_has_golden_actions():
    assert sorted(json.loads(golden.AGENTS.read_text(encoding="utf-8"))) == sorted(SHIPPED)


@pytest.mark.parametrize(
    "agent", [a if a in QUICK_AGENTS else pytest.param(a, marks=pytest.mark.slow) for a in SHIPPED]
)
def test_shipped_agents_act_as_they_did(agent):
    kept, found = json.loads(golden.AGENTS.read_text(encoding="utf-8"))[agent], golden.predictions(agent)
    assert found.keys() == kept.keys()
    for rule, actions in kept.items():
        np.testing.assert_allclose(found[rule], actions, rtol=TOLERANCE, atol=TOLERANCE, err_msg=rule)


def test_arrays_are_called_in_checkpoints_what_they_were():
    assert golden.names() == json.loads(golden.NAMES.read_text(encoding="utf-8"))


def test_names_of_format_1_are_todays():
    for run in sorted((RESULTS / "agents" / "multigoal").iterdir()):
        policy = load_policy(run)  # whose arrays must all be found by name
        assert read_manifest(next((run / "checkpoints").iterdir()))["format"] == 1
        assert {name.split("/")[0] for name in policy.arrays} >= {"algorithm", "replay"}


STUDIES = ("entropy", "multigoal", "runtime", "mujoco", "pointmaze")
RESULTS = Path(__file__).parents[1] / "results"


@pytest.mark.slow
@pytest.mark.parametrize("results", STUDIES)
def test_shipped_records_give_the_shipped_tables_byte_for_byte(results, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(RESULTS.parent)
    assert main(["reproduce", results, "--from-results", f"results/{results}", "--out", str(tmp_path)]) == 0
    for name in ("table.md", "claims.json"):
        if (RESULTS / results / name).exists() and (tmp_path / name).exists():
            assert (tmp_path / name).read_bytes() == (RESULTS / results / name).read_bytes()
    told = capsys.readouterr().out
    for claim in json.loads((RESULTS / results / "claims.json").read_text(encoding="utf-8"))["claims"]:
        assert f"{claim['verdict']}: {claim['claim']}\n    measured: {claim['measured']}\n" in told

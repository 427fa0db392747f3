"""The multigoal study: its verdicts from made-up records, its figures, its command."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from s2ac.cli.main import main
from s2ac.envs.multigoal.exact import ActionLaw
from s2ac.errors import S2acError
from s2ac.studies.multigoal.claims import decide, left_share, table
from s2ac.studies.multigoal.scores import moments, smoothness_by_differences
from s2ac.studies.multigoal.systems import ALPHAS, EXTRAS, MAP, SYSTEMS
from s2ac.studies.registry import STUDIES
from s2ac.studies.reproduce import reproduce
from s2ac.studies.study import RecordFile

SEEDS = 5
EVEN, ONE = [0.32, 0.34, 0.34, 0.0], [1.0, 0.0, 0.0, 0.0]


def made_up(single_mode=("SAC", "SAC-NF"), amortized_loss=0.01):
    """Records in which the named systems keep one goal at small α, and everything else is as the paper says."""
    generator = np.random.default_rng(0)
    x, y = np.meshgrid(MAP, MAP, indexing="ij")
    goals = np.array([(5, 0), (-4, 3), (-4, -3)])
    near = np.exp(-np.linalg.norm(np.stack([x, y], -1)[..., None, :] - goals, axis=-1).min(-1))
    entropy_map = (-0.1 * x - near).reshape(-1)
    path = np.linspace((0, 0), (5, 0), 31).tolist()
    records = [
        {"name": f"optimum, α = {alpha:g}", "kind": "optimum", "alpha": alpha, "value": -80.0, "error": 0.01, "shares": EVEN,
         "objective": -80.0, "paths": [path], "entropy_map": entropy_map.tolist(), "landscapes": [list(range(16))] * 6,
         "wall_paths": [path], "wall_hits": 0.5, "wall_reached": 0.4, "wall_shares": [0.4, 0.0, 0.0], "smoothness": [9.0, 8.0], "moments": [[0.0, 0.0, 0.4, 0.4]] * 6}
        for alpha in ALPHAS
    ]  # fmt: skip
    for system in (*SYSTEMS, *EXTRAS):
        for level, alpha in enumerate(ALPHAS):
            for seed in range(SEEDS):
                noise = 0.001 * generator.standard_normal()
                left = 0.0 if system == "SQL" else 0.02 * level
                shares = ONE if system in single_mode and alpha <= 1 else [0.32 - left, 0.34 + left, 0.34, 0.0]
                rule = {"gap": noise + (2.0 if system in EXTRAS else 1.0), "objective": -81.0 + noise, "shares": shares,
                        "wall_reached": 0.2 * level + 0.1 + noise, "wall_hits": 0.5, "wall_shares": [0.2 * level, 0.1 + noise, 0.0]}  # fmt: skip
                start = [[0.3 + noise, 0, 0.5 - 0.05 * state, 0.5 - 0.05 * state] for state in range(6)]
                records.append({
                    "name": system, "kind": "agent", "system": system, "alpha": alpha, "seed": seed, "rounds": 100, "device": "cpu", "sample": rule,
                    "amortized": {**rule, "objective": -81.0 * (1 + amortized_loss) + noise},
                    "clouds": np.zeros((6, 4, 2)).tolist(), "entropy_map": (entropy_map + noise).tolist(),
                    "smoothness": [10 - level + noise, 5 - level + noise],
                    "trend": [start] * 3, "paths": [path], "wall_paths": [path],
                })  # fmt: skip
    return records


def verdicts(records):
    return {claim.number: claim.verdict for claim in decide(records)}


def test_what_is_said_of_the_optimum_on_known_functions():
    """Differences are exact for a quadratic Q; the optimum's law without a Q is uniform, logistic before the squash."""
    quadratic = lambda position, action: 3 * action[0] ** 2 + 2 * action[0] * action[1] - 7 * action[1]  # noqa: E731
    axis = np.linspace(-0.9, 0.9, 7)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    slopes = np.abs([6 * first + 2 * second, 2 * first - 7]).mean()
    np.testing.assert_allclose(
        smoothness_by_differences(quadratic, np.zeros((2, 2))), [slopes, (6 + 2 + 2 + 0) / 4], rtol=1e-4
    )
    nodes = (np.arange(128) + 0.5) / 64 - 1
    action = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    law = ActionLaw(jnp.array(action), *[jnp.zeros(len(action))] * 2, jnp.zeros(()), jnp.zeros(()))
    np.testing.assert_allclose(moments(law), [0, 0, *[np.pi / 12**0.5] * 2], rtol=0.02, atol=1e-6)


def test_claims_are_decided_both_ways():
    found = verdicts(made_up())
    assert {n for n, word in found.items() if word == "holds"} == set(range(4, 12))
    assert verdicts(made_up(single_mode=("SAC", "SAC-NF", "S²AC(φ,θ)")))[4] == "does not hold"
    assert verdicts(made_up(single_mode=()))[4] == "does not hold"  # SAC keeps all goals at small α too
    assert verdicts(made_up(amortized_loss=0.2))[10] == "does not hold"
    far = {"S²AC(φ,θ)": 5.0, "S²AC(φ)": 1.0, "S²AC(φ), L = 3": 9.0}  # with as many steps as it likes S²AC(φ) is nearer
    nearer = [
        {**r, "sample": {**r["sample"], "gap": far[r["system"]] + 0.01 * r["seed"]}} if r.get("system") in far else r
        for r in made_up()
    ]
    assert verdicts(nearer)[11] == "does not hold"
    turned = [{**r, "alpha": dict(zip(ALPHAS, reversed(ALPHAS), strict=True))[r["alpha"]]} for r in made_up()]
    assert verdicts(turned)[6] == verdicts(turned)[7] == "does not hold"


def test_a_share_that_falls_between_two_temperatures_does_not_grow():
    """0, 0, 0.4, 0.1: the highest temperature is above the lowest, and below the one before. A fall by chance decides nothing."""

    def with_walls(means, noise):
        shares = {(a, s): mean + noise * (-1) ** s * (a == ALPHAS[-1]) for a, mean in zip(ALPHAS, means, strict=True) for s in range(SEEDS)}  # fmt: skip
        return [
            {**r, "sample": {**r["sample"], "wall_reached": shares[r["alpha"], r["seed"]]}} if r["kind"] == "agent" else r
            for r in made_up()
        ]  # fmt: skip

    claim = next(claim for claim in decide(with_walls((0.0, 0.0, 0.4, 0.1), 0.01)) if claim.number == 6)
    assert claim.verdict == "does not hold"
    assert (
        "by α: 0.00 0.00 0.40 0.10, the optimum's: 0.40 0.40 0.40 0.40; from α = 10 to 20 it falls: -0.298"
        in claim.measured
    )
    assert "to the next one the share falls" in claim.how
    assert verdicts(with_walls((0.0, 0.1, 0.4, 0.39), 0.1))[6] == "holds"


def test_the_amortised_network_is_judged_by_its_own_rule():
    """An agent whose sampler keeps every goal and whose network keeps one counts as each, under its name."""
    records = made_up()
    for record in records:
        if record.get("system") == "S²AC(φ,θ,ψ)" and record["alpha"] == ALPHAS[0]:
            record["amortized"] = {**record["amortized"], "shares": ONE, "gap": 7.0}
    measured = next(claim.measured for claim in decide(records) if claim.number == 4)
    assert "; S²AC(φ,θ,ψ) 100% 100% 100% 100%;" in measured
    assert measured.endswith("; S²AC(φ,θ,ψ) by its amortised network 0% 100% 100% 100%")
    made = table(records)
    assert (
        "by `amortized`:\n\n| | α = 0.2 | α = 1 | α = 10 | α = 20 |\n|---|---|---|---|---|\n| S²AC(φ,θ,ψ) | 0% | 100% |"
        in made
    )
    assert "| S²AC(φ,θ,ψ) | 7.00 ± 0.00 | 1.00 ± 0.00 |" in made


def test_the_shipped_claims_and_table_are_what_the_records_say():
    shipped = Path(__file__).parent.parent / "results" / "multigoal"
    records = [json.loads(line) for line in (shipped / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    claims = json.loads((shipped / "claims.json").read_text(encoding="utf-8"))["claims"]
    assert claims == [claim._asdict() for claim in decide(records)]
    text = table(records)
    assert text == (shipped / "table.md").read_text(encoding="utf-8")
    assert text.strip() in (shipped.parents[1] / "docs" / "studies" / "multigoal.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("seeds", [1, 4])
def test_few_seeds_decide_nothing(seeds):
    records = [r for r in made_up() if r.get("seed", 0) < seeds]
    assert set(verdicts(records).values()) == {"not tested"}


def test_systems_that_were_not_trained_alike_are_not_compared():
    records = [{**r, "rounds": 50} if r.get("system") == "SQL" else r for r in made_up()]
    found = verdicts(records)
    assert found[4] == found[5] == "not tested"
    assert found[6] == found[11] == "holds"


def test_systems_are_compared_by_the_seeds_they_share():
    records = [r for r in made_up() if r.get("system") != "S²AC(φ), L = 3" or r["seed"] > 0]
    found = verdicts(records)
    assert found[11] == "not tested"  # four seeds of five
    assert found[4] == found[6] == "holds"


def test_parts_that_ran_elsewhere_are_merged(tmp_path, capsys, monkeypatch):
    """By seeds; a record that is there twice counts once, and nothing is run again. The figures are another test's."""
    monkeypatch.setitem(STUDIES, "multigoal", STUDIES["multigoal"]._replace(figures=lambda *_: []))
    records = made_up()
    parts = [
        [r for r in records if r.get("seed", 9) < 2],
        [r for r in records if r.get("seed", 9) >= 1],
    ]
    for index, part in enumerate(parts):
        (tmp_path / str(index)).mkdir()
        RecordFile(tmp_path / str(index) / "records.jsonl").add(part)
    merge = ("--merge", str(tmp_path / "0"), str(tmp_path / "1"))
    seeds = ("--seeds", "0", str(SEEDS - 1))
    assert main(["reproduce", "multigoal", "--out", str(tmp_path / "out"), *merge, *seeds]) == 0
    assert "claim 4 holds" in capsys.readouterr().out
    assert len((tmp_path / "out" / "records.jsonl").read_text().splitlines()) == len(records)
    assert "| S²AC(φ,θ) | 100% | 100% | 100% | 100% |" in (tmp_path / "out" / "table.md").read_text()


def test_missing_systems_are_not_tested():
    records = [r for r in made_up() if r.get("system") != "SQL"]
    found = verdicts(records)
    assert found[4] == found[5] == "not tested"
    assert found[6] == "holds"


def test_left_share():
    assert left_share([0.2, 0.3, 0.1, 0.4]) == pytest.approx(0.4 / 0.6)
    assert left_share([0.0, 0.0, 0.0, 1.0]) == pytest.approx(2 / 3)


def test_command_redraws_from_records(tmp_path, capsys):
    source = tmp_path / "results"
    source.mkdir()
    RecordFile(source / "records.jsonl").add(made_up())
    assert main(["reproduce", "multigoal", "--from-results", str(source), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "claim 4 holds" in said
    for name in (
        "trajectories",
        "trajectories_obstacle",
        "goal_shares",
        "goal_shares_obstacle",
        "start_trends",
        "gap",
        "entropy_maps",
        "landscapes",
        "smoothness",
    ):
        assert (tmp_path / "out" / f"{name}.png").stat().st_size > 5_000
        assert (tmp_path / "out" / f"{name}.pdf").exists()


def test_missing_results_name_the_command(tmp_path):
    with pytest.raises(S2acError, match="s2ac reproduce multigoal"):
        reproduce("multigoal", {}, str(tmp_path / "out"), str(tmp_path / "nothing"))


def test_interrupted_records_go_on(tmp_path):
    """Whole lines are kept, a half-written one is dropped."""
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({"name": "a"}) + "\n" + '{"name": "b')
    file = RecordFile(path, resume=True)
    file.add([{"name": "c"}])
    assert [json.loads(line)["name"] for line in path.read_text().splitlines()] == ["a", "c"]


@pytest.mark.slow
def test_the_study_runs(tmp_path):
    """Smoke scale: untrained agents, every part of the code."""
    reproduce("multigoal", {"scale": "smoke"}, str(tmp_path))
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert len(lines) == len(ALPHAS) * (1 + len(SYSTEMS) + len(EXTRAS))
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert [claim["number"] for claim in claims] == list(range(4, 12))

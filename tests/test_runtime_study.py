"""The run-time study on tiny networks, and its verdicts from made-up records."""

import json

import numpy as np
import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.cli.main import main
from s2ac.errors import S2acError
from s2ac.studies.runtime import (
    BATCHES,
    MEASURED,
    SIZES,
    Effort,
    chooser,
    decide,
    measure,
    median_interval,
    read,
    table,
)


def made_up(**ratios):
    rows = []
    for task in SIZES:
        for batch in BATCHES:
            for system, timed in MEASURED.items():
                ratio = ratios.get(system.replace("-", "_"), 1.0)
                rows.append({"task": task, "sizes": list(SIZES[task]), "batch": batch, "system": system, "rule": timed.rule,
                             "milliseconds": [0.1 * ratio] * 3, "ratio": [ratio, 0.9 * ratio, 1.1 * ratio]})  # fmt: skip
    return {"format": 1, "about": {"device": "cpu", "cores": 2, "load": 0.1, "turns": 9}, "rows": rows}


def test_verdicts():
    claim = decide(made_up(s2ac_ten_particles=6.0, s2ac=2.5, s2ac_amortized=1.1))
    assert claim.verdict == "holds"
    assert "our preset 2.50 to 2.50 times SAC; amortised 1.10 to 1.10" in claim.measured
    assert claim.interval == [5.4, 6.6]
    cheap = decide(
        made_up(s2ac_ten_particles=50.0, s2ac=2.5, s2ac_amortized=1.1)
    )  # the paper's claim is of its own M and L
    assert cheap.verdict == "does not hold"
    assert decide(made_up(s2ac_ten_particles=6.0, s2ac_amortized=1.3)).verdict == "does not hold"
    for part in (lambda row: row["task"] == "Hopper", lambda row: row["system"] != "s2ac-ten-particles"):
        records = made_up()
        records["rows"] = [row for row in records["rows"] if part(row)]
        assert decide(records).verdict == "not tested"


def test_the_timed_program_is_of_its_own_preset(monkeypatch):
    """The paper's particles and steps are not the default preset's. (What is compiled here is something small.)"""
    made = []
    monkeypatch.setitem(ALGORITHMS, "s2ac", ALGORITHMS["s2ac"]._replace(make=lambda spec, config: made.append(config) or make_sac(spec, SacConfig(hidden=(4,)))))  # fmt: skip
    for name in ("s2ac", "s2ac-ten-particles"):
        chooser(name, (3, 2), 1, (4, 4))
    assert [(c.num_particles, c.num_steps, c.guide, c.num_flows) for c in made] == [
        (4, 1, (128, 128), 3),
        (10, 3, (), 0),
    ]


def test_median_interval_covers():
    generator = np.random.default_rng(0)
    found = [median_interval(values) for values in generator.exponential(size=(2000, 60))]
    covered = np.mean([e.low <= np.log(2) <= e.high for e in found])
    assert 0.94 <= covered <= 0.98


def test_measuring_and_the_table():
    records = measure(("Hopper",), Effort(5, 0.0), (2,), ("sac", "s2ac"), (8,))
    assert [row["system"] for row in records["rows"]] == ["sac", "s2ac"]
    sac, ours = records["rows"]
    assert sac["ratio"] == [1.0, 1.0, 1.0]
    assert ours["milliseconds"][0] > 0
    assert "| Hopper | (11, 3) | 2 | " in table(records)


def test_command_redraws_and_refuses(tmp_path, capsys):
    (tmp_path / "records.json").write_text(json.dumps(made_up(s2ac=2.5)))
    out = tmp_path / "out"
    assert main(["reproduce", "runtime", "--from-results", str(tmp_path), "--out", str(out)]) == 0
    assert "claim 15 holds" in capsys.readouterr().out
    assert (out / "runtime.png").stat().st_size > 5_000
    (tmp_path / "records.json").write_text('{"format": 1')
    with pytest.raises(S2acError, match="damaged"):
        read(tmp_path / "records.json")
    with pytest.raises(S2acError, match="s2ac reproduce runtime"):
        read(tmp_path / "nothing.json")

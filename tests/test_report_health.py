"""Verdicts: each names the number that it comes from."""

import json
import math

import pytest

from report_runs import ABOUT, make_run, read, train_row
from s2ac.report.health import verdicts


@pytest.mark.parametrize(
    ("changes", "algorithm", "level", "words"),
    [
        ({}, {}, "good", "healthy"),
        ({"guarded": 0.93, "step_size": 0.01}, {}, "bad", "particles are frozen: the bound is active in 93 % of steps"),
        ({"guarded": 0.93, "step_size": 0.06}, {}, "warn", "particles are held back: the bound is active in 93 % of steps"),
        ({"guarded": 0.93, "step_size": 0.01, "alpha": 0.1}, {"scale_step_by_alpha": True}, "note", "particles are held back"),
        ({"guarded": 0.93, "step_size": 0.01}, {"form": "tracer"}, "note", "steps are bounded: the bound is active in 93 % of steps"),
        ({"effective_sample_size": 1.1}, {"num_particles": 16}, "warn", "the weights leave 1.10 particles of 16"),
        ({"effective_sample_size": 5.0}, {}, "good", "healthy"),
        ({"folded": 0.01}, {}, "warn", "1 % of the sampler's steps fold"),
        ({"alpha": 0.001}, {"learn_alpha": True}, "bad", "α fell to 0.001: the policy is nearly deterministic"),
        ({"alpha": 0.001}, {}, "good", "healthy"),
        ({"alpha": 400.0}, {"learn_alpha": True}, "warn", "α rose to 400"),
        ({"jacobian_norm": 1.7}, {}, "bad", "‖εJ‖ is 1.7"),
        ({"particle_std": 0.001}, {}, "bad", "particles have collapsed"),
        ({"std": 0.3}, {}, "warn", "as narrow as it may be"),
        ({"entropy_sampler": 0.001}, {}, "note", "the sampler hardly moves the particles"),
        ({"return": 3.0}, {}, "note", "no measurable progress"),
        ({"critic_loss": math.nan}, {}, "note", "critic_loss is no number"),
    ],
)  # fmt: skip
def test_verdicts_name_the_number(tmp_path, changes, algorithm, level, words):
    about = {"algorithm": {**ABOUT["algorithm"], **algorithm}}
    found = verdicts(read(make_run(tmp_path / "run", about=about, changes=changes))[0])
    assert any(verdict.level == level and words in verdict.title for verdict in found), found
    assert any(verdict.level == "good" for verdict in found) == (level in ("good", "note"))


@pytest.mark.parametrize("who", ["critic", "guide"])
def test_a_diverging_critic_and_a_falling_return_are_seen(tmp_path, who):
    run = make_run(tmp_path / "run", records=0)
    rows = [train_row(seed, 100 * index, **{f"{who}_loss": 1e3 if index > 18 else 1.0, "return": -index + 0.1 * seed})
            for index in range(1, 21) for seed in range(3)]  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    titles = [verdict.title for verdict in verdicts(read(run)[0])]
    assert [title for title in titles if "diverges" in title] == [
        f"the {who} diverges: its loss is 500 times its median"
    ]
    assert "the return fell" in titles

"""Verdicts: learning apart from health, each with the number that it comes from, and advice that can be followed."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from report_runs import ABOUT, cloud_data, make_run, read, train_row
from s2ac.algorithms import ALGORITHMS
from s2ac.report.data import collect
from s2ac.report.health import bounds, health
from s2ac.report.progress import learning
from s2ac.studies.statistics import t_interval

TRACER = {"form": "tracer", "num_references": 4}
FIXED = {"start_std": 0.7, "start_alpha": None}
FROZEN = {"guarded": 0.93, "step_size": 0.01}
SCALED = {"categorical": True, "learn_alpha": True}
WEIGHTED = {**TRACER, "weighted": True, "num_particles": 16, "explore_alpha": 1.0}

CASES = [
    ({}, {}, "good", "sampler healthy"),
    (FROZEN, {}, "bad", "particles are frozen: the bound is active in 93 % of steps"),
    (FROZEN, {"max_jacobian_norm": None, "learn_alpha": True}, "bad", "particles are frozen"),
    ({"guarded": 0.93, "step_size": 0.06}, {}, "warn", "particles are held back: the bound is active in 93 % of steps"),
    ({"guarded": 0.93, "step_size": 0.01, "alpha": 0.1}, {}, "note", "particles are held back"),
    (FROZEN, TRACER, "note", "steps are bounded: the bound is active in 93 % of steps"),
    ({"effective_sample_size": 1.1}, WEIGHTED, "warn", "effective sample size 1.1 of 16 particles"),
    ({"effective_sample_size": 5.0}, WEIGHTED, "good", "healthy"),
    ({"folded": 0.01}, {}, "warn", "1 % of the sampler's steps fold"),
    ({"folded": 0.01}, {"max_jacobian_norm": None}, "warn", "1 % of the sampler's steps fold"),
    ({"alpha": 0.001}, {"learn_alpha": True}, "bad", "α fell to 0.001: the policy is nearly deterministic"),
    ({"alpha": 0.001}, {}, "good", "healthy"),
    ({"alpha": 0.003}, SCALED, "good", "healthy"),
    ({"alpha": 5e-5}, SCALED, "bad", "α fell to 5e-05: the policy is nearly deterministic"),
    ({"alpha": 3.0}, {"learn_alpha": True}, "good", "healthy"),
    ({"alpha": 3.0}, SCALED, "warn", "α rose to 3: entropy outweighs the reward"),
    ({"alpha": 400.0}, {"learn_alpha": True}, "warn", "α rose to 400"),
    ({"alpha": 400.0}, {"learn_alpha": True, **FIXED}, "warn", "α rose to 400"),
    ({"jacobian_norm": 1.7}, {}, "bad", "‖εJ‖ is 1.7"),
    ({"jacobian_norm": 1.7}, {"max_jacobian_norm": None}, "bad", "‖εJ‖ is 1.7"),
    ({"jacobian_norm": 0.31}, {}, "warn", "‖εJ‖ is 0.31: the density is a first-order one"),
    ({"jacobian_norm": 0.9}, {"max_jacobian_norm": None}, "warn", "‖εJ‖ is 0.9: the density is a first-order one"),
    ({"jacobian_norm": 0.29}, {}, "good", "healthy"),
    ({"jacobian_norm": 0.9}, TRACER, "good", "healthy"),
    ({"jacobian_norm": 1.7}, TRACER, "good", "healthy"),  # exact whatever its Frobenius norm
    ({"particle_std": 0.001}, {}, "bad", "particles have collapsed"),
    ({"particle_std": 0.001}, FIXED, "bad", "particles have collapsed"),
    ({"std": 0.3}, {}, "warn", "as narrow as it may be"),
    ({"std": 0.3}, {"start_alpha": None}, "warn", "as narrow as it may be"),
    ({"std": 0.3}, FIXED, "good", "healthy"),
    ({"entropy_sampler": 0.001}, {}, "note", "the sampler hardly moves the particles"),
    ({"critic_loss": math.nan}, {}, "note", "critic_loss is no number"),
    ({"clipped": 0.04}, {"categorical": True}, "warn", "targets leave the critics' range: 4 % of their mass"),
    ({"clipped": 0.04}, SCALED, "warn", "targets leave the critics' range: 4 % of their mass"),
    ({"clipped": 0.001}, {"categorical": True}, "good", "healthy"),
    ({"return": 3.0}, {}, "good", "healthy"),  # whether it learns is another matter
]


def about_with(settings):
    config = dataclasses.replace(ALGORITHMS["s2ac"].config, **{**ABOUT["algorithm"], "hidden": (8, 8), **settings})
    return {"algorithm": dataclasses.asdict(config)}  # settings that there cannot be are refused here


@pytest.mark.parametrize(("changes", "settings", "level", "words"), CASES)
def test_verdicts_name_the_number(tmp_path, changes, settings, level, words):
    found = health(read(make_run(tmp_path / "run", about=about_with(settings), changes=changes))[0])
    assert any(verdict.level == level and words in verdict.title for verdict in found), found
    assert any(verdict.level == "good" for verdict in found) == (level in ("good", "note"))


def follow(text, config):
    """The config after each flag that a text names; settings that it names must exist."""
    fields = {field.name for field in dataclasses.fields(config)}
    changed = {}
    for no, flag, value in re.findall(r"--(no-)?([a-z-]+)(?: ([\w.]*\w))?", text):
        name = flag.replace("-", "_")
        assert name in fields, text
        changed[name] = False if no else value if name == "form" else json.loads(value)
    advice = re.findall(r"(?:[Rr]aise|[Ll]ower|use) ([^.;:]*)", text)
    named = {word for part in advice for word in re.findall(r"[a-z]+_[a-z_]+|alpha", part)} - {"target_network"}
    assert named <= fields, (named - fields, text)
    return dataclasses.replace(config, **changed)


@pytest.mark.parametrize(
    ("changes", "settings"), [case[:2] for case in CASES if case[2] in ("bad", "warn")] + [(FROZEN, {"num_steps": 1})]
)
def test_advice_can_be_followed_with_the_run_s_own_settings(tmp_path, changes, settings):
    about = about_with(settings)
    config = ALGORITHMS["s2ac"].config
    config = dataclasses.replace(config, **{**about["algorithm"], "hidden": (8, 8), "guide": ()})
    for verdict in health(read(make_run(tmp_path / "run", about=about, changes=changes))[0]):
        assert re.search("raise|lower|--", verdict.text, re.IGNORECASE), verdict
        after = follow(verdict.text, config)
        assert (after == config) == ("--" not in verdict.text), verdict


@pytest.mark.parametrize("algo", ["ddpg", "ppo", "sql", "sac"])
def test_advice_on_actions_at_their_bounds_fits_every_algorithm(tmp_path, algo):
    config = ALGORITHMS[algo].config
    (reader,) = read(make_run(tmp_path / "run", about={"algo": algo, "algorithm": dataclasses.asdict(config)}))
    clouds = cloud_data(2)
    assert bounds(reader, clouds) is None
    for state in clouds["states"]:
        state["executed"] = (np.sign(state["executed"]) * 0.999).tolist()  # the particles stay where they are
    verdict = bounds(reader, clouds)
    assert "100 %" in verdict.title
    follow(verdict.text, config)
    assert "healthy" not in " ".join(verdict.title for verdict in health(reader, clouds))


@pytest.mark.parametrize("who", ["critic", "guide"])
def test_a_diverging_critic_is_seen(tmp_path, who):
    run = make_run(tmp_path / "run", records=0)
    rows = [train_row(seed, 100 * index, **{f"{who}_loss": 1e3 if index > 18 else 1.0})
            for index in range(1, 21) for seed in range(3)]  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    titles = [verdict.title for verdict in health(read(run)[0])]
    assert [title for title in titles if "diverges" in title] == [
        f"the {who} diverges: its loss is 500 times its median"
    ]


@pytest.mark.parametrize("scaled", [False, True])
def test_scaling_the_reward_is_advised_only_where_it_is_not_done_already(tmp_path, scaled):
    about = about_with({"categorical": scaled})
    run = make_run(tmp_path / "run", records=0, about=about)
    rows = [
        train_row(seed, 100 * index, critic_loss=1e3 if index > 18 else 1.0)
        for index in range(1, 21)
        for seed in range(3)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    clouds = cloud_data(2)
    for state in clouds["states"]:
        state["executed"] = (np.sign(state["executed"]) * 0.999).tolist()
    texts = [verdict.text for verdict in health(read(run)[0], clouds) if verdict.level in ("bad", "warn")]
    assert len(texts) == 2
    assert ["scale the reward down" in text for text in texts] == [not scaled] * 2


@pytest.mark.parametrize(
    ("settings", "remedy"), [({"categorical": True}, "lower alpha;"), (SCALED, "lower alpha or target_entropy;")]
)
def test_targets_out_of_range_are_first_a_matter_of_the_temperature(tmp_path, settings, remedy):
    (verdict,) = health(read(make_run(tmp_path / "run", about=about_with(settings), changes={"clipped": 0.04}))[0])
    assert verdict.text.index(remedy) < verdict.text.index("lower discount")


@pytest.mark.parametrize(
    ("slope", "level", "words"),
    [
        (1.0, "good", "the return rose"),
        (0.0, "warn", "still at the level of its start"),
        (-1.0, "bad", "the return fell"),
    ],
)
def test_learning_is_the_interval_of_the_change(tmp_path, slope, level, words):
    run = make_run(tmp_path / "run", records=0)
    noise = np.random.default_rng(0).normal(size=(3, 20))
    rows = [train_row(seed, 100 * index, **{"return": slope * index + noise[seed, index]})
            for index in range(20) for seed in range(3)]  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (verdict,) = learning(read(run)[0])
    assert (verdict.level, words in verdict.title) == (level, True)
    change = t_interval(16 * slope + noise[:, -4:].mean(axis=1) - noise[:, :4].mean(axis=1))
    interval = f"{change.value:+.3g} [{change.low:+.3g}, {change.high:+.3g}] over 3 seeds"
    assert interval.replace("-", "−") in verdict.text


def test_learning_and_health_are_judged_apart(tmp_path):
    run = collect(read(make_run(tmp_path / "flat", changes={"return": 3.0})))["runs"][0]
    judged = {title: [verdict["title"] for verdict in found] for title, found in run["judged"]}
    assert judged == {
        "Learning": ["return still at the level of its start"],
        "Health of the sampler": ["sampler healthy"],
    }
    frozen = collect(read(make_run(tmp_path / "frozen", changes=FROZEN)))["runs"][0]["judged"]
    assert [[verdict["level"] for verdict in found] for _, found in frozen] == [["good"], ["bad"]]


def test_one_seed_and_few_records_are_not_judged(tmp_path):
    (one,) = learning(read(make_run(tmp_path / "one", seeds=1))[0])
    assert (one.level, one.title) == ("note", "one seed cannot tell learning from luck")
    (few,) = learning(read(make_run(tmp_path / "few", records=9))[0])
    assert (few.level, few.title) == ("note", "too early to judge: 9 records with a return")


def test_the_wait_for_the_first_record_is_explained(tmp_path):
    (waits,) = learning(read(make_run(tmp_path / "run", records=0))[0])
    assert "after 100 steps (log_every)" in waits.text
    (odd,) = learning(read(make_run(tmp_path / "odd", records=0, about={"run": {"log_every": "x"}}))[0])
    assert "after log_every steps" in odd.text
    (none,) = learning(read(make_run(tmp_path / "none", changes={"episodes": 0.0}))[0])
    assert "log_every is shorter than an episode" in none.text

"""The MuJoCo study: scores, tables, claims and refusals from made-up records, its figures, its command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from s2ac.cli.main import main, parse
from s2ac.errors import Diverged, InvalidArgument, S2acError
from s2ac.runs.about import with_defaults
from s2ac.studies.mujoco import jobs as mujoco
from s2ac.studies.mujoco.claims import cells, decide, summary_table, whole_table
from s2ac.studies.mujoco.exchange import RANDOM_AND_TD3, td3_table
from s2ac.studies.mujoco.figures import curve_of, smoothed
from s2ac.studies.mujoco.jobs import SCALES, SYSTEMS, TASKS, jobs, protocol_of, record_of, rules_of, train_job
from s2ac.studies.mujoco.records import (
    RULES,
    UNITS,
    merge,
    normalised,
    read_all,
    read_record,
    scores_of,
    settings,
    write_record,
)

STEPS, EVERY = 3000, 100
LEVELS = {"s2ac": 0.9, "sac": 0.6, "sql": 0.4, "sac-nf": 0.5, "sac-iaf": 0.45, "ddpg": 0.3, "ppo": 0.2, "s2ac-phi": 0.2, "s2ac-amortized": 0.85}  # fmt: skip


SHIPPED = Path(__file__).parent.parent / "results"


def made_up(system="s2ac", task="Hopper", seeds=5, level=None, spread=0.05, version=5, **changes):
    """A record whose seeds rise to about `level` of the task's unit."""
    generator = np.random.default_rng(sum(map(ord, system + task)))
    low, high = UNITS[task]
    steps = list(range(EVERY, STEPS + 1, EVERY))
    what = SYSTEMS[system]

    def curve():
        end = (LEVELS[system] if level is None else level) + spread * generator.standard_normal()
        rise = end * (1 - np.exp(-np.array(steps) / 800)) + 0.02 * generator.standard_normal(len(steps))
        return [[step, round(float(low + (high - low) * value), 2)] for step, value in zip(steps, rise, strict=True)]

    rules = dict.fromkeys((what.sample, what.greedy, "argmax") if system != "ppo" else ("sample", "mean"))
    return {
        "format": 1, "system": system, "algo": what.algo, "task": task, "env": f"{task}-v{version}",
        "protocol": {"name": "default", "steps": STEPS, "every": EVERY, "episodes": 10},
        "config": {"algorithm": {"alpha": 0.2}, "run": {"seeds": seeds, "first_seed": 0, "batch_size": 256}},
        "versions": {"s2ac": "0", "jax": "0.1"}, "device": "cpu", "command": "made up", "seeds": list(range(seeds)),
        "reached": {str(s): STEPS for s in range(seeds)}, "failures": {},
        "evaluations": {rule: {str(s): curve() for s in range(seeds)} for rule in rules}, **changes,
    }  # fmt: skip


def everything(**levels):
    return [made_up(s, t, level=levels.get(s.replace("-", "_"))) for s in SYSTEMS for t in TASKS]


def write(directory, records):
    (directory / "records").mkdir(parents=True, exist_ok=True)
    for record in records:
        write_record(directory / "records" / f"{record['system']}-{record['task']}.json", record)
    return directory


def verdicts(records):
    return {claim.number: claim.verdict for claim in decide(records)}


def test_claims_are_decided_both_ways():
    assert verdicts(everything()) == {12: "holds", 13: "holds", 14: "holds"}
    assert verdicts(everything(sac=0.95)) == {12: "does not hold", 13: "holds", 14: "does not hold"}
    assert verdicts(everything(s2ac_phi=0.7))[13] == "does not hold"  # below, but not far


def test_missing_runs_and_few_seeds_are_not_tested():
    records = [r for r in everything() if (r["system"], r["task"]) != ("sql", "Ant")]
    claims = {claim.number: claim for claim in decide(records)}
    assert claims[12].verdict == claims[14].verdict == "not tested"
    assert "SQL" in claims[12].how
    assert "SAC (sample): mean above on 5 of 5" in claims[12].measured  # what is known is still told
    assert claims[13].verdict == "holds"
    refuted = [r for r in everything(sac=0.95) if r["system"] in ("s2ac", "sac")]
    claims = {claim.number: claim for claim in decide(refuted)}
    assert [claims[n].verdict for n in (12, 13, 14)] == ["does not hold", "not tested", "does not hold"]
    assert "not run whole on all five tasks: SQL, SAC-NF, but what is run decides it" in claims[12].how
    assert claims[12].interval == claims[14].interval
    ran = [r for r in everything(sac_nf=0.97) if r["task"] in TASKS[:3]]
    lost = {
        claim.number: claim for claim in decide(ran)
    }  # five of five is out of reach: SAC-NF is above on two of three
    assert [lost[n].verdict for n in (12, 13, 14)] == ["does not hold", "not tested", "not tested"]
    assert lost[12].interval is None
    assert (
        verdicts([r for r in everything(sac=0.97) if r["task"] in TASKS[:1]])[12] == "not tested"
    )  # four of five may still be
    four = [made_up(s, t, seeds=4) for s in SYSTEMS for t in TASKS]
    assert set(verdicts(four).values()) == {"not tested"}
    assert "better" not in whole_table(four)
    assert "not ranked (4 of 5 seeds)" in whole_table(four)


def test_final_is_the_last_tenth_and_best_is_given():
    record = made_up(seeds=1)
    record["evaluations"]["sample"]["0"] = [[100 * (i + 1), float(i)] for i in range(30)]
    record["evaluations"]["sample"]["0"][4][1] = 99.0
    scores = scores_of(record, "sample")
    assert scores.final.tolist() == [28.0]
    assert scores.best.tolist() == [99.0]


def test_failed_seeds_count_with_their_last_evaluation():
    record = made_up()
    for curves in record["evaluations"].values():
        curves["1"] = curves["1"][:3]
        curves["3"] = []
    record["reached"] |= {"1": 350, "3": 20}
    record["failures"] = {"1": "critic_loss of seed 1 is not finite", "3": "at once"}
    scores = scores_of(record, "sample")
    assert scores.whole
    assert scores.failed == [1, 3]
    assert scores.final[1] == record["evaluations"]["sample"]["1"][2][1]
    assert scores.final[3] == UNITS["Hopper"][0]
    steps, values, note = curve_of(record, "sample")
    assert note == ", 2 failed"
    assert values.shape == (5, len(steps)) == (5, 30)
    assert set(values[-2, 3:]) == {scores.final[1]}
    text = whole_table([record])
    assert "(2 failed)" in text
    assert "seed 1: critic_loss of seed 1 is not finite" in text


def test_missing_seeds_are_shown_not_averaged():
    short, stopped = made_up(seeds=3), made_up("sac")
    stopped["reached"] = dict.fromkeys(stopped["reached"], 1200)
    for curves in stopped["evaluations"].values():
        for seed in curves:
            curves[seed] = curves[seed][:12]
    rows = {(r["system"], r["task"]): r for r in cells([short, stopped, made_up("sql")], "sample")}
    assert rows["S²AC(φ,θ)", "Hopper"]["state"] == "3 of 5 seeds"
    assert "final" not in rows["S²AC(φ,θ)", "Hopper"]
    assert rows["SAC", "Hopper"]["state"] == "stopped at 1,200 steps"
    assert rows["SQL", "Hopper"]["state"] == "whole"
    assert rows["SQL", "Ant"]["state"] == "not run"
    assert normalised([short, made_up("sql")], "s2ac", ["Hopper"], "sample") is None
    assert curve_of(stopped, "sample")[2] == ", to 1,200"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"version": 4}, "environment version"),
        ({"protocol": {"name": "paper", "steps": STEPS, "every": EVERY, "episodes": 100}}, "protocol"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path, change, match):
    with pytest.raises(InvalidArgument, match=match):
        merge([(tmp_path / "a", made_up()), (tmp_path / "b", made_up("sac", **change))])


def test_copies_must_agree(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    one = made_up()
    assert merge([(a, one), (b, made_up())]) == [one]
    other = made_up()
    other["evaluations"]["sample"]["2"][5][1] += 1
    with pytest.raises(InvalidArgument, match="seed 2, with different returns"):
        merge([(a, one), (b, other)])
    with pytest.raises(InvalidArgument, match="other settings"):
        merge([(a, one), (b, {**made_up(), "config": {"algorithm": {"alpha": 1.0}, "run": {}}})])


def test_a_field_that_did_not_exist_yet_has_its_default(tmp_path):
    """So records of an older version can be merged, and are no others than those of today."""
    config = {"algorithm": {"alpha": 0.2, "adam_b1": 0.9}, "run": made_up()["config"]["run"]}
    (joined,) = merge([(tmp_path / "a", made_up()), (tmp_path / "b", made_up(config=config))])
    assert joined["seeds"] == [0, 1, 2, 3, 4]
    config["algorithm"]["adam_b1"] = 0.5
    with pytest.raises(InvalidArgument, match="other settings"):
        merge([(tmp_path / "a", made_up()), (tmp_path / "b", made_up(config=config))])


def test_critics_of_two_kinds_are_not_compared(tmp_path):
    def critics(system, **fields):
        return made_up(system, config={**made_up()["config"], "algorithm": {"alpha": 0.2, **fields}})

    plain, normalised = critics("sac"), critics("s2ac", batch_norm=True)
    with pytest.raises(InvalidArgument, match=r"differ in critics \(target networks, batch normalisation\)"):
        merge([(tmp_path / "a", normalised), (tmp_path / "b", plain)])
    with pytest.raises(InvalidArgument, match=r"differ in critics \(categorical, batch normalisation\)"):
        merge([(tmp_path / "a", normalised), (tmp_path / "b", critics("sac", categorical=True))])
    assert len(merge([(tmp_path / "a", normalised), (tmp_path / "b", critics("sac", batch_norm=True))])) == 2
    assert len(merge([(tmp_path / "a", made_up("ppo")), (tmp_path / "b", normalised)])) == 2  # PPO has neither


def test_returns_in_units_of_td3s():
    """One return of TD3's on every task is 1, and one of uniform actions 0; a task without records leaves the system out."""
    made = [made_up("sac", task=task) for task in RANDOM_AND_TD3]
    for record, (low, high) in zip(made, RANDOM_AND_TD3.values(), strict=True):
        curves = {"sample": high, "mean": (low + high) / 2}
        record["evaluations"] = {
            rule: {str(s): [[record["protocol"]["steps"], value]] for s in record["seeds"]} for rule, value in curves.items()
        }  # fmt: skip
    assert "| SAC | 1.00 | 0.50 |" in td3_table(made)
    assert td3_table(made[1:]) == ""


def test_the_shipped_records_are_of_the_settings_that_the_study_has_now():
    scale, records = (
        SCALES["short"],
        list((Path(__file__).parents[1] / "results" / "mujoco" / "records").glob("*.json")),
    )
    assert records
    for record in map(read_record, records):
        (job,) = jobs(scale, protocol_of(scale, "default"), (record["task"],), (record["system"],), 5)
        assert job.config()["algorithm"] == with_defaults(record["algo"], record["config"])["algorithm"]
        assert settings({"algo": record["algo"], "config": job.config()}) == settings(record)


def test_seeds_of_two_machines_are_joined(tmp_path):
    whole = made_up()

    def part(seeds, device):
        names = set(map(str, seeds))
        keep = lambda kept: {k: v for k, v in kept.items() if k in names}  # noqa: E731
        return {
            **whole, "seeds": seeds, "device": device, "reached": keep(whole["reached"]),
            "config": {**whole["config"], "run": {**whole["config"]["run"], "seeds": len(seeds), "first_seed": seeds[0]}},
            "evaluations": {rule: keep(curves) for rule, curves in whole["evaluations"].items()},
        }  # fmt: skip

    (joined,) = merge([(tmp_path / "a", part([3, 4], "cpu")), (tmp_path / "b", part([0, 1, 2], "gpu"))])
    assert joined["seeds"] == whole["seeds"]
    assert joined["evaluations"] == whole["evaluations"]
    assert joined["device"] == "cpu; gpu"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"seeds": [0, 1, 2, 3, 4]', '"seeds": [0, 1, 2, 3]'),
        lambda text: text.replace("[3000, ", "[2950, "),
        lambda text: text.replace("[200, ", "[100, "),
        lambda text: text.replace("[[100, ", "[[NaN, "),
        lambda text: text.replace('"format": 1', '"format": 2'),
    ],
)
def test_damaged_files_are_refused(tmp_path, damage):
    path = tmp_path / "s2ac-Hopper.json"
    write_record(path, made_up())
    assert read_record(path)["seeds"] == [0, 1, 2, 3, 4]
    path.write_text(damage(path.read_text()))
    with pytest.raises(S2acError, match="damaged") as caught:
        read_record(path)
    assert "\n" not in str(caught.value)


def test_command_redraws_from_records(tmp_path, capsys):
    one = write(tmp_path / "one", [r for r in everything() if r["system"] != "sac-iaf"])
    two = write(tmp_path / "two", [r for r in everything() if r["system"] == "sac-iaf"])
    out = tmp_path / "out"
    assert main(["reproduce", "mujoco", "--from-results", str(one), "--merge", str(two), "--out", str(out)]) == 0
    assert "claim 12 holds" in capsys.readouterr().out
    for name in ("learning_curves_sample", "learning_curves_greedy", "aggregates", "performance_profile", "probability_of_improvement"):  # fmt: skip
        assert (out / f"{name}.png").stat().st_size > 5_000
        assert (out / f"{name}.pdf").exists()
    assert [c["number"] for c in json.loads((out / "claims.json").read_text())["claims"]] == [12, 13, 14]
    assert "| S²AC(φ,θ) | " in (out / "table.md").read_text()
    assert len(json.loads((out / "table.json").read_text())["greedy"]) == len(SYSTEMS) * len(TASKS)
    csv = (out / "results.csv").read_text().splitlines()
    assert csv[0] == "exp_name,env_name,seed,metric,env_step,value"
    assert len(csv) == 1 + len(everything()) * 2 * 5 * (STEPS // EVERY)  # two rules, five seeds
    assert sum(line.startswith("s2ac,Hopper-v5,3,return_greedy,") for line in csv) == STEPS // EVERY
    assert [summary_table(read_all([one]), rule).count("Not run: SAC-IAF.") for rule in RULES] == [1, 1]
    assert main(["reproduce", "mujoco", "--from-results", str(tmp_path), "--out", str(out)]) == 2
    assert "holds no records" in capsys.readouterr().err
    about = json.loads((out / "claims.json").read_text())["about"]
    assert (about["device"], about["jax"]) == (made_up()["device"], made_up()["versions"]["jax"])  # of the records


@pytest.mark.parametrize(("arguments", "message"), [
    (["mujoco", "--merge", "nowhere"], "nowhere holds no records"),  # before anything is trained
    (["entropy", "--tasks", "Hopper"], "--tasks is no option of the study entropy"),
    (["runtime", "--on", "local:2"], "--on is no option of the study runtime"),
    (["mujoco", "--from-results", "results/mujoco", "--scale", "paper"], "--scale goes with a run, not with --from-results"),
    (["multigoal", "--from-results", str(SHIPPED / "entropy")], "a record without name, kind, alpha: of another study?"),
    (["entropy", "--from-results", str(SHIPPED / "multigoal")], "a record without study: of another study?"),
])  # fmt: skip
def test_what_a_study_cannot_use_is_refused_at_once(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments, "--out", "out"]) == 2
    assert message in capsys.readouterr().err
    assert not list((tmp_path / "out").glob("*"))


def test_unknown_names_are_refused(capsys):
    assert main(["reproduce", "mujoco", "--tasks", "Hoper", "--out", "/nowhere"]) == 2
    assert "did you mean 'Hopper'" in capsys.readouterr().err
    assert main(["reproduce", "mujoco", "--scale", "quick", "--out", "/nowhere"]) == 2


def test_settings_and_protocols():
    short = protocol_of(SCALES["short"], "default")
    assert short[1:] == (300_000, 10_000, 10)
    assert protocol_of(SCALES["paper"], "paper")[1:] == (1_000_000, 1000, 100)
    todo = jobs(SCALES["short"], short, TASKS, tuple(SYSTEMS), 5)
    assert len(todo) == 45
    assert todo[0].env == "Hopper-v5"
    for job in todo:
        run = job.settings.run
        assert (run.seeds, run.episodes, run.evaluate_every) == (5, 10, 10_000)
        assert run.evaluate_every % run.log_every == 0
        what = SYSTEMS[job.system]
        assert {what.sample, what.greedy} <= set(run.select)
    assert rules_of(SYSTEMS["sac"], ("sample", "mean")) == ("sample", "mean")
    for job in jobs(SCALES["short"], short, ("Hopper", "Ant"), tuple(SYSTEMS), 5, preset="paper"):
        run, algorithm = job.settings.run, job.settings.algorithm
        assert run.steps == 300_000
        if job.system in ("s2ac", "s2ac-phi", "s2ac-amortized"):
            steps = 20 if job.system == "s2ac-phi" else 3
            assert (algorithm.form, algorithm.num_particles, algorithm.num_steps) == ("paper", 10, steps)
        if job.system not in ("ddpg", "ppo"):
            assert algorithm.alpha == (0.2 if job.task == "Ant" else 1.0)
            assert (run.num_envs, run.num_updates, run.batch_size, run.warmup_steps) == (1, 1, 100, 10_000)
    assert parse(["reproduce", "mujoco", "--tasks", "Hopper", "Ant", "--systems", "sac"]).tasks == ("Hopper", "Ant")


def job_of(seeds=3):
    job = jobs(SCALES["smoke"], protocol_of(SCALES["smoke"], "default"), ("Hopper",), ("sac",), 5)[0]
    return job._replace(settings=job.settings._replace(run=replace(job.settings.run, seeds=seeds)))


def test_one_seed_that_diverges_leaves_the_others_whole(tmp_path):
    """Together they stop at once; alone, seed 1 stops at step 100 and the others end."""

    def go(directory, settings):
        run, steps = settings.run, int(settings.run.steps)
        if run.seeds > 1:
            raise Diverged("critic_loss of seed 1 is not finite")
        directory.mkdir(parents=True)
        rows = [{"kind": "evaluation", "seed": run.first_seed, "env_step": step, "rule": rule, "return": 7.0}
                for step in (100, steps) for rule in run.select if run.first_seed != 1 or step == 100]  # fmt: skip
        (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        if run.first_seed == 1:
            raise Diverged("critic_loss of seed 1 is not finite")
        return True, steps

    record = record_of(job_of(), train_job(tmp_path / "sac-Hopper", job_of(), go), "test")
    write_record(tmp_path / "sac-Hopper.json", record)
    record = read_record(tmp_path / "sac-Hopper.json")
    assert record["failures"] == {"1": "critic_loss of seed 1 is not finite"}
    assert mujoco.finished(record)
    assert [len(record["evaluations"]["sample"][str(s)]) for s in range(3)] == [2, 1, 2]
    assert scores_of(record, "sample").final.tolist() == [7.0, 7.0, 7.0]


@pytest.mark.slow
def test_the_study_runs_and_goes_on(tmp_path, capsys):
    """Smoke scale, really trained; a second call finds all done, other settings are refused."""
    arguments = [
        "reproduce",
        "mujoco",
        "--scale",
        "smoke",
        "--systems",
        "sac",
        "--tasks",
        "Hopper",
        "--out",
        str(tmp_path),
    ]
    assert main(arguments) == 0
    capsys.readouterr()
    (tmp_path / "records" / "sac-Hopper-seeds0-1.json").unlink()  # as if stopped before it was written
    assert main(arguments) == 0
    assert "run 1 of 1, sac-Hopper-seeds0-1: 300 steps" in capsys.readouterr().out
    assert main(arguments) == 0
    assert "done before" in capsys.readouterr().out
    (record,) = read_all([tmp_path])
    assert record["env"] == "Hopper-v5"
    assert set(record["evaluations"]) == {"sample", "mean", "argmax"}
    assert record["reached"] == {"0": 300, "1": 300}
    assert main([*arguments, "--version", "4"]) == 2
    assert "other settings" in capsys.readouterr().err


@pytest.mark.slow
def test_runs_at_once_are_those_one_after_the_other(tmp_path, capsys):
    def records(*more):
        out = tmp_path / f"{len(more)}"
        arguments = ["reproduce", "mujoco", "--scale", "smoke", "--systems", "sac", "ddpg", "--tasks", "Hopper", *more]
        assert main([*arguments, "--out", str(out)]) == 0
        assert main([*arguments, "--out", str(out)]) == 0  # finds all done
        return read_all([out])

    assert records("--on", "local:2") == records()
    assert "run 1 of 1, sac-Hopper-seeds0-1" in (tmp_path / "2" / "logs" / "sac-Hopper-seeds0-1.txt").read_text()
    assert "ended with code 0" in capsys.readouterr().out


def test_the_headline_is_every_seed_at_the_end_of_training():
    """The best evaluation, or the best seed, would report luck: one seed peaks at 900 early, one never learns."""
    curves = {
        "0": [[step, 900.0 if step == 3 else 100.0] for step in range(1, 21)],
        "1": [[step, -50.0] for step in range(1, 21)],
        "2": [[step, float(step)] for step in range(1, 21)],
    }
    record = {
        "system": "sac", "task": "Hopper", "env": "Hopper-v5", "seeds": [0, 1, 2], "failures": {},
        "reached": dict.fromkeys("012", 20), "protocol": {"steps": 20}, "evaluations": {"sample": curves},
    }  # fmt: skip
    assert scores_of(record, "sample").final.tolist() == [100.0, -50.0, 19.5]
    row = next(row for row in cells([record], "sample") if row["state"] == "whole")
    np.testing.assert_allclose(row["final"]["value"], np.mean([100.0, -50.0, 19.5]))


def test_the_smoothing_window_counts():
    """The middle of a parabola through eleven points. Released code overwrites its window with 5."""
    curve = np.random.default_rng(0).normal(size=40)
    middles = [np.polyfit(np.arange(-5, 6), curve[i - 5 : i + 6], 2)[-1] for i in range(5, 35)]
    np.testing.assert_allclose(smoothed(curve)[5:35], middles, atol=1e-9)
    np.testing.assert_array_equal(smoothed(curve[:10]), curve[:10])

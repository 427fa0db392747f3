"""Numbers out of range are refused when a config is made, in one line that names field, value and range."""

import json
import random
import re
from dataclasses import asdict, fields, replace

import jax
import jax.numpy as jnp
import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.cli.main import main
from s2ac.errors import InvalidArgument, S2acError
from s2ac.ranges import ranges_of
from s2ac.runs.about import configs_of, same_run
from s2ac.settings import RunConfig, names_of, resolve
from s2ac.settings.entries import EVERY, PRESETS, entry_of

BAD = {
    "hidden": [(0,), (16, -1), (2.5,), 16],
    "activation": ["rellu", 3],
    "learning_rate": [0.0, -1e-3, float("nan"), float("inf"), "fast"],
    "critic_learning_rate": [0.0],
    "frequency": [0.0, -1.0],
    "discount": [-0.1, 1.01, float("nan")],
    "target_rate": [0.0, 1.5],
    "alpha": [0.0, -1.0, float("inf")],
    "target_entropy": [float("nan"), float("inf")],
    "adam_b1": [1.0, -0.1],
    "num_critics": [0, 1.5, True],
    "min_std": [0.0, -1.0, 1e9],
    "max_std": [0.0, 1e-9],
    "num_particles": [0],
    "num_steps": [-1],
    "guide": [(0,), 128, (1.5,)],
    "step_size": [0.0],
    "bandwidth_factor": [0.0],
    "max_jacobian_norm": [0.0],
    "start_std": [0.0],
    "start_alpha": [-0.1, float("inf")],
    "explore_alpha": [-0.1, float("inf")],
    "num_references": [-1, 1, 2.0],
    "num_flows": [-1],
    "num_value_samples": [0],
    "noise": [-0.1, float("inf")],
    "trace": [1.1],
    "clip": [0.0, 1.0],
    "num_epochs": [0],
    "num_minibatches": [0],
    "entropy_weight": [-1.0],
    "value_weight": [float("nan")],
    "max_gradient_norm": [0.0],
}


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_number_of_every_config_has_a_range(algo):
    """Whatever the algorithm: each bad value is refused by name, the defaults are fine, and no number lacks a range."""
    config = ALGORITHMS[algo].config
    assert replace(config) == config
    for field in fields(config):
        assert field.name in ranges_of(type(config))
        for bad in BAD.get(field.name, []):
            with pytest.raises(
                InvalidArgument, match=rf"^{field.name} = .*must be|^min_std = .*must be below"
            ) as caught:
                replace(config, **{field.name: bad})
            assert "\n" not in str(caught.value)


def test_a_traced_number_passes_so_that_it_can_be_an_axis():
    config = ALGORITHMS["sac"].config
    alphas = jax.jit(jax.vmap(lambda alpha: replace(config, alpha=alpha, min_std=alpha).alpha))(jnp.array([0.1, -1.0]))
    assert alphas.shape == (2,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--algo", "sac", "--discount", "1.5"], "discount = 1.5: must be a number at least 0 and at most 1"),
        (["--algo", "ddpg", "--activation", "tanhh"], "must be one of elu, relu, silu, tanh (did you mean 'tanh'?)"),
        (["--algo", "s2ac", "--num-particles", "0"], "num_particles = 0: must be an integer of at least 1"),
        (
            ["--algo", "sac", "--workers", "2"],
            "workers = 2: must be left out, it has no effect on multigoal, which is written in JAX",
        ),
        (["--algo", "sac", "--overlap"], "overlap = True: must be left out, it has no effect on multigoal"),
        (["--algo", "sac", "--steps", "inf"], "steps = inf: must be a number at least 1"),
        (["--algo", "sac", "--max-value", "0"], "max_value = 0.0: must be a finite number above 0"),
        (["--algo", "ppo", "--num-minibatches", "7"], "num_minibatches = 7: must divide a rollout"),
    ],
)
def test_the_command_line_says_so_in_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "multigoal", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("env", ["multigoal", "multigoal-far", "Hopper-v5", "Ant-v4", "Pendulum-v1"])
def test_every_field_of_an_entry_is_one_of_its_algorithms_own(preset, env):
    entry = entry_of(preset, env)
    assert not entry or tuple(entry) == EVERY == tuple(sorted(ALGORITHMS, key=EVERY.index))
    for algo, fields_given in entry.items():
        assert fields_given.keys() <= names_of(ALGORITHMS[algo].config) | names_of(RunConfig)
        settings = resolve(env, algo, preset)
        for name, value in fields_given.items():
            assert getattr(settings.run if name in names_of(RunConfig) else settings.algorithm, name) == value


def test_the_algorithms_defaults_then_the_entry_then_what_the_user_said():
    assert resolve("Pendulum-v1", "ppo").run.horizon == ALGORITHMS["ppo"].run["horizon"]
    assert resolve("Hopper-v5", "ppo").run.num_envs == ALGORITHMS["ppo"].run["num_envs"]
    assert resolve("Hopper-v5", "sac").run.num_envs == 8
    assert resolve("Hopper-v5", "sac", given={"num_envs": 3}).run.num_envs == 3
    assert resolve("Ant-v5", "sql").algorithm.alpha == 1 / 300
    assert resolve("Walker2d-v4", "sql").algorithm.alpha == 1 / 10
    assert resolve("Ant-v5", "sac", "paper").algorithm.alpha == 0.2
    with pytest.raises(InvalidArgument, match=r"field = 'num_particle': must be one of .*did you mean 'num_particles'"):
        resolve("multigoal", "s2ac", given={"num_particle": 3})


CHEAP = {"guide", "num_flows", "num_particles", "num_steps"}


def test_target_networks_and_ten_particles_are_presets_of_the_mujoco_tasks():
    def given(preset: str, algo: str, env: str) -> dict:
        return vars(resolve(env, algo, preset).algorithm)

    def changed(preset: str, algo: str) -> set[str]:
        other = given(preset, algo, "Hopper-v5")
        return {name for name, value in given("default", algo, "Hopper-v5").items() if other[name] != value}

    for algo in ("sac", "sac-nf", "s2ac"):
        assert given("default", algo, "Hopper-v5")["batch_norm"]
        own = {"step_size"} | CHEAP if algo == "s2ac" else set()
        assert changed("target-networks", algo) == {"batch_norm", "adam_b1"} | own
        assert given("target-networks", algo, "Hopper-v5")["adam_b1"] == ALGORITHMS[algo].config.adam_b1
        assert changed("ten-particles", algo) == (CHEAP if algo == "s2ac" else set())
    paper = given("ten-particles", "s2ac", "Hopper-v5")
    assert [paper[name] for name in sorted(CHEAP)] == [(), 0, 10, 3]
    for algo, env in (("sql", "Hopper-v5"), ("ddpg", "Hopper-v5"), ("ppo", "Hopper-v5"), ("s2ac", "multigoal")):
        assert given("default", algo, env) == given("target-networks", algo, env) == given("ten-particles", algo, env)


def test_a_run_that_was_written_before_a_field_came_or_went_is_still_the_same_run(tmp_path):
    about = {
        "algo": "sac",
        "env": "multigoal",
        "algorithm": asdict(ALGORITHMS["sac"].config),
        "run": asdict(RunConfig()),
    }
    about = json.loads(json.dumps(about))
    older = {**about, "algorithm": {name: value for name, value in about["algorithm"].items() if name != "batch_norm"}}
    assert same_run(older, about)
    assert not same_run(older, {**about, "algorithm": {**about["algorithm"], "batch_norm": True}})
    assert not same_run(older, {**about, "env": "multigoal-far"})

    def with_late(value):  # a field that is no more
        return {**about, "algorithm": {**about["algorithm"], "late_action": value}}

    assert same_run(with_late(False), about)
    assert configs_of(with_late(False), tmp_path)[0] == ALGORITHMS["sac"].config
    with pytest.raises(S2acError, match=r"run.json cannot be used: sac has no field late_action in this version"):
        configs_of(with_late(True), tmp_path)


OLD = {  # S²AC's own settings of version 2, as the MuJoCo preset had them
    "num_particles": 4, "num_steps": 1, "step_size": 0.1, "scale_step_by_alpha": True, "bandwidth": None, "bandwidth_factor": 0.25,
    "form": "normalized", "density": "trace", "hessian": "hutchinson", "max_jacobian_norm": 0.9, "differentiate_score": True,
    "resample": False, "guide": [], "score_precision": "auto", "start": "learned", "start_alpha": 0.0, "start_ratio": 1.0,
    "mode_alpha": None, "start_std": 0.707, "num_flows": 0, "flow": "radial", "amortized": False,
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), [
    ({}, {"num_references": 0, "step_size": 0.1, "start_std": None, "start_alpha": 0.0, "weighted": False}),
    ({"scale_step_by_alpha": False}, {"step_size": 0.5}),  # at α = 0.2
    ({"start": "fixed", "start_alpha": None}, {"start_std": 0.707, "start_alpha": None}),
    ({"resample": True}, "s2ac has no field resample in this version"),
    ({"scale_step_by_alpha": False, "learn_alpha": True}, "has no field scale_step_by_alpha"),
    ({"start_alpha": 10.0}, "has no field start_ratio"),
    ({"hessian": "exact"}, "has no field hessian"),
    ({"form": "tracer", "density": "log-det"}, "form = 'tracer': its steps are shorter since version 3"),
    ({"amortized": True}, "amortized = True: f_ψ is another network since version 3"),
])  # fmt: skip
def test_settings_of_version_2_are_taken_over_or_refused_by_name(old, new, tmp_path):
    algorithm = {**asdict(ALGORITHMS["sac"].config), "learn_alpha": False, "alpha": 0.2, **OLD, **old}
    about = {"version": 2, "env": "multigoal", "algo": "s2ac", "algorithm": algorithm, "run": asdict(RunConfig())}
    about = json.loads(json.dumps(about))
    if isinstance(new, str):
        with pytest.raises(S2acError, match=re.escape(new)):
            configs_of(about, tmp_path)
        return
    config, _ = configs_of(about, tmp_path)
    assert {name: getattr(config, name) for name in new} == pytest.approx(new)
    with pytest.raises(S2acError, match=r"version 5 of run\.json: this s2ac reads up to 4"):
        configs_of({**about, "version": 5}, tmp_path)


def test_the_order_of_flags_does_not_matter(tmp_path, monkeypatch):
    """300 orders of one command line, the environment anywhere, give the same run.json."""
    seen = []
    monkeypatch.setattr(
        "s2ac.cli.train.start", lambda directory, env, *settings: seen.append((env, *settings)) or stop()
    )

    def stop():
        raise S2acError("seen")

    flags = ["--seeds 2", "--algo sac", "--hidden 32 32", "--no-batch-norm", "--alpha=0.3", "--select sample argmax"]
    flags += ["--first-seed 5", "--preset default", "--overlap", "--target-entropy -1.5", f"--out {tmp_path}"]
    order = random.Random(0)
    for _ in range(300):
        words = [*map(str.split, flags), ["Hopper-v5"]]
        order.shuffle(words)
        assert main(["train", *(word for group in words for word in group)]) == 2
    assert len(seen) == 300
    assert set(map(repr, seen)) == {repr(seen[0])}
    env, algo, algorithm, run = seen[0]
    wanted = resolve("Hopper-v5", "sac", given={
        "hidden": (32, 32), "batch_norm": False, "alpha": 0.3, "target_entropy": -1.5, "seeds": 2, "first_seed": 5,
        "overlap": True, "select": ("sample", "argmax"),
    })  # fmt: skip
    assert (env, algo, algorithm, run) == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sedes", "2", "Hopper-v5"], "--sedes: no such flag (did you mean --seeds?)"),
        (["Hopper-v5", "Ant-v5"], "'Ant-v5': one environment at a time, and there is 'Hopper-v5' already"),
        (["--seeds", "2"], "train what?"),
        (["--resume", "runs/a", "--seeds", "2"], "--resume goes alone, or with --steps"),
        (["Hopper-v5", "--resume", "runs/a"], "--resume goes alone, or with --steps"),
    ],
)
def test_mistakes_in_the_command_line_are_one_line(arguments, message, capsys):
    assert main(["train", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error

"""Numbers out of range are refused when a config is made, in one line that names field, value and range."""

import json
from dataclasses import asdict, fields, replace

import jax
import jax.numpy as jnp
import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.algorithms.base import RANGES
from s2ac.checks import InvalidArgument, S2acError
from s2ac.cli import main
from s2ac.presets import fields_of
from s2ac.training.about import same_run
from s2ac.training.config import RunConfig
from s2ac.training.trainer import configs_of

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
    "bandwidth": [-1.0],
    "bandwidth_factor": [0.0],
    "max_jacobian_norm": [0.0],
    "start_std": [0.0],
    "start_alpha": [-0.1, float("inf")],
    "start_ratio": [0.5, float("inf")],
    "score_precision": ["half", 16],
    "mode_alpha": [0.0, -1.0],
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
        value = getattr(config, field.name)
        if isinstance(value, int | float | tuple) and not isinstance(value, bool):
            assert field.name in RANGES
        for bad in BAD.get(field.name, []):
            with pytest.raises(
                InvalidArgument, match=rf"^{field.name} = .*must be|^min_std = .*must be below"
            ) as caught:
                replace(config, **{field.name: bad})
            assert "\n" not in str(caught.value)
    assert set(RANGES) == set(BAD)


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


def test_a_preset_gives_each_algorithm_its_own_fields():
    def given(algo: str, env: str, preset: str = "default") -> dict:
        return fields_of(preset, "algorithm", ALGORITHMS[algo].config, env)

    assert given("sql", "Ant-v5")["alpha"] == 1 / 300
    assert given("sql", "Walker2d-v4")["alpha"] == 1 / 10
    assert "alpha" not in given("sac", "Ant-v5")
    assert "alpha" not in given("sql", "multigoal")
    assert given("s2ac-phi", "Ant-v5") | {"num_steps": 20, "learn_alpha": False} == given("s2ac-phi", "Ant-v5")
    assert given("s2ac", "Ant-v5")["learn_alpha"]
    assert given("s2ac", "Ant-v5")["num_steps"] == 1
    assert given("s2ac", "Ant-v5")["start_alpha"] == 0.0
    assert "start_alpha" not in given("s2ac-phi", "Ant-v5")
    assert given("s2ac-amortized", "Ant-v5") == given("s2ac", "Ant-v5", "ten-particles")
    assert given("s2ac-amortized", "multigoal") == given("s2ac", "multigoal")


CHEAP = {"guide", "num_flows", "num_particles", "num_steps"}


def test_target_networks_and_ten_particles_are_presets_of_the_mujoco_tasks():
    def given(preset: str, algo: str, env: str) -> dict:
        config = ALGORITHMS[algo].config
        return vars(replace(config, **fields_of(preset, "algorithm", config, env)))

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

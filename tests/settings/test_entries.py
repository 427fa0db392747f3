"""Presets and entries: which settings hold for an environment and an algorithm."""

import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument
from s2ac.settings import RunConfig, names_of, resolve
from s2ac.settings.entries import EVERY, PRESETS, entry_of


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

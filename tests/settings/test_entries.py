"""Presets and entries: which settings hold for an environment and an algorithm."""

import pytest

from s2ac.algorithms import ALGORITHMS
from s2ac.errors import InvalidArgument
from s2ac.settings import RunConfig, names_of, resolve
from s2ac.settings.entries import EVERY, MAXENT, MULTIGOAL, POINTMAZE, PRESETS, STEIN, entry_of


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "env", ["multigoal", "multigoal-far", "Hopper-v5", "Ant-v4", "Pendulum-v1", "playground:CheetahRun"]
)
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


def test_s2acs_cheap_particles_on_mujoco_are_s2acs_alone():
    for name, value in {"guide": (128, 128), "num_flows": 3, "num_particles": 4, "num_steps": 1}.items():
        assert getattr(resolve("Hopper-v5", "s2ac").algorithm, name) == value
        assert getattr(resolve("Hopper-v5", "s2ac-phi").algorithm, name) != value


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "env", [*MULTIGOAL, *POINTMAZE, "Hopper-v5", "Humanoid-v4", "Pendulum-v1", "playground:CheetahRun"]
)
def test_a_temperature_for_raw_rewards_is_never_one_for_scaled_rewards(preset, env):
    """Beside categorical critics it starts at 0.01, or as the user says; one that an entry fixes is refused, but for the preset's that has them."""
    asked = {"categorical": True, "batch_norm": False, "frequency": None, "hidden": (8,)}
    for algo in MAXENT:
        given = asked | ({"weighted": False} if algo in STEIN else {})
        plain = resolve(env, algo, preset).algorithm
        found = lambda more, a=algo, g=given: resolve(env, a, preset, {**g, **more}).algorithm  # noqa: E731
        if plain.learn_alpha or plain.categorical:
            assert found({}).alpha == 0.01
        else:
            with pytest.raises(
                InvalidArgument, match=r"^categorical = True: must have --alpha 0.01 or --learn-alpha beside it.*$"
            ):
                found({})
        assert found({"alpha": 0.3}).alpha == 0.3
        assert found({"learn_alpha": True}).alpha == 0.01
        assert found({"categorical": False}).alpha == plain.alpha


@pytest.mark.parametrize("algo", STEIN)
def test_steps_are_as_long_in_scaled_rewards_as_in_raw_ones(algo):
    """On the MuJoCo tasks rewards come to be divided by roughly 100: for the same log-density Q/α so is α, in whose units a step is."""
    plain, scaled = (resolve("Hopper-v5", algo, preset).algorithm for preset in ("default", "categorical"))
    assert plain.step_size * 0.2 == pytest.approx(scaled.step_size * 0.2 / 100)
    assert scaled.max_jacobian_norm == plain.max_jacobian_norm

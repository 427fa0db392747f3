"""Exported policies: explicit noise is the key's noise, files agree with JAX, bad files are removed and named."""

import json
import os
import re
import runpy
import sys
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import s2ac
from s2ac.agent import Agent
from s2ac.algorithms import ALGORITHMS
from s2ac.cli.main import main
from s2ac.deploy import export as module
from s2ac.deploy.export import check_outputs, export, load_onnx, policy_of
from s2ac.deploy.noise import Unexportable, noise_of, with_noise
from s2ac.deploy.weights import load_weights
from s2ac.errors import DiskError, InvalidArgument, S2acError
from s2ac.settings import RunConfig
from s2ac.types import EnvSpec

EXAMPLES = Path(__file__).parents[1] / "examples"
SIZES = {"Hopper": (11, 3), "Humanoid": (348, 17)}
SMALL = {"hidden": (8,), "capacity": 10, "num_envs": 1}
SAMPLER = {"num_particles": 3, "num_references": 4, "num_steps": 2}


def still(observation_size, action_size):
    """An environment of given sizes, with bounds that are neither symmetric nor one."""

    class Still(gymnasium.Env):
        observation_space = spaces.Box(-10, 10, (observation_size,), np.float32)
        action_space = spaces.Box(
            np.linspace(-3, -0.1, action_size, dtype=np.float32), np.full(action_size, 2, np.float32)
        )

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(observation_size, np.float32), {}

    return Still


@pytest.fixture(scope="module")
def hopper():
    return Agent(still(*SIZES["Hopper"]), "s2ac-amortized", **SAMPLER, **SMALL)


@pytest.fixture(scope="module")
def humanoid():
    return Agent(still(*SIZES["Humanoid"]), "s2ac-amortized", **SAMPLER, **SMALL)


@pytest.fixture(scope="module")
def sac():
    return Agent("multigoal", "sac", **SMALL)


@pytest.mark.parametrize(
    "algo", [pytest.param("s2ac-amortized", marks=pytest.mark.slow), "sac-nf", "sql", "ddpg", "ppo"]
)
def test_with_the_noise_of_a_key_the_policy_is_that_of_the_key(algo):
    """Every algorithm and rule that draws Gaussian numbers or signs; the state is an argument too."""
    entry = ALGORITHMS[algo]
    fields = SAMPLER if algo.startswith("s2ac") else {}
    config = type(entry.config)(**{**vars(entry.config), "hidden": (4,), **fields})
    algorithm = entry.make(EnvSpec(5, (-1.0, 0.0), (2.0, 1.0)), config)
    state, observation, key = algorithm.init(jax.random.key(0)), jnp.ones(5), jax.random.key(1)
    for rule in algorithm.rules:
        act = lambda key, state, observation, rule=rule: algorithm.act(key, state, observation, rule)  # noqa: E731
        explicit, size = with_noise(act, key, state, observation)
        explicit = jax.jit(explicit)
        noise = jax.jit(lambda *given, act=act: noise_of(act, *given))(key, state, observation)
        assert noise.shape == (size,)
        wanted = jax.jit(act)(key, state, observation)
        np.testing.assert_allclose(explicit(state, observation, noise), wanted, rtol=1e-4, atol=1e-5)
        if size:
            assert not np.allclose(explicit(state, observation, -noise), wanted, atol=1e-3)


@pytest.mark.parametrize(
    "select", [*(pytest.param(rule, marks=pytest.mark.slow) for rule in ("sample", "argmax")), "amortized"]
)
def test_onnx_agrees_at_the_size_of_hopper(hopper, tmp_path, select):
    made = export(hopper, tmp_path / "policy.onnx", "onnx", select)
    assert made.max_difference <= 1e-5
    assert made.noise_size == {"sample": 7 * 3, "argmax": 7 * 3, "amortized": 1 + 3}[select]


@pytest.mark.parametrize("select", ["argmax", "amortized"])
@pytest.mark.slow
def test_stablehlo_agrees_at_the_size_of_humanoid(humanoid, tmp_path, select):
    made = export(humanoid, tmp_path / "policy.stablehlo", "stablehlo", select, batch=500)
    assert made.max_difference <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("format", ["onnx", "stablehlo"])
@pytest.mark.parametrize("algo", ["sac", "s2ac", "s2ac-amortized"])
def test_files_agree_with_the_default_sampler(size, format, algo, tmp_path):
    agent = Agent(still(*SIZES[size]), algo, **{**SMALL, "hidden": (64, 64)})
    for select in {"sac": ("mean", "sample"), "s2ac": ("argmax", "sample")}.get(algo, ("amortized",)):
        made = export(agent, tmp_path / "policy", format, select)
        assert made.max_difference <= 1e-5
        assert made.ties <= 10


def test_a_choice_in_the_file_has_the_law_of_the_choice():
    """Gumbel numbers from normal ones: over 20,000 draws each of three is chosen in proportion to its weight."""
    weights = np.array([0.2, 0.3, 0.5])
    choose = lambda key, logits: jnp.eye(3)[jax.random.categorical(key, logits)]  # noqa: E731
    explicit, size = with_noise(choose, jax.random.key(0), jnp.zeros(3))
    assert size == 6
    noise = np.random.default_rng(0).standard_normal((20_000, size)).astype(np.float32)
    found = jax.jit(jax.vmap(explicit, (None, 0)))(jnp.log(weights), noise).mean(axis=0)
    np.testing.assert_allclose(found, weights, atol=0.015)


def test_fixed_noise_makes_the_file_deterministic(hopper, tmp_path):
    made = export(hopper, tmp_path / "policy.onnx", "onnx", "amortized", noise_seed=3, batch=2)
    assert made.noise_size == 0
    run, observation = load_onnx(made.file), np.ones((2, 11), np.float32)
    np.testing.assert_array_equal(run(observation), run(observation))
    policy = policy_of(hopper, "amortized")
    noise = np.random.default_rng(3).standard_normal(4).astype(np.float32)
    np.testing.assert_allclose(run(observation)[0], policy.function(observation[0], noise), atol=1e-5)


@pytest.mark.parametrize(
    ("algo", "selects"),
    [("sac", ("mean", "sample")), ("ppo", ("mean",)), ("sql", ("sample",)), ("s2ac-amortized", ("amortized",))],
)
def test_weights_run_by_numpy_alone(algo, selects, tmp_path):
    """Checked by the exporter's own numpy; the example, which imports nothing of this package, gives the same."""
    agent = Agent(
        still(5, 2),
        algo,
        **{**SMALL, **({"horizon": 8, "normalize": True, "capacity": RunConfig().capacity} if algo == "ppo" else {})},
    )
    example = runpy.run_path(str(EXAMPLES / "run_weights.py"))
    observation, noise = (
        np.linspace(-2, 2, 5).astype(np.float32),
        np.array([0.3, -1.0, 0.7], np.float32)[: 3 if algo == "s2ac-amortized" else 2],
    )
    for select in selects:
        made = export(agent, tmp_path / "policy.safetensors", "weights", select)
        assert made.max_difference <= 1e-5
        about = json.loads((tmp_path / "policy.json").read_text())
        about |= {name: np.array(about[name], np.float32) for name in ("action_low", "action_high")}
        found = example["act"](example["read_safetensors"](made.file), about, observation, noise)
        np.testing.assert_allclose(found, load_weights(made.file)(observation, noise), atol=1e-6)
        if select == "mean":
            np.testing.assert_allclose(found, agent.predict(observation, "mean"), atol=1e-5)
    export(agent, tmp_path / "policy.safetensors", "weights")  # the default is a rule that weights can hold
    assert json.loads((tmp_path / "policy.json").read_text())["select"] == selects[-1]


def test_what_cannot_be_exported_is_one_line(sac, hopper, tmp_path, monkeypatch):
    file = tmp_path / "policy"
    with pytest.raises(Unexportable, match="is more than one network: use --select amortized, or --format onnx"):
        export(hopper, file, "weights", "argmax")
    with pytest.raises(Unexportable, match="the rule 'mean' of 's2ac' is more than one network: use --format onnx"):
        export(Agent(still(*SIZES["Hopper"]), "s2ac", num_flows=1, **SAMPLER, **SMALL), file, "weights", "mean")
    with pytest.raises(Unexportable, match="draws noise that can't be made from Gaussian numbers"):
        with_noise(lambda key: jax.random.uniform(key, (2,)), jax.random.key(0))
    with pytest.raises(InvalidArgument, match="did you mean 'onnx'"):
        export(sac, file, "onx")
    with pytest.raises(InvalidArgument, match="select = 'amortized': must be one of"):
        export(sac, file, "onnx", "amortized")
    monkeypatch.setattr("s2ac.deploy.noise.MAX_OPERATIONS", 5)
    with pytest.raises(Unexportable, match="more than 5: train with a smaller num_steps"):
        export(sac, file, "onnx", "mean")
    monkeypatch.undo()
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(Unexportable, match="more than ONNX's 2 GB: use --format weights"):
        export(sac, file, "onnx", "mean")
    monkeypatch.setitem(sys.modules, "jax2onnx", None)
    with pytest.raises(InvalidArgument, match=r"pip install 's2ac\[onnx\]'"):
        export(sac, file, "onnx", "mean")
    assert not list(tmp_path.iterdir())


def test_a_file_that_differs_is_removed(sac, tmp_path, monkeypatch):
    good = module.load_stablehlo
    monkeypatch.setattr(module, "load_stablehlo", lambda path: lambda *given: good(path)(*given) + 2e-5)
    with pytest.raises(Unexportable, match="differs from the JAX policy by 2e-05 on 1000 of 1000 observations"):
        export(sac, tmp_path / "policy.stablehlo", "stablehlo", "mean", batch=1000)
    monkeypatch.setattr(module, "load_stablehlo", lambda path: lambda *given: good(path)(*given)[0])
    with pytest.raises(Unexportable, match=r"gives shape \(2,\), not \(1000, 2\)"):
        export(sac, tmp_path / "policy.stablehlo", "stablehlo", "mean", batch=1000)
    assert not list(tmp_path.iterdir())


def test_an_older_file_stays_until_the_new_one_is_whole_and_good(sac, tmp_path, monkeypatch):
    file = tmp_path / "policy.safetensors"
    export(sac, file, "weights", "mean")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    good = module.load_weights
    with monkeypatch.context() as patch:
        patch.setattr(module, "load_weights", lambda path: lambda *given: good(path)(*given) + 2e-5)
        with pytest.raises(Unexportable, match="nothing was written"):
            export(sac, file, "weights", "mean")
        patch.setattr(
            module, "write_weights", lambda policy, path, *_: path.write_bytes(b"half") + os.truncate("/dev/full", 0)
        )
        with pytest.raises(DiskError, match="cannot write"):
            export(sac, file, "weights", "mean")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    about = json.loads((tmp_path / "policy.json").read_text())
    export(sac, file, "weights", "sample")
    (tmp_path / "policy.json").write_text(json.dumps(about))
    load_weights(file)  # the same network: its bytes are the same
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    with pytest.raises(S2acError, match=r"is not the file that policy\.json describes: export it again"):
        load_weights(file)
    with pytest.raises(InvalidArgument, match="the description of the weights gets that name"):
        export(sac, tmp_path / "policy.json", "weights", "mean")


def test_only_answers_that_the_policy_itself_gives_nearby_count_as_ties():
    """A policy that jumps: rounding may fall on either side, but an answer from neither side is an error."""
    jump = module.Policy(lambda observation, noise: jnp.sign(observation[:1] - 0.25), 0, 1, np.ones(1))
    observations = np.random.default_rng(0).standard_normal((1000, 1)).astype(np.float32)
    edge = float(observations[17, 0])
    jump = jump._replace(function=lambda observation, noise: jnp.where(observation >= edge, 1.0, -1.0))
    exact = lambda x, _: np.where(x >= edge, 1.0, -1.0)  # noqa: E731
    other_side = lambda x, _: np.where(x > edge, 1.0, -1.0)  # noqa: E731
    wrong = lambda x, _: np.where(x == edge, 0.5, exact(x, _))  # noqa: E731
    assert check_outputs(jump, exact, 1000) == (0.0, 0)
    assert check_outputs(jump, other_side, 1000) == (0.0, 1)
    with pytest.raises(Unexportable, match="differs"):
        check_outputs(jump, wrong, 1000)
    noisy = module.Policy(lambda observation, noise: jnp.tanh(noise), 1, 1, np.ones(1))
    assert check_outputs(noisy, lambda _, noise: np.tanh(noise), 1000)[1] == 0
    with pytest.raises(Unexportable, match="differs"):
        check_outputs(noisy, lambda _, noise: 0 * noise, 1000)


def test_command_and_the_deployed_file_in_a_gymnasium_loop(sac, tmp_path, capsys):
    """Export by the command line, run with onnxruntime alone: the same returns as the agent's own."""
    directory = sac.save(tmp_path / "agent")
    assert main(["export", str(directory), "--format", "onnx", "--select", "mean"]) == 0
    assert "differs from the JAX policy by at most" in capsys.readouterr().out
    example = runpy.run_path(str(EXAMPLES / "deploy_onnx.py"))
    returns = example["main"](str(directory / "policy-mean.onnx"), "s2ac/Multigoal-v0", episodes=2)
    np.testing.assert_allclose(returns, sac.evaluate(2, "mean").returns[0], rtol=1e-4)
    assert main(["export", str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("algo", "rule", "episodes"), [("sac", "mean", 5), ("s2ac-amortized", "amortized", 400)])
def test_a_trained_policy_reaches_the_same_return_in_onnxruntime(algo, rule, episodes, tmp_path, monkeypatch):
    """A shipped agent, exported and played by the example; docs/deploy.md has the numbers."""
    monkeypatch.chdir(tmp_path)
    agent = s2ac.load(f"multigoal/{algo}")
    assert main(["export", f"multigoal/{algo}", "--format", "onnx", "--select", rule]) == 0
    example = runpy.run_path(str(EXAMPLES / "deploy_onnx.py"))
    there = np.array(example["main"](f"policy-{rule}.onnx", "s2ac/Multigoal-v0", episodes=episodes))
    here = agent.evaluate(episodes, rule).returns[0]
    if rule == "mean":
        np.testing.assert_allclose(there, here, rtol=1e-4)
    error = np.hypot(there.std(), here.std()) / np.sqrt(episodes)
    assert abs(there.mean() - here.mean()) <= 3 * error + 1e-2
    page = (EXAMPLES.parent / "docs" / "deploy.md").read_text(encoding="utf-8")
    told = re.search(rf"\| `multigoal/{algo}` \| `{rule}` \| {episodes} \| (\S+) \| (\S+) \|", page)
    assert told is not None
    np.testing.assert_allclose(
        [float(told[1]), float(told[2])], [there.mean(), here.mean()], atol=0.2, err_msg="docs/deploy.md"
    )

"""The one network that a selection rule runs as plain arrays with a description, and numpy that runs them."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from s2ac.algorithms.amortized import COMPONENTS
from s2ac.algorithms.ppo import folded
from s2ac.deploy.noise import Unexportable
from s2ac.deploy.source import Trained
from s2ac.errors import S2acError
from s2ac.nets.mlp import Layer
from s2ac.runs.files import SMALL, memory_bytes, parse_json, read_regular
from s2ac.runs.manifest import digest

Runner = Callable[[np.ndarray, np.ndarray], np.ndarray]


def write_weights(policy: Any, path: Path, batch: int, about: dict[str, Any]) -> list[Path]:
    """The arrays, and beside them the description."""
    from safetensors.numpy import save

    arrays, description = network_of(*about["layers"])
    facts = {name: about[name] for name in ("s2ac", "env", "algo", "select")}
    data = save(arrays)
    path.write_bytes(data)
    described = path.with_suffix(".json")
    whole = {**facts, "sha256": hashlib.sha256(data).hexdigest(), **description}
    described.write_text(json.dumps({**whole, "own_sha256": digest(whole)}, indent=1) + "\n", encoding="utf-8")
    return [path, described]


def layers_of(agent: Trained, select: str, seed_index: int = 0) -> tuple[Any, str]:
    """The layers of the one network that a rule runs, and what follows them; no layers where it runs more."""
    state, algo = agent.policy_state(seed_index), agent.algo
    if select == "amortized":
        return state.auxiliary, "mixture"
    if algo == "sql" and select == "sample":
        return state.actor, "spread"
    if algo == "ddpg" and select == "mean":
        return state.actor, "squash"
    if algo == "ppo" and select == "mean":
        return folded(state.params[0], state.scale), "clip"
    if (algo == "sac" and select in ("sample", "mean")) or (
        algo.startswith("s2ac") and select == "mean" and not agent.algorithm_config.num_flows
    ):
        return state.actor, "gaussian"
    return None, ""


def rules_of_weights(agent: Trained) -> list[str]:
    """The rules that can be written as weights, the one that draws from the policy first."""
    rules = [rule for rule in ("sample", "amortized", "mean") if rule in agent.algorithm.rules]
    return [rule for rule in rules if layers_of(agent, rule)[0]]


def network_of(
    agent: Trained, select: str, seed_index: int, noise_seed: int | None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The one network that a rule runs, its arrays by name, and how to run it: see `run_network`."""
    config = agent.algorithm_config
    layers, head = layers_of(agent, select, seed_index)
    if not layers:
        can = "".join(f"--select {rule}, or " for rule in rules_of_weights(agent)[:1])
        raise Unexportable(
            f"the rule {select!r} of {agent.algo!r} is more than one network: use {can}--format onnx or stablehlo"
        )
    if noise_seed is not None:
        raise Unexportable("noise_seed: weights take their noise as an input; use --format onnx or stablehlo")
    arrays: dict[str, np.ndarray] = {}
    described = []
    for index, layer in enumerate(layers):
        assert isinstance(layer, Layer)
        last = index == len(layers) - 1
        arrays |= {f"{index}.weight": np.array(layer.weight), f"{index}.bias": np.array(layer.bias)}
        shape = list(layer.weight.shape)
        described.append({"layer": index, "shape": shape, "activation": None if last else config.activation})
    drawn = "gaussian" if select == "sample" and head == "gaussian" else "input" if head == "spread" else None
    description: dict[str, Any] = {"layers": described, "head": head, "noise": drawn}
    if head == "mixture":  # the first of 1 + D normal numbers picks the component
        description |= {"noise": "mixture", "components": COMPONENTS}
    if head in ("gaussian", "mixture"):
        description |= {"min_std": config.min_std, "max_std": config.max_std}
    description |= {"action_low": agent.spec.action_low, "action_high": agent.spec.action_high}
    return arrays, description


NUMPY_ACTIVATIONS: dict[Any, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
    None: lambda x: x,
}


def run_network(
    arrays: dict[str, np.ndarray], about: dict[str, Any], observation: np.ndarray, noise: Any
) -> np.ndarray:
    """Run exported weights by numpy alone; examples/run_weights.py is the same without this package."""
    value = np.concatenate([observation, noise], axis=-1) if about["noise"] == "input" else observation
    for layer in about["layers"]:
        value = value @ arrays[f"{layer['layer']}.weight"] + arrays[f"{layer['layer']}.bias"]
        value = NUMPY_ACTIVATIONS[layer["activation"]](value)
    low, high = np.array(about["action_low"], np.float32), np.array(about["action_high"], np.float32)
    if about["head"] == "mixture":
        value = _of_mixture(np.atleast_2d(value), about, np.atleast_2d(noise)).reshape(*value.shape[:-1], -1)
    elif about["head"] in ("gaussian", "spread"):
        value, raw = np.split(value, 2, axis=-1)
        if about["noise"] == "input":
            wide = np.sqrt(2 / np.pi) * (noise + 0.044715 * noise**3)
            value = value + np.logaddexp(0, raw) / np.log(2) * wide
        elif about["noise"] == "gaussian":
            value = value + _std(raw, about) * noise
    share = value if about["head"] == "clip" else np.tanh(value)
    return np.clip(0.5 * ((1 + share) * high + (1 - share) * low), low, high)


def _std(raw: np.ndarray, about: dict[str, Any]) -> np.ndarray:
    least, most = np.log(about["min_std"]), np.log(about["max_std"])
    return np.exp(least + 0.5 * (most - least) * (np.tanh(raw) + 1))


def _of_mixture(value: np.ndarray, about: dict[str, Any], noise: np.ndarray) -> np.ndarray:
    """Of each row's mixture the component that its first number picks, moved by the others."""
    num = about["components"]
    weight = np.exp(value[:, :num] - value[:, :num].max(axis=1, keepdims=True))
    passed = (
        np.vectorize(math.erf)(noise[:, :1] / 2**0.5) * 0.5 + 0.5 > np.cumsum(weight, axis=1) / weight.sum(1)[:, None]
    )
    rows, chosen = np.arange(len(value)), np.minimum(passed.sum(axis=1), num - 1)
    means, raw = np.split(value[:, num:].reshape(len(value), 2 * num, -1), 2, axis=1)
    return means[rows, chosen] + _std(raw[rows, chosen], about) * noise[:, 1:]


def load_weights(path: Path) -> Runner:
    """Exported weights as a function of a batch; refuses weights that the description is not of."""
    from safetensors.numpy import load

    try:
        data = read_regular(path, memory_bytes())
        about = parse_json(read_regular(path.with_suffix(".json"), SMALL))
    except OSError as error:
        raise S2acError(f"cannot read {error.filename}: {error.strerror}") from error
    except ValueError:
        about = None
    if not isinstance(about, dict) or about.pop("own_sha256", None) != digest(about):
        raise S2acError(f"{path.with_suffix('.json')} is damaged: export it again")
    if about["sha256"] != hashlib.sha256(data).hexdigest():
        raise S2acError(f"{path} is not the file that {path.with_suffix('.json').name} describes: export it again")
    arrays = load(data)
    return lambda observation, noise: run_network(arrays, about, observation, noise)

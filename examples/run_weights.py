"""Exported weights, run by numpy alone: `s2ac export RUN --format weights --select mean --out policy.safetensors`."""

import json
import math
import sys
from pathlib import Path

import numpy as np

ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "silu": lambda x: x / (1 + np.exp(-x)),
               "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), None: lambda x: x}  # fmt: skip


def read_safetensors(file):
    data = Path(file).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    pieces = {name: (body[slice(*h["data_offsets"])], h["shape"]) for name, h in header.items() if name[0] != "_"}
    return {name: np.frombuffer(piece, "<f4").reshape(shape) for name, (piece, shape) in pieces.items()}


def std_of(about, raw):
    low, high = np.log(about["min_std"]), np.log(about["max_std"])
    return np.exp(low + 0.5 * (high - low) * (np.tanh(raw) + 1))


def act(arrays, about, observation, noise=None):
    value = np.concatenate([observation, noise]) if about["noise"] == "input" else observation
    for layer in about["layers"]:
        value = value @ arrays[f"{layer['layer']}.weight"] + arrays[f"{layer['layer']}.bias"]
        value = ACTIVATIONS[layer["activation"]](value)
    if about["head"] == "mixture":  # S²AC's amortised network: the first number picks a Gaussian, the others move in it
        num = about["components"]
        shares = np.exp(value[:num] - value[:num].max())
        chosen = min(int((0.5 + 0.5 * math.erf(noise[0] / 2**0.5) > np.cumsum(shares) / shares.sum()).sum()), num - 1)
        means, raw = np.split(value[num:].reshape(2 * num, -1), 2)
        value = means[chosen] + std_of(about, raw[chosen]) * noise[1:]
    elif about["head"] in ("gaussian", "spread"):
        value, raw = np.split(value, 2)
        if about["noise"] == "input":
            value = value + np.logaddexp(0, raw) / np.log(2) * np.sqrt(2 / np.pi) * (noise + 0.044715 * noise**3)
        elif about["noise"] == "gaussian":
            value = value + std_of(about, raw) * noise
    share = np.clip(value, -1, 1) if about["head"] == "clip" else np.tanh(value)
    return 0.5 * ((1 + share) * about["action_high"] + (1 - share) * about["action_low"])


if __name__ == "__main__":
    file = Path(sys.argv[1])
    about = json.loads(file.with_suffix(".json").read_text())
    about |= {name: np.array(about[name], np.float32) for name in ("action_low", "action_high")}
    arrays = read_safetensors(file)
    noise = np.zeros(len(about["action_low"]) + (about["noise"] == "mixture"), np.float32)
    first = about["layers"][0]["shape"][0] - (len(noise) if about["noise"] == "input" else 0)
    print(act(arrays, about, np.zeros(first, np.float32), noise))

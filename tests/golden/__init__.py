"""Numbers that must not move without a word: parameters after ten updates, and what the shipped agents do.

Each array is kept as its shape, its norm and three entries, without a name: a field may be renamed, a number may not move.
`PYTHONPATH=tests python -m golden` writes the files again.
"""

import dataclasses
import hashlib
import json
import os
import platform
import re
from pathlib import Path

import jax
import numpy as np

import s2ac
from s2ac.algorithms import ALGORITHMS
from s2ac.flows import FLOWS
from s2ac.runs.trees import name_of
from s2ac.types import EnvSpec

HERE = Path(__file__).parent
UPDATES, AGENTS, NAMES = HERE / "updates.json", HERE / "agents.json", HERE / "names.json"
SHIPPED = sorted(
    path.parent.relative_to(HERE.parents[1] / "results" / "agents").as_posix()
    for path in (HERE.parents[1] / "results" / "agents").glob("*/*/run.json")
)


def write(path, content):
    """JSON with a line for each innermost list."""
    text = json.dumps(content, indent=0)
    path.write_text(re.sub(r"\[[^][]*\]", lambda found: found[0].replace("\n", ""), text) + "\n", encoding="utf-8")


def short(values):
    """Eight digits: more than any comparison asks for."""
    return [float(f"{value:.8g}") for value in values]


def machine():
    """What the last bits depend on."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
    flags = [os.environ.get(name, "") for name in ("NPROC", "XLA_FLAGS")]
    return [platform.machine(), cpu.partition(":")[2].strip(), jax.__version__, np.__version__, *flags]


def summary(tree):
    """Arrays of a tree in an order that no name decides: shape, norm, three entries; and the SHA-256 of all their bytes."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(tree)]
    rows = sorted(
        [list(a.shape), short([np.linalg.norm(a), *a.ravel()[[0, a.size // 2, -1]]])] for a in leaves if a.size
    )
    sha = hashlib.sha256(b"".join(sorted(np.ascontiguousarray(a).tobytes() for a in leaves)))
    return {"arrays": rows, "sha256": sha.hexdigest()}


def names():
    """What the arrays of every algorithm are called in checkpoints: whoever renames a field keeps its name there (`trees.ON_DISK`)."""
    spec = EnvSpec(3, (-1.0,), (1.0,))
    variants = {name: (name, {}) for name in ALGORITHMS}
    variants |= {"sac, batch_norm": ("sac", {"batch_norm": True}), "ppo, normalize": ("ppo", {"normalize": True})}
    variants |= {"sac, categorical": ("sac", {"categorical": True})}
    variants |= {"s2ac, guide and flows": ("s2ac", {"guide": (4, 4), "num_flows": 2})}
    variants |= {f"sac-nf, {flow}": ("sac-nf", {"flow": flow}) for flow in FLOWS}
    found = {}
    for label, (algo, fields) in variants.items():
        config = dataclasses.replace(ALGORITHMS[algo].config, hidden=(4, 4), **fields)
        state = jax.eval_shape(ALGORITHMS[algo].make(spec, config).init, jax.random.key(0))
        paths = jax.tree_util.tree_flatten_with_path({"algorithm": state})[0]
        found[label] = sorted(name_of(path) for path, _ in paths)
    return found


def predictions(name):
    """Actions of a shipped agent by every rule it knows, at three places of its arena."""
    places = np.array([[0.0, 0.0], [3.0, 1.0], [-2.0, -2.0]], np.float32)
    agent = s2ac.load(name)
    rules = [rule for rule in agent.algorithm.rules if rule != "explore"]
    return {rule: np.asarray(agent.predict(places, rule, draw=1), np.float64).tolist() for rule in rules}

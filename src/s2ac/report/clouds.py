"""Action clouds: what the trained policy does at states of its own episodes, from the newest checkpoint.

Reads only: `open_run` would cut metrics.jsonl back to the checkpoint and set replay rows aside, as a resume must, and
so damage a run that is going on. The replay is not loaded.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms import Algorithm
from s2ac.envs.gymnasium.adapter import CUSTOM, module_and_id
from s2ac.envs.registry import entry_of, maker_of
from s2ac.errors import InvalidArgument, S2acError
from s2ac.runs.about import configs_of
from s2ac.runs.checkpoint import names
from s2ac.runs.policy import load_policy
from s2ac.training.evaluate import make_player
from s2ac.types import Array, EnvSpec, Key

QUICK = {"xla_backend_optimization_level": 0}
"""What is called a few hundred times at most: quick compilation matters more than quick code."""

NUM_STATES = 8
EPISODES = 6
NUM_ACTIONS = 64
"""Actions that are drawn at a state, and particles that they are chosen among."""

GRID = {1: 121, 2: 37}
"""Points per action axis of the Q-landscape, by the action's dimension; more dimensions get pairwise plots."""

MAX_STEPS = 400
"""Steps after which an evaluation episode of a Gymnasium environment has given states enough."""

EXECUTED = "sample"
"""The selection rule of the episodes: the policy itself, of every algorithm."""

MOST = 4096
"""Particles, references or steps beyond which a policy is not played: run.json may say anything."""


def collect_clouds(directory: Path, about: dict[str, Any]) -> dict[str, Any]:
    """States from evaluation episodes of the first seed, with what is executed there, the particles and a grid of Q."""
    name = about["env"]
    check_known(name)
    check_size(configs_of(about, directory)[0])
    if not names(directory):
        raise S2acError("the run has no checkpoint yet")
    policy = load_policy(directory)
    algorithm, spec, config, seed = policy.algorithm, policy.spec, policy.algorithm_config, policy.config.first_seed
    states = jax.tree.map(lambda leaf: leaf[:1], policy.states)
    player = make_player(name, None, algorithm, spec, replace(policy.config, seeds=1, workers=0), QUICK)
    played = player.play(states, (EXECUTED,), EPISODES if entry_of(name) else 1, MAX_STEPS)[EXECUTED]
    player.close()
    path, actions, length = (np.asarray(field[0]) for field in (played.observation, played.action, played.length))
    visited = [(episode, time) for episode, most in enumerate(length) for time in range(most)]
    visited.sort(key=lambda place: place[1])  # by time, as the states are spread
    places = [visited[index] for index in spread(len(visited), NUM_STATES)]
    observations = np.stack([path[place] for place in places])
    proposes = about["algo"].startswith("s2ac") and config.num_particles > 1
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), states)
    drawn = make_look(algorithm, spec, seed, proposes)(state, observations)
    shown = []
    for index, (episode, time) in enumerate(places):
        there = {field: rounded(values[index]) for field, values in drawn.items()}
        there["executed"][0] = rounded(actions[episode, time])  # what it did there in the episode
        shown.append({"episode": episode, "time": time, "observation": rounded(observations[index]), **there})
    return {
        "seed": seed,
        "step": policy.step,
        "rule": EXECUTED,
        "low": list(spec.action_low),
        "high": list(spec.action_high),
        "set": int(config.num_particles) if proposes else 1,
        "states": shown,
        "paths": [rounded(each[:most]) for each, most in zip(path, length, strict=True)]
        if spec.observation_size == 2
        else None,
    }


OURS = module_and_id("s2ac/")[0]
"""The module of this package that registers environments."""


def check_known(name: str) -> None:
    """Refuse an environment that only the user's own code can make: reading a run imports nothing of theirs."""
    module = module_and_id(name)[0]
    own = name.startswith(CUSTOM) or (module not in ("", OURS) and module not in sys.modules)
    if not own and entry_of(name) is None:
        try:
            maker_of(name)
        except InvalidArgument:
            own = True
    if own:
        raise S2acError(f"the environment {name!r} is not known to the report, which therefore cannot play it")


def check_size(config: Any) -> None:
    """Refuse settings by which a policy would take all memory or time."""
    for name in ("num_particles", "num_references", "num_steps", "num_value_samples"):
        if getattr(config, name, 0) > MOST:
            raise S2acError(f"{name} = {getattr(config, name)}: the report plays policies with at most {MOST}")


def spread(length: int, num: int) -> list[int]:
    """Up to `num` places of a list, its first, its last and others evenly between."""
    return [int(index) for index in np.unique(np.linspace(0, length - 1, num).round())]


def executed(algorithm: Algorithm, spec: EnvSpec) -> Callable[[Key, Any, Array], Array]:
    """One action as the environment gets it."""
    low, high = np.array(spec.action_low, np.float32), np.array(spec.action_high, np.float32)
    return lambda key, state, observation: jnp.clip(algorithm.act(key, state, observation, EXECUTED), low, high)


def make_look(algorithm: Algorithm, spec: EnvSpec, seed: int, proposes: bool) -> Callable[[Any, np.ndarray], Any]:
    """State and observations `[S, O]` to what is drawn there: executed actions with their Q, a grid of Q, the entropy.

    Where the policy `proposes` particles to choose from, these too, with their log-density and Q.
    """
    grid, one_action = grid_of(spec), executed(algorithm, spec)

    def look(key: Key, state: Any, observation: Array) -> dict[str, Array]:
        key_executed, key_cloud = jax.random.split(key)
        actions = jax.vmap(one_action, (0, None, None))(jax.random.split(key_executed, NUM_ACTIONS), state, observation)
        out = {"executed": actions}
        cloud = algorithm.cloud(key_cloud, state, observation, NUM_ACTIONS) if algorithm.cloud else None
        if cloud:
            out["entropy"] = -jnp.mean(cloud.log_prob)
        if cloud and proposes:
            out |= {"particles": cloud.action, "log_prob": cloud.log_prob}
        if value := algorithm.value:
            q = jax.vmap(lambda one: value(state, observation, one))
            judged = {"executed_q": actions, "q": out.get("particles"), "grid": grid}
            out |= {name: q(points) for name, points in judged.items() if points is not None}
        return out

    def all_of_them(state: Any, observations: Array) -> dict[str, Array]:
        keys = jax.random.split(jax.random.key(seed + 1), len(observations))
        return jax.vmap(look, (0, None, 0))(keys, state, observations)

    compiled = jax.jit(all_of_them, compiler_options=QUICK)
    return lambda state, observations: jax.device_get(compiled(state, observations))


def grid_of(spec: EnvSpec) -> np.ndarray | None:
    """Actions `[G, D]` over the box, the first coordinate running fastest; None in more than two dimensions."""
    num = GRID.get(spec.action_size)
    if num is None:
        return None
    axes = [np.linspace(low, high, num) for low, high in zip(spec.action_low, spec.action_high, strict=True)]
    return np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="xy")], axis=1).astype(np.float32)


def rounded(values: Any) -> Any:
    """Nested lists with four significant digits: the page is a picture, not a record."""
    values = np.asarray(values)
    if values.ndim:
        return [rounded(part) for part in values]
    return float(f"{float(values):.4g}")

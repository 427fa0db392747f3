"""Action clouds: what the trained policy does at states of its own episodes, from the newest checkpoint.

Reads only: `open_run` would cut metrics.jsonl back to the checkpoint and set replay rows aside, as a resume must, and
so damage a run that is going on. The replay is not loaded.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from s2ac.algorithms import ALGORITHMS, ActionSample, Algorithm
from s2ac.envs.gymnasium.adapter import CUSTOM, HostEnvs, module_and_id
from s2ac.envs.registry import ENVIRONMENTS, maker_of, probe
from s2ac.errors import S2acError
from s2ac.runs.about import configs_of
from s2ac.runs.checkpoint import DamagedCheckpoint, arrays_to_tree, read_manifest
from s2ac.training.evaluate import EVALUATION
from s2ac.types import Array, EnvSpec, Key

NUM_STATES = 8
EPISODES = 6
NUM_PARTICLES = 64
GRID = {1: 121, 2: 37}
"""Points per action axis of the Q-landscape, by the action's dimension; more dimensions get pairwise plots."""

MAX_STEPS = 400
"""Steps after which an evaluation episode of a Gymnasium environment has given states enough."""


def collect_clouds(directory: Path, about: dict[str, Any]) -> dict[str, Any]:
    """States from evaluation episodes of the first seed, with particles, their density and value, and a grid of Q."""
    module = module_and_id(about["env"])[0]
    unknown = module and not module.startswith("s2ac.") and module not in sys.modules  # reading a run runs nothing
    if about["env"].startswith(CUSTOM) or unknown:
        raise S2acError("the environment is one of your own, and the report cannot play it")
    config, run_config = configs_of(about, directory)
    spec = probe(about["env"])[0]
    algorithm, seed = ALGORITHMS[about["algo"]].make(spec, config), run_config.first_seed
    step, state = load_state(directory, algorithm, run_config.seeds)
    with make_stepper(about["env"], seed) as stepper:
        visits = play(make_look(state, algorithm, spec, seed), stepper)
    visited = [(e, t) for e in range(len(visits[0].alive)) for t, visit in enumerate(visits) if visit.alive[e]]
    states = []
    for episode, time in [visited[index] for index in spread(len(visited), NUM_STATES)]:
        visit = visits[time]
        drawn = {name: rounded(field[episode]) for name, field in visit.drawn.items()}
        states.append({"episode": episode, "time": time, "observation": rounded(visit.observation[episode]), **drawn})
    paths: list[list[Any]] = [[] for _ in visits[0].alive]
    for episode, time in visited:
        paths[episode].append(rounded(visits[time].observation[episode]))
    return {
        "seed": seed,
        "step": step,
        "rule": EXECUTED,
        "low": list(spec.action_low),
        "high": list(spec.action_high),
        "set": int(getattr(config, "num_particles", 1)) if about["algo"].startswith("s2ac") else 1,
        "states": states,
        "paths": paths if spec.observation_size == 2 else None,
    }


def load_state(directory: Path, algorithm: Algorithm, seeds: int) -> tuple[int, Any]:
    """Step and the first seed's learned state, of the newest checkpoint that verifies."""
    init = lambda seed: algorithm.init(jax.random.key(seed))  # noqa: E731
    like = {"algorithm": jax.eval_shape(jax.vmap(init), np.arange(seeds))}
    reasons = []
    for path in sorted((directory / "checkpoints").glob("step_????????????"), reverse=True):
        try:
            manifest = read_manifest(path)
            data = (path / "state.safetensors").read_bytes()
            if hashlib.sha256(data).hexdigest() != manifest["files"]["state.safetensors"]["sha256"]:
                raise DamagedCheckpoint(f"{path.name}/state.safetensors does not have the SHA-256 that it should")
            arrays = {name: array for name, array in load(data).items() if name.startswith("['algorithm']")}
            tree = arrays_to_tree(like, arrays)["algorithm"]
            return int(manifest["step"]), jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), tree)
        except (S2acError, OSError, KeyError, SafetensorError) as error:
            reasons.append(str(error))
    raise DamagedCheckpoint("; ".join(reasons) or "the run has no checkpoint yet")


EXECUTED = "sample"
"""The selection rule of the episodes: the policy itself, of every algorithm."""


class Visit(NamedTuple):
    """One step of the episodes: where they are, which still go on, and what the policy would do there."""

    observation: np.ndarray  # [E, O]
    alive: np.ndarray  # [E]
    drawn: dict[str, np.ndarray]  # each [E, …], see `make_look`


Look = Callable[[int, np.ndarray], dict[str, np.ndarray]]
"""Time and observations `[E, O]` to what the policy would do there."""

Step = Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Time and actions `[E, D]` to the next observations and which episodes ended."""


def play(look: Look, stepper: tuple[np.ndarray, Step, int]) -> list[Visit]:
    """Episodes of the policy: at every step what it executes, and what it samples, is kept."""
    observation, step, most = stepper
    alive = np.ones(len(observation), bool)
    visits = []
    for time in range(most):
        drawn = look(time, observation)
        visits.append(Visit(observation, alive, drawn))
        observation, ended = step(time, drawn["executed"])
        alive = alive & ~ended
        if not alive.any():
            break
    return visits


@contextmanager
def make_stepper(name: str, seed: int) -> Iterator[tuple[np.ndarray, Step, int]]:
    """First observations of a few evaluation episodes, the function that goes on from there, and the most steps."""
    if name in ENVIRONMENTS:
        env = ENVIRONMENTS[name].make()

        def keys(time: Any) -> Key:
            return jax.random.split(jax.random.fold_in(jax.random.key(seed), time), EPISODES)

        env_state, first = jax.jit(lambda: jax.vmap(env.reset)(keys(0)))()
        compiled = jax.jit(lambda time, where, action: jax.vmap(env.step)(keys(1 + time), where, action))

        def advance(time: int, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            nonlocal env_state
            env_state, new = compiled(time, env_state, action)
            return np.asarray(new.observation), np.asarray(new.terminated) | np.asarray(new.truncated)

        yield np.asarray(first), advance, env.max_steps
        return
    envs = HostEnvs(maker_of(name), name, [seed], 1, EVALUATION)

    def advance_host(time: int, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        new = envs.step(action[None])
        return new.observation[0], (np.maximum(new.terminated, new.truncated) > 0)[0]

    try:
        yield envs.observation[0].copy(), advance_host, MAX_STEPS
    finally:
        envs.close()


def spread(length: int, num: int) -> list[int]:
    """Up to `num` places of a list, its first, its last and others evenly between."""
    return [int(index) for index in np.unique(np.linspace(0, length - 1, num).round())]


def make_look(state: Any, algorithm: Algorithm, spec: EnvSpec, seed: int) -> Look:
    """A function that gives particles, their log-density, their Q and Q on the grid; compiled once."""
    grid = grid_of(spec)
    low, high = np.array(spec.action_low, np.float32), np.array(spec.action_high, np.float32)

    def sample(key: Key, state: Any, observation: Array) -> ActionSample:
        if algorithm.cloud:
            return algorithm.cloud(key, state, observation, NUM_PARTICLES)
        keys = jax.random.split(key, NUM_PARTICLES)
        action = jax.vmap(lambda one: algorithm.act(one, state, observation, EXECUTED))(keys)
        return ActionSample(action, jnp.full(NUM_PARTICLES, jnp.nan), {})

    def look(key: Key, state: Any, observation: Array) -> dict[str, Array]:
        drawn = sample(key, state, observation)
        action = jnp.clip(drawn.action, low[None], high[None])
        executed = algorithm.act(key, state, observation, EXECUTED)
        out = {"particles": action, "log_prob": drawn.log_prob, "executed": jnp.clip(executed, low, high)}
        if value := algorithm.value:
            q = jax.vmap(lambda one: value(state, observation, one))
            out |= {"q": q(action)} | ({} if grid is None else {"grid": q(grid)})
        return out

    def all_of_them(time: Any, state: Any, observations: Array) -> dict[str, Array]:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), time), len(observations))
        return jax.vmap(look, (0, None, 0))(keys, state, observations)

    # Called a few hundred times at most: quick compilation matters more than quick code.
    compiled = jax.jit(all_of_them, compiler_options={"xla_backend_optimization_level": 0})
    return lambda time, observations: jax.device_get(compiled(time, state, observations))


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

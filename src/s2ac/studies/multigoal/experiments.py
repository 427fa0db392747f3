"""The multigoal study: eight systems at four temperatures, each judged by the exact optimum.

A record is one agent (system, α, seed) or one optimum (α). Agents of one system are one compiled run, with seeds and
temperatures as an axis. The learning rate falls linearly to a tenth, for every system alike. Drawing and deciding need the records
alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms import ALGORITHMS
from s2ac.algorithms.start import gaussian_of
from s2ac.envs.multigoal.env import WALL, MultigoalConfig, make_multigoal
from s2ac.envs.multigoal.exact import action_law, goal_shares, rollout, soft_q, solve, value_at
from s2ac.settings import RunConfig, names_of, resolve
from s2ac.studies.multigoal.judging import judge_system, map_points
from s2ac.studies.multigoal.scores import (
    moments,
    obstacle,
    smoothness_by_differences,
)
from s2ac.studies.multigoal.systems import (
    ALPHAS,
    CHUNK,
    DECAY,
    DETAILED,
    EXTRAS,
    PICTURES,
    PROBES,
    REWARDS,
    SHARED,
    SHOWN,
    SHOWN_SEED,
    SYSTEMS,
    TRENDS,
    Make,
    Rewards,
    Scale,
    axes,
    rounded,
)
from s2ac.studies.study import Record, progress
from s2ac.training.device import init_loop, train_chunk, warm_up
from s2ac.types import Array, Key


class Experiment(NamedTuple):
    """A part of the study that is run, or found in the records of an interrupted one."""

    name: str
    records: int  # that it makes
    make: Callable[[], list[Record]]


def experiments(
    scale: Scale, rewards: str = "released", systems: tuple[str, ...] = (), seeds: range | None = None
) -> Iterator[Experiment]:
    """The optima first, then the systems, or those named; all seeds, or those given."""
    preset = REWARDS[rewards]
    seeds = seeds or range(scale.seeds)
    for alpha in ALPHAS:
        yield Experiment(f"optimum, α = {alpha:g}", 1, partial(run_optimum, preset, alpha, scale))
    for system, what in {**SYSTEMS, **EXTRAS}.items():
        if not systems or system in systems:
            make = partial(run_system, system, *what, preset, scale, seeds)
            yield Experiment(system, len(ALPHAS) * len(seeds), make)


def run_optimum(preset: Rewards, alpha: float, scale: Scale) -> list[Record]:
    """The exact optimum at one temperature."""
    config = MultigoalConfig(goal_reward=preset.goal_reward)
    solution = solve(config, alpha, preset.discount, scale.spacing, estimate_error=scale.spacing < 1 / 8)
    played = jax.jit(lambda key: rollout(key, solution, max(scale.episodes, 32), 32))(jax.random.key(0))
    points = map_points()
    entropies = jax.jit(lambda: jax.lax.map(lambda p: action_law(solution, p, 32).entropy, points))()
    laws = jax.jit(lambda: jax.lax.map(lambda p: action_law(solution, p, 32), jnp.array(PROBES)))()
    walled = replace(config, wall=WALL)
    hindered = jax.jit(lambda key: rollout(key, solution, max(scale.episodes, 32), 32, walled))(jax.random.key(1))
    blocked = obstacle(hindered.position, hindered.length, hindered.reached >= 0, config)
    error = float(solution.error)
    return [
        {
            "name": f"optimum, α = {alpha:g}",
            "kind": "optimum",
            "alpha": alpha,
            "value": float(value_at(solution, jnp.zeros(2))),
            "error": error if np.isfinite(error) else None,
            "shares": goal_shares(np.asarray(played.reached), len(config.goals)).round(4).tolist(),
            "objective": float(np.mean(played.objective)),
            "paths": rounded(played.position[:SHOWN], 3),
            "entropy_map": rounded(entropies, 3),
            "landscapes": rounded(laws.q, 2),
            "wall_paths": rounded(hindered.position[:SHOWN], 3),
            **{name: rounded(number, 4) for name, number in blocked.items()},
            "smoothness": rounded(jax.jit(lambda: smoothness_by_differences(partial(soft_q, solution), PROBES))(), 4),
            "moments": rounded(
                jax.jit(lambda: jax.lax.map(lambda p: moments(action_law(solution, p, 128)), PROBES))(), 4
            ),
        }
    ]


def settings_of(algo: str, overrides: dict[str, Any], preset: Rewards, scale: Scale) -> Any:
    """A system's config: the default preset's, but for what the system, the rewards and the scale say."""
    usual = resolve("multigoal", algo).algorithm
    shared = {name: getattr(usual, name) for name in SHARED if name in names_of(usual)}
    given = {**overrides, **shared, **scale.sizes, "discount": preset.discount}
    return replace(usual, **{name: value for name, value in given.items() if name in names_of(usual)})


class Trained(NamedTuple):
    """The agents of a system, stacked: temperatures, and in each the seeds."""

    states: Any
    rounds: int
    own_entropy: Any  # `[agents]`, as the algorithm reports it, or None
    trend: Any  # `[agents, TRENDS, 6, 4]`: the start at the six states in the course of training, or None


def run_system(
    system: str, algo: str, overrides: dict[str, Any], preset: Rewards, scale: Scale, seeds: range
) -> list[Record]:
    """Train every seed at every temperature in one compiled run, and judge each agent."""
    entry = ALGORITHMS[algo]
    base = settings_of(algo, overrides, preset, scale)
    make: Make = lambda alpha, rate=1.0: entry.make(  # noqa: E731
        make_multigoal().spec, replace(base, alpha=alpha, learning_rate=base.learning_rate * rate)
    )
    start = partial(start_at_probes, base) if system in DETAILED else None
    trained = train_system(system, make, start, preset, scale, seeds)
    judged = judge_system(make, trained.states, preset, scale, seeds, system in DETAILED)
    if trained.trend is not None:
        judged["trend"] = trained.trend
    records: list[Record] = []
    for i in range(len(ALPHAS) * len(seeds)):
        seed = seeds[i % len(seeds)]
        shown = seed == SHOWN_SEED and system in SYSTEMS
        kept = {name: found for name, found in judged.items() if shown or name not in PICTURES}
        records.append(
            {
                "name": system,
                "kind": "agent",
                "system": system,
                "alpha": ALPHAS[i // len(seeds)],
                "seed": seed,
                "rounds": trained.rounds,
                "device": f"{jax.devices()[0].device_kind}, jax {jax.__version__}",
                "own_entropy": None if trained.own_entropy is None else float(trained.own_entropy[i]),
                **jax.tree.map(lambda leaf, i=i: rounded(leaf[i], 4), kept),
            }
        )
    return records


def start_at_probes(config: Any, state: Any) -> Array:
    """Mean and standard deviation of the start at the six states, `[6, 4]`."""
    laws = jax.vmap(lambda o: gaussian_of(state.actor, o, config))(PROBES)
    return jnp.concatenate([laws.mean, laws.std], axis=1)


def train_system(
    system: str, make: Make, start: Callable[[Any], Array] | None, preset: Rewards, scale: Scale, seeds: range
) -> Trained:
    """Train all agents at once; `start` is looked at now and then."""
    env = make_multigoal(MultigoalConfig(goal_reward=preset.goal_reward))
    loop_config = RunConfig(num_envs=4, batch_size=100, capacity=50_000, warmup_steps=1_000)
    keys, alphas = axes(seeds)
    length = min(CHUNK, scale.rounds)
    chunks = scale.rounds // length

    def begin(key: Key, alpha: Array) -> Any:
        made = make(alpha)
        return warm_up(key, init_loop(key, made, env, loop_config), made, env, loop_config)

    def chunk(key: Key, alpha: Array, loop: Any, done: Array) -> tuple[Any, Any, Any]:
        made = make(alpha, 1 - (1 - DECAY) * done)
        loop, metrics = train_chunk(key, loop, made, env, loop_config, length)
        return loop, metrics, start(loop.algorithm) if start else ()

    advance = jax.jit(jax.vmap(chunk, (0, 0, 0, None)), donate_argnums=2)
    loop = jax.jit(jax.vmap(begin))(keys, alphas)
    trend: list[Any] = []
    for index in progress(range(chunks), system, chunks):
        loop, metrics, starts = advance(keys, alphas, loop, jnp.float32(index / chunks))
        jax.block_until_ready(loop)  # so that the progress is true
        if start and (index + 1) * TRENDS // chunks > index * TRENDS // chunks:
            trend.append(jax.device_get(starts))
    own = jax.device_get(metrics.get("entropy"))
    return Trained(loop.algorithm, (index + 1) * length, own, np.stack(trend, axis=1) if start else None)

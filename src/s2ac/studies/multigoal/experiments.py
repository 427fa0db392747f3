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
from s2ac.algorithms.protocol import Algorithm
from s2ac.algorithms.start import gaussian_of
from s2ac.envs.multigoal.env import STATES, WALL, MultigoalConfig, make_multigoal
from s2ac.envs.multigoal.exact import Solution, action_law, goal_shares, rollout, soft_q, solve, value_at
from s2ac.settings import names_of, resolve
from s2ac.studies.multigoal.scores import (
    action_entropy,
    moments,
    obstacle,
    score_policy,
    smoothness,
    smoothness_by_differences,
)
from s2ac.studies.study import Record, progress
from s2ac.training.device import init_loop, train_chunk, warm_up
from s2ac.training.evaluate import evaluate
from s2ac.training.loop import LoopConfig
from s2ac.types import Array, Key

ALPHAS = (0.2, 1.0, 10.0, 20.0)
PROBES = np.array(list(STATES.values()))
"""The six states at which policies are looked at."""

Make = Callable[..., Algorithm]
"""The algorithm at a temperature, its learning rate multiplied by a factor."""


class Rewards(NamedTuple):
    """A preset of the environment."""

    goal_reward: float
    discount: float


REWARDS = {"released": Rewards(10.0, 0.8), "far": Rewards(300.0, 0.95)}
"""The released constants, and ones with which the optimum reaches a goal in nearly every episode at every α."""

SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "S²AC(φ,θ)": ("s2ac", {}),
    "S²AC(φ)": ("s2ac-phi", {}),
    "S²AC(φ,θ,ψ)": ("s2ac-amortized", {}),
    "SAC": ("sac", {}),
    "SQL": ("sql", {}),
    "SAC-NF": ("sac-nf", {}),
}
EXTRAS: dict[str, tuple[str, dict[str, Any]]] = {
    "S²AC(φ,θ), L = 0": ("s2ac", {"num_steps": 0, "num_particles": 32}),  # as many particles, all of them weighed
    "S²AC(φ), L = 3": ("s2ac-phi", {"num_steps": 3}),
    "S²AC(φ,θ) as printed": (
        "s2ac",
        {**vars(resolve("multigoal", "s2ac", "paper").algorithm), "num_steps": 3},
    ),
}
"""For what the steps are worth, for the claim about how many of them a learned start saves, and for the printed form; in the table alone."""

SHARED = ("hidden", "activation", "frequency", "learning_rate", "target_rate")
"""Sizes and rates, the same for every system."""

MAP = np.linspace(-6, 6, 13)
"""The entropy maps' grid, along each axis."""

DETAILED = ("S²AC(φ,θ)", "SAC")
"""Systems whose start, entropy maps and particles are drawn beside the optimum's."""

SHOWN = 24  # trajectories kept in a record,
CLOUD = 60  # and actions at each of the six states,
SHOWN_SEED = 0  # of this seed alone, and of no extra system:
PICTURES = ("paths", "wall_paths", "clouds")
CHUNK = 500  # rounds of one call
TOGETHER = 4  # agents that are judged at a time
TRENDS = 10  # times in training at which the start is looked at
MODE = 0.02  # a goal counts as kept by an agent that ends there in more of its episodes than this
DECAY = 0.1  # the last learning rate over the first


class Scale(NamedTuple):
    """How much to run."""

    seeds: int
    rounds: int  # of four environment steps and one update
    spacing: float  # of the exact solver's grid
    episodes: int
    states: int  # at which the true action law is estimated
    actions: int  # drawn at each
    sizes: dict[str, Any]  # other than the default preset's


SCALES = {
    "smoke": Scale(1, 20, 1 / 8, 16, 4, 64, {"hidden": (8, 8), "num_particles": 3}),
    "quick": Scale(2, 1_000, 1 / 16, 50, 8, 256, {"hidden": (32, 32), "num_particles": 4}),
    "paper": Scale(20, 20_000, 1 / 32, 400, 64, 1024, {}),
}


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


def axes(seeds: range) -> tuple[Key, Array]:
    """Key and temperature of each agent."""
    keys = jax.vmap(jax.random.key)(jnp.tile(jnp.array(seeds), len(ALPHAS)))
    return keys, jnp.repeat(jnp.array(ALPHAS), len(seeds))


def start_at_probes(config: Any, state: Any) -> Array:
    """Mean and standard deviation of the start at the six states, `[6, 4]`."""
    laws = jax.vmap(lambda o: gaussian_of(state.actor, o, config))(PROBES)
    return jnp.concatenate([laws.mean, laws.std], axis=1)


def train_system(
    system: str, make: Make, start: Callable[[Any], Array] | None, preset: Rewards, scale: Scale, seeds: range
) -> Trained:
    """Train all agents at once; `start` is looked at now and then."""
    env = make_multigoal(MultigoalConfig(goal_reward=preset.goal_reward))
    loop_config = LoopConfig(num_envs=4, batch_size=100, capacity=50_000, warmup_steps=1_000)
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


def judge_system(
    make: Make, states: Any, preset: Rewards, scale: Scale, seeds: range, detailed: bool
) -> dict[str, Any]:
    """What is found of each agent, stacked; more of it where `detailed`."""
    config = MultigoalConfig(goal_reward=preset.goal_reward)
    env = make_multigoal(config)
    walled = make_multigoal(replace(config, wall=WALL))
    keys, alphas = axes(seeds)
    probes = jnp.array(PROBES)
    values = jnp.stack([solve(config, a, preset.discount, scale.spacing, False).value for a in ALPHAS])

    def judge(key: Key, alpha: Array, value: Array, state: Any) -> dict[str, Any]:
        made = make(alpha)
        solution = Solution(config, alpha, preset.discount, scale.spacing, value, 0.0, 0)  # type: ignore[arg-type]
        found: dict[str, Any] = {}
        for rule in [r for r in made.rules if r in ("sample", "amortized")]:
            played = evaluate(key, state, made, env, rule, scale.episodes)
            act = lambda k, o, r=rule: made.act(k, state, o, r)  # noqa: E731
            judged = score_policy(
                key,
                solution,
                played.observation,
                played.action,
                played.length,
                act,
                probes,
                scale.states,
                scale.actions,
            )
            blocked = evaluate(key, state, made, walled, rule, scale.episodes)
            hit = obstacle(blocked.observation, blocked.length, blocked.terminated, config)
            found[rule] = {**judged._asdict(), **hit}
            if rule == "sample":
                found |= {"paths": played.observation[:SHOWN], "wall_paths": blocked.observation[:SHOWN]}
        found["smoothness"] = smoothness(made, state, probes)
        if detailed:
            drawn = lambda o, num: jax.vmap(lambda k: made.act(k, state, o, "sample"))(jax.random.split(key, num))  # noqa: E731
            found["clouds"] = jax.vmap(lambda o: drawn(o, CLOUD))(probes)
            num = max(16, scale.actions // 8)
            found["entropy_map"] = jax.lax.map(lambda o: action_entropy(drawn(o, num)), map_points(), batch_size=8)
        return found

    each = (keys, alphas, jnp.repeat(values, len(seeds), axis=0), states)
    return jax.device_get(jax.jit(lambda xs: jax.lax.map(lambda x: judge(*x), xs, batch_size=TOGETHER))(each))


def map_points() -> Array:
    """The positions of the entropy maps, `[n², 2]`."""
    return jnp.stack(jnp.meshgrid(MAP, MAP, indexing="ij"), axis=-1).reshape(-1, 2)


def rounded(values: Any, digits: int) -> Any:
    """Numbers as JSON takes them; in float64, in which rounding leaves few digits."""
    return np.asarray(values, np.float64).round(digits).tolist()

"""What is found of each trained agent of the multigoal study, by the exact optimum."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from s2ac.envs.multigoal.env import WALL, MultigoalConfig, make_multigoal
from s2ac.envs.multigoal.exact import Solution, solve
from s2ac.studies.multigoal.scores import action_entropy, obstacle, score_policy, smoothness
from s2ac.studies.multigoal.systems import ALPHAS, CLOUD, MAP, PROBES, SHOWN, TOGETHER, Make, Rewards, Scale, axes
from s2ac.training.evaluate import evaluate
from s2ac.types import Array, Key


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

"""What the sampler gains over its start on a trained agent: by the critic that it climbs, by the other critic, and in truth.

    python benchmarks/sampler_gain.py RUN --states 256 --episodes 40
    python benchmarks/sampler_gain.py RUN --step-size 0.01 0.1 0.3 --bandwidth-factor 0.25 4

RUN is a directory of `s2ac train ENV --algo s2ac`, `sac` or `sac-nf` on a Gymnasium environment; for the last two a sampler with particles and steps as in the paper is put on top of its policy. Particles are moved from the
start's draws by one critic alone, by the minimum of both, and by the guide if there is one, and every critic says by how much they are better than the start. A gain
by the climbed critic that the other one does not see is an error of the critic, and not of the policy. It enters each target, once a step.

Also printed: how far the critics' slopes agree, Σ g₁·g₂ / ½ Σ (‖g₁‖² + ‖g₂‖²), 1 if they are the same and 0 if they have nothing in common, with g_c = σ ∂Q_c/∂u
at a draw of the policy, and averaged over many draws of a state: errors that are local in the action would vanish in the average.
"""

import argparse
import itertools
from dataclasses import fields, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.algorithms.critics import energy_of, make_critics, min_value
from s2ac.algorithms.s2ac import make_s2ac, make_stein_policy
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.start import box_of, gaussian_of
from s2ac.runs.about import configs_of, read_about
from s2ac.settings import resolve
from s2ac.training.host import HostLoop
from s2ac.training.trainer import open_run

SETS = 8  # of particles per state


def sampler_config(config):
    """The agent's own sampler, or one with particles and steps as in the paper on top of SAC."""
    if not isinstance(config, S2acConfig):
        known = {field.name: getattr(config, field.name) for field in fields(config)}
        of_the_paper = {"guide": (), "num_flows": 0, "num_particles": 10, "num_steps": 3}
        config = replace(resolve("Hopper-v5", "s2ac", given=of_the_paper).algorithm, **known)
    return config


def label(config):
    """What tells the samplers of a call apart."""
    return f"ε = {config.step_size} α, bandwidth factor {config.bandwidth_factor}"


def plain(run, config, state):
    """The critics, their targets, and what the agent's own sampler may climb beside them, by name."""
    critics = make_critics(config.num_critics, run.loop.spec, config, config.batch_norm, config.guide)
    critic = critics.plain(state.critic)
    guide = {"guide": critics.climbed(state.critic)} if config.guide else {}
    return critic, critic if config.batch_norm else state.target, guide


def one(critic, index):
    """One of the critics, as an ensemble of one."""
    return jax.tree.map(lambda leaf: leaf[index : index + 1], critic)


def agreement(run, config, state, observations):
    """Of the slopes of Q₁ and Q₂: at a draw of the start (before its flows), and averaged over `SETS` times as many draws as there are particles."""
    critic, box = plain(run, config, state)[0], box_of(run.loop.spec)

    def slopes(given):
        key, observation = given
        law = gaussian_of(state.actor[0] if config.num_flows else state.actor, observation, config)
        draws = law.sample(key, SETS * config.num_particles)
        values = [min_value(one(critic, index), observation, config.activations) for index in (0, 1)]
        return jnp.stack([jax.vmap(jax.grad(lambda u, q=q: q(box.squash(u))))(draws) * law.std for q in values])

    keys = jax.random.split(jax.random.key(2), len(observations))
    each = np.asarray(jax.jit(lambda *given: jax.lax.map(slopes, given))(keys, observations))  # [states, 2, draws, D]

    def share(first, second):
        return 2 * np.sum(first * second) / np.sum(first**2 + second**2)

    mean = each.mean(axis=2)
    return share(each[:, 0], each[:, 1]), share(mean[:, 0], mean[:, 1])


def judged(run, config, state, observations):
    """Gains by name of what is climbed, Q₁, min Q and the guide: means and standard errors by Q₁, Q₂, min Q, min of the targets and the guide."""
    critic, target, guide = plain(run, config, state)
    climbed = {"Q₁": one(critic, 0), "min Q": critic, **guide}
    judges = (one(critic, 0), one(critic, 1), critic, target, *guide.values())
    alpha, at = jnp.exp(state.log_alpha), config.activations
    moved = make_stein_policy(run.loop.spec, config)
    start = make_stein_policy(
        run.loop.spec, replace(config, num_steps=0, guide=(), num_particles=SETS * config.num_particles)
    )

    def gains(given):
        key, observation = given

        def worth(actions):
            return jnp.stack([jnp.mean(jax.vmap(min_value(c, observation, at))(actions)) for c in judges])

        def by(critic):
            energy = energy_of(critic, observation, at)
            draw = lambda k: moved.draw(k, state.actor, observation, energy, alpha).action  # noqa: E731
            return worth(jax.vmap(draw)(jax.random.split(key, SETS)).reshape(-1, run.loop.spec.action_size))

        before = worth(start.draw(key, state.actor, observation, lambda _: jnp.zeros(()), alpha).action)
        return jnp.stack([by(critic) for critic in climbed.values()]) - before

    keys = jax.random.split(jax.random.key(1), len(observations))
    every = np.asarray(jax.jit(lambda *given: jax.lax.map(gains, given))(keys, observations))
    return dict(zip(climbed, zip(every.mean(axis=0), every.std(axis=0) / len(every) ** 0.5, strict=True), strict=True))


def returns(run, config, episodes):
    """Returns `[seeds, episodes]` of the start's draws, and of the particles, from the same first states."""
    found = {}
    for name, size in (("start", 1e-9), ("particles", config.step_size)):
        make = lambda spec, size=size: make_s2ac(spec, replace(config, step_size=size))  # noqa: E731
        loop = HostLoop(run.loop.make, run.loop.name, make, run.loop.seeds, run.loop.config)
        loop.state = run.loop.state
        found[name] = loop.play(("sample",), episodes)["sample"].total
    return found


def main():
    """Print it for every seed of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--states", type=int, default=256)
    parser.add_argument("--episodes", type=int, default=0)
    parser.add_argument(
        "--step-size", type=float, nargs="+", help="of the sampler, instead of the run's or the preset's own"
    )
    parser.add_argument("--bandwidth-factor", type=float, nargs="+", help="likewise")
    args = parser.parse_args()
    run, _ = open_run(args.run)
    own = sampler_config(configs_of(read_about(args.run), args.run)[0])
    samplers = [
        replace(own, step_size=step_size, bandwidth_factor=factor)
        for step_size, factor in itertools.product(
            args.step_size or [own.step_size], args.bandwidth_factor or [own.bandwidth_factor]
        )
    ]
    added = min(int(run.loop.state.replay.added[0]), run.config.capacity)
    rows = np.random.default_rng(0).integers(added // 2, added, args.states)
    for index in range(run.config.seeds):
        state = jax.tree.map(lambda leaf, index=index: leaf[index], run.loop.state.algorithm)
        observations = np.asarray(run.loop.state.replay.data.observation[index])[rows]
        single, averaged = agreement(run, own, state, observations)
        print(f"seed {run.config.first_seed + index}, α = {float(jnp.exp(state.log_alpha)):.4f}")
        print(f"    agreement of the slopes: {single:+.3f} at a draw, {averaged:+.3f} averaged over a state's draws")
        for config in samplers:
            print(
                f"    {label(config)}; gain per step by Q₁, Q₂, min Q, min of targets"
                + (", guide" if own.guide else "")
            )
            for name, (values, errors) in judged(run, config, state, observations).items():
                row = "  ".join(f"{v:+.4f} ± {e:.4f}" for v, e in zip(values, errors, strict=True))
                print(f"        climbing {name:7s}{row}")
    for config in samplers if args.episodes else []:
        for name, total in returns(run, config, args.episodes).items():
            for seed, values in enumerate(total, run.config.first_seed):
                mean, error = values.mean(), values.std() / args.episodes**0.5
                print(f"return of seed {seed}, {label(config)}, {name}: {mean:.1f} ± {error:.1f}")


if __name__ == "__main__":
    main()

"""What an update costs: every algorithm at the dimensions of the five MuJoCo tasks, in one run.

    python benchmarks/updates.py [--device cpu|gpu] [--batch 256] [--tasks Hopper HalfCheetah …]

Per algorithm: compile time, milliseconds per update (median of repeats that take turns), the ratio to SAC, and the ratio to
the arithmetic floor: the operations that XLA counts in the compiled update over the rate of a large matrix product measured in
the same run. Then five seeds in one call against one seed.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp

from s2ac.algorithms import ALGORITHMS
from s2ac.envs.multigoal import make_multigoal
from s2ac.samplers.base import UNROLL
from s2ac.training.device import DeviceLoop, LoopConfig
from s2ac.types import EnvSpec, Transition

TASKS = {"Hopper": (11, 3), "Walker2d": (17, 6), "HalfCheetah": (17, 6), "Ant": (105, 8), "Humanoid": (348, 17)}
NAMES = [name for name in ALGORITHMS if name != "ppo"]  # PPO's update is a whole rollout's: no like for like


def matmul_rate(size):
    """Operations per second of a float32 matrix product."""
    left = jax.random.normal(jax.random.key(0), (size, size))
    product = jax.jit(lambda x: x @ x)
    product(left).block_until_ready()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        product(left).block_until_ready()
        times.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(times)


def compiled_update(name, spec, batch, seeds=None):
    """A compiled update, its arguments, its compile time and the operations that XLA counts in it."""
    algorithm = ALGORITHMS[name].make(spec, ALGORITHMS[name].config)
    key = jax.random.key(0)
    shape = (batch,) if seeds is None else (seeds, batch)
    rows = Transition(
        jax.random.normal(key, (*shape, spec.observation_size)),
        jax.random.uniform(key, (*shape, spec.action_size), minval=-1),
        jnp.ones(shape),
        jnp.zeros(shape),
        jnp.zeros(shape),
        jax.random.normal(key, (*shape, spec.observation_size)),
    )
    keys = key if seeds is None else jax.random.split(key, seeds)
    init, update = (
        (algorithm.init, algorithm.update) if seeds is None else map(jax.vmap, (algorithm.init, algorithm.update))
    )
    state = jax.jit(init)(keys)
    start = time.perf_counter()
    compiled = jax.jit(update).lower(keys, state, rows).compile()
    seconds = time.perf_counter() - start
    operations = (compiled.cost_analysis() or {}).get("flops", float("nan"))
    return compiled, (keys, state, rows), seconds, operations


def milliseconds(entries, repeats):
    """Median time of one call of each, taking turns."""
    times = {name: [] for name in entries}
    for _ in range(repeats + 1):
        for name, (call, arguments) in entries.items():
            start = time.perf_counter()
            jax.block_until_ready(call(*arguments))
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    options = parser.parse_args()
    try:
        device = jax.devices(options.device)[0]
    except RuntimeError:
        raise SystemExit(f"no {options.device} here; run with --device cpu") from None
    with jax.default_device(device):
        rate = matmul_rate(2048 if options.device == "cpu" else 8192)
        print(
            f"{device.device_kind}, jax {jax.__version__}, float32 matrix product {rate / 1e9:.0f} GFLOP/s, batch {options.batch}"
        )
        for task in options.tasks:
            size, actions = TASKS[task]
            spec = EnvSpec(size, (-1.0,) * actions, (1.0,) * actions)
            made = {name: compiled_update(name, spec, options.batch) for name in NAMES}
            times = milliseconds({name: entry[:2] for name, entry in made.items()}, options.repeats)
            print(
                f"\n{task} ({size}, {actions})\n{'':16s}{'ms':>9s}{'× SAC':>8s}{'GFLOP':>8s}{'× floor':>9s}{'compile s':>11s}"
            )
            for name, (_, _, seconds, operations) in made.items():
                floor = 1e3 * operations / rate
                loops = getattr(ALGORITHMS[name].config, "num_steps", 0) > UNROLL  # XLA counts a loop's body once
                counted = f"{'–':>8s}{'–':>9s}" if loops else f"{operations / 1e9:8.3f}{times[name] / floor:9.2f}"
                cells = f"{times[name]:9.2f}{times[name] / times['sac']:8.2f}{counted}"
                print(f"{name:16s}{cells}{seconds:11.1f}")
        print(f"\nfive seeds in one call against one, {options.tasks[0]}")
        size, actions = TASKS[options.tasks[0]]
        spec = EnvSpec(size, (-1.0,) * actions, (1.0,) * actions)
        for name in ("sac", "s2ac"):
            entries = {seeds: compiled_update(name, spec, options.batch, seeds)[:2] for seeds in (1, 5)}
            times = milliseconds(entries, options.repeats)
            print(f"{name:16s}{times[1]:9.2f} ms, {times[5]:9.2f} ms: {times[5] / times[1]:.2f} times")
        print("\nthe whole compiled loop, SAC on multigoal, 200 rounds of one environment step and one update")
        entry, loops = ALGORITHMS["sac"], {}
        for seeds in (1, 5):
            loop = DeviceLoop(
                make_multigoal(), lambda spec: entry.make(spec, entry.config), list(range(seeds)), LoopConfig()
            )
            loop.warm_up()
            loops[seeds] = (loop.advance, (200,))
        times = milliseconds(loops, options.repeats)
        print(
            f"{'sac':16s}{times[1] / 200:9.2f} ms, {times[5] / 200:9.2f} ms per round: {times[5] / times[1]:.2f} times"
        )


if __name__ == "__main__":
    main()

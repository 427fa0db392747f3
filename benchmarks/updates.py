"""What an update costs: every algorithm at the dimensions of the five MuJoCo tasks, in one run.

    python benchmarks/updates.py [--device cpu|gpu] [--batch 256] [--tasks Hopper HalfCheetah …] [--parts tasks seeds scan loop]

tasks: per algorithm compile time, milliseconds per update (median of repeats that take turns), the ratio to SAC, and the
ratio to the arithmetic floor: the operations that XLA counts in the compiled update over the rate of a large matrix product
measured in the same run. PPO's row is one minibatch update: the time of a rollout of `batch` · minibatches steps over the
number of minibatch updates it gets, with PPO's own smaller networks.
seeds: five seeds in one call against one. scan: updates inside one compiled loop, with batches from a replay on the device,
so that dispatch does not count. loop: five seeds of the whole training loop against one.
"""

import argparse
import statistics
import time
from dataclasses import replace

import jax
import jax.numpy as jnp

from s2ac import replay as buffer
from s2ac.algorithms import ALGORITHMS
from s2ac.envs.multigoal.env import make_multigoal
from s2ac.samplers.protocol import UNROLL
from s2ac.settings import PRESETS, RunConfig, resolve
from s2ac.training.device import DeviceLoop
from s2ac.types import EnvSpec, Transition

TASKS = {"Hopper": (11, 3), "Walker2d": (17, 6), "HalfCheetah": (17, 6), "Ant": (105, 8), "Humanoid": (348, 17)}
PARTS = ("tasks", "seeds", "scan", "loop")
SIZES = {"default": ((256, 256), 256), "paper": ((256, 256), 100), "demo": ((64, 64), 64)}  # hidden layers, batch


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


def random_rows(spec, shape):
    """Transitions of noise."""
    key = jax.random.key(0)
    return Transition(
        jax.random.normal(key, (*shape, spec.observation_size)),
        jax.random.uniform(key, (*shape, spec.action_size), minval=-1),
        jnp.ones(shape),
        jnp.zeros(shape),
        jnp.zeros(shape),
        jax.random.normal(key, (*shape, spec.observation_size)),
    )


def config_of(name, setting):
    """An algorithm's settings: its own defaults, or with an environment and a preset those."""
    env, preset = setting
    return resolve(env, name, preset).algorithm if env else ALGORITHMS[name].config


def updates_per_call(name):
    """How many gradient updates one call of `update` does: PPO goes through a rollout several times, in parts."""
    config = ALGORITHMS[name].config
    return config.num_epochs * config.num_minibatches if name == "ppo" else 1


def compiled_update(name, spec, batch, setting, seeds=None):
    """A compiled update, its arguments, its compile time and the operations that XLA counts in it."""
    algorithm = ALGORITHMS[name].make(spec, config_of(name, setting))
    key = jax.random.key(0)
    shape = (batch * ALGORITHMS[name].config.num_minibatches, 1) if name == "ppo" else (batch,)
    rows = random_rows(spec, shape if seeds is None else (seeds, *shape))
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


def scanned_updates(name, spec, batch, setting, seeds, length):
    """A compiled loop of `length` updates of `seeds` seeds, each with batches from its own replay, and its arguments."""
    known = {"num_particles": 10, "num_steps": 3} if name == "s2ac" and not setting[0] else {}
    algorithm = ALGORITHMS[name].make(spec, replace(config_of(name, setting), **known))

    def many(key, state, replay):
        def one(carry, key):
            key_batch, key_update = jax.random.split(key)
            return algorithm.update(key_update, carry, buffer.sample(key_batch, replay, batch))[0], None

        return jax.lax.scan(one, state, jax.random.split(key, length))[0]

    keys = jax.random.split(jax.random.key(0), seeds)
    state = jax.jit(jax.vmap(algorithm.init))(keys)
    rows = jax.vmap(lambda _: buffer.add(buffer.init_replay(spec, 10_000), random_rows(spec, (10_000,))))(keys)
    return jax.jit(jax.vmap(many)).lower(keys, state, rows).compile(), (keys, state, rows)


def milliseconds(entries, repeats):
    """Median time of one call of each, taking turns."""
    times = {name: [] for name in entries}
    for _ in range(repeats + 1):
        for name, (call, arguments) in entries.items():
            start = time.perf_counter()
            jax.block_until_ready(call(*arguments))
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def task_table(task, batch, setting, repeats, rate):
    """Every algorithm at one task's dimensions."""
    size, actions = TASKS[task]
    spec = EnvSpec(size, (-1.0,) * actions, (1.0,) * actions)
    made = {name: compiled_update(name, spec, batch, setting) for name in ALGORITHMS}
    times = milliseconds({name: entry[:2] for name, entry in made.items()}, repeats)
    print(
        f"\n{task} ({size}, {actions}); ppo: per minibatch update of {batch} rows, of {updates_per_call('ppo')} in a call\n"
        f"{'':16s}{'ms':>9s}{'× SAC':>8s}{'GFLOP':>8s}{'× floor':>9s}{'compile s':>11s}"
    )
    for name, (_, _, seconds, operations) in made.items():
        each, floor = times[name] / updates_per_call(name), 1e3 * operations / rate
        # XLA counts a loop's body once
        loops = name == "ppo" or getattr(ALGORITHMS[name].config, "num_steps", 0) > UNROLL
        counted = f"{'–':>8s}{'–':>9s}" if loops else f"{operations / 1e9:8.3f}{each / floor:9.2f}"
        print(f"{name:16s}{each:9.2f}{each / times['sac']:8.2f}{counted}{seconds:11.1f}")


def seeds_table(task, batch, setting, repeats):
    """Five seeds in one call against one."""
    print(f"\nfive seeds in one call against one, {task}")
    size, actions = TASKS[task]
    spec = EnvSpec(size, (-1.0,) * actions, (1.0,) * actions)
    for name in ("sac", "s2ac"):
        entries = {seeds: compiled_update(name, spec, batch, setting, seeds)[:2] for seeds in (1, 5)}
        times = milliseconds(entries, repeats)
        print(f"{name:16s}{times[1]:9.2f} ms, {times[5]:9.2f} ms: {times[5] / times[1]:.2f} times")


def scan_table(batch, setting, repeats, length):
    """Updates inside one compiled loop, for one seed and for eight."""
    size, actions = TASKS["HalfCheetah"]
    spec = EnvSpec(size, (-1.0,) * actions, (1.0,) * actions)
    of = "10 particles and 3 steps" if not setting[0] else f"the preset {setting[1]} of {setting[0]}"
    print(
        f"\n{length} updates in one compiled loop, batches from a replay on the device, HalfCheetah ({size}, {actions}), "
        f"batch {batch}, s2ac with {of}\n{'':16s}{'seeds':>6s}{'ms':>9s}{'× SAC':>8s}{'ms per seed':>13s}"
    )
    cases = [(name, seeds) for seeds in (1, 8) for name in ("sac", "s2ac")]
    times = milliseconds(
        {case: scanned_updates(case[0], spec, batch, setting, case[1], length) for case in cases}, repeats
    )
    for name, seeds in cases:
        each = times[name, seeds] / length
        print(f"{name:16s}{seeds:6d}{each:9.3f}{times[name, seeds] / times['sac', seeds]:8.2f}{each / seeds:13.4f}")


def loop_table(repeats, rounds):
    """Five seeds of the whole compiled training loop against one."""
    print(f"\nthe whole compiled loop, SAC on multigoal, {rounds} rounds of one environment step and one update")
    entry = ALGORITHMS["sac"]
    for label, (hidden, batch) in SIZES.items():
        loops = {}
        for seeds in (1, 5):
            config = replace(entry.config, hidden=hidden)
            loop = DeviceLoop(
                make_multigoal(),
                lambda spec, config=config: entry.make(spec, config),
                list(range(seeds)),
                RunConfig(batch_size=batch),
            )
            loop.warm_up()
            loops[seeds] = (loop.advance, (rounds,))
        times = milliseconds(loops, repeats)
        print(
            f"{label:16s}{times[1] / rounds:9.2f} ms, {times[5] / rounds:9.2f} ms per round: {times[5] / times[1]:.2f} times"
            f" (hidden {hidden}, batch {batch})"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--length", type=int, default=200, help="updates, or rounds, in one call of the parts scan and loop"
    )
    parser.add_argument("--preset-of", default="", help="an environment: take the settings of its preset")
    parser.add_argument("--preset", choices=PRESETS, default="default", help="which of its presets")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    if options.preset != "default" and not options.preset_of:
        parser.error("--preset needs --preset-of ENV")
    setting = options.preset_of, options.preset
    try:
        device = jax.devices(options.device)[0]
    except RuntimeError:
        raise SystemExit(f"no {options.device} here; run with --device cpu") from None
    with jax.default_device(device):
        rate = matmul_rate(2048 if options.device == "cpu" else 8192)
        print(
            f"{device.device_kind}, jax {jax.__version__}, float32 matrix product {rate / 1e9:.0f} GFLOP/s, batch {options.batch}"
        )
        if "tasks" in options.parts:
            for task in options.tasks:
                task_table(task, options.batch, setting, options.repeats, rate)
        if "seeds" in options.parts:
            seeds_table(options.tasks[0], options.batch, setting, options.repeats)
        if "scan" in options.parts:
            scan_table(options.batch, setting, options.repeats, options.length)
        if "loop" in options.parts:
            loop_table(options.repeats, options.length)


if __name__ == "__main__":
    main()

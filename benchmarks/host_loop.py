"""The loop for Gymnasium environments, end to end: environment steps per second, and where a round's time goes.

    python benchmarks/host_loop.py --env HalfCheetah-v5 --algo s2ac --seeds 5 --num-envs 1 --workers 5 --overlap --steps 2000

Settings that have no option here are those of the environment's preset (`--preset`). Steps of all seeds are counted. The rate is
measured on the loop as it is; then some rounds are run again with a clock around each part and a wait after each update, so
that its time is not charged to whoever fetches something next. Those rounds are slower with `--overlap`, which the waits undo.
"""

import argparse
import os
import time
from collections import defaultdict


def timed(function, seconds, part, wait=None):
    """The function, with its time added to a part's."""

    def call(*arguments):
        began = time.perf_counter()
        result = function(*arguments)
        if wait is not None:
            wait(result)
        seconds[part] += time.perf_counter() - began
        return result

    return call


def make_loop(options):
    from s2ac.algorithms import ALGORITHMS
    from s2ac.envs.gymnasium.adapter import maker
    from s2ac.settings import resolve
    from s2ac.training.host import HostLoop

    fields = {name: getattr(options, name) for name in ("seeds", "num_envs", "workers", "overlap", "horizon")}
    fields |= {"num_updates": options.num_envs * options.horizon, "capacity": 100_000, "warmup_steps": 1_000}
    _, _, settings, config = resolve(options.env, options.algo, options.preset, fields)
    make = lambda spec: ALGORITHMS[options.algo].make(spec, settings)  # noqa: E731
    return HostLoop(maker(options.env), options.env, make, list(range(options.seeds)), config.loop())


def where_time_goes(loop, rounds):
    """Seconds of each part, of `rounds` rounds."""
    import jax

    seconds = defaultdict(float)
    parts = (loop._act, loop._learn, loop._sum, loop.envs.send, loop.envs.receive_block)
    loop._act = timed(loop._act, seconds, "act", jax.block_until_ready)
    loop._learn = timed(loop._learn, seconds, "learn", jax.block_until_ready)
    loop._sum = timed(loop._sum, seconds, "learn", jax.block_until_ready)
    loop.envs.send = timed(loop.envs.send, seconds, "simulators")
    loop.envs.receive_block = timed(loop.envs.receive_block, seconds, "simulators")
    began = time.perf_counter()
    loop.advance(rounds)
    whole = time.perf_counter() - began
    loop._act, loop._learn, loop._sum, loop.envs.send, loop.envs.receive_block = parts
    return {**seconds, "rest": whole - sum(seconds.values())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--algo", default="s2ac")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--num-envs", type=int, default=1, help="environments per seed")
    parser.add_argument("--horizon", type=int, default=1, help="steps between two rounds of as many updates")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--steps", type=int, default=2_000, help="environment steps of each seed to measure")
    options = parser.parse_args()
    os.environ.setdefault("NPROC", str(os.cpu_count() or 1))
    import jax

    loop = make_loop(options)
    per_round = options.num_envs * loop.config.horizon
    rounds = max(1, options.steps // per_round)
    began = time.perf_counter()
    loop.warm_up()
    warm = time.perf_counter() - began
    began = time.perf_counter()
    loop.advance(2)  # compiles
    compiled = time.perf_counter() - began
    began = time.perf_counter()
    loop.advance(rounds)
    seconds = time.perf_counter() - began
    device = jax.devices()[0].device_kind
    print(
        f"{options.env}, {options.algo}, {options.seeds} seeds × {options.num_envs}, {options.horizon} steps and updates a round, workers {options.workers}, "
        f"overlap {options.overlap}: {device}, jax {jax.__version__}, {os.cpu_count()} cores"
    )
    print(f"warm-up {warm:.1f} s, compilation {compiled:.1f} s")
    print(
        f"{options.seeds * rounds * per_round / seconds:.0f} environment steps per second, {1e6 * seconds / rounds:.0f} µs per round"
    )
    measured = max(1, min(rounds, 500))
    parts = where_time_goes(loop, measured)
    whole = sum(parts.values())
    print(f"one round, waiting after each part: {1e6 * whole / measured:.0f} µs")
    for part in ("act", "simulators", "learn", "rest"):
        print(f"  {part:12s}{1e6 * parts[part] / measured:9.0f} µs {100 * parts[part] / whole:5.0f} %")
    loop.envs.close()


if __name__ == "__main__":
    main()

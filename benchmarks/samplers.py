"""Our SVGD step *with* density against BlackJAX's *without*, in one run; growth with m; memory at m = 4,000.

    python benchmarks/samplers.py [--repeats 15]

Both run as a compiled loop of steps. Times are medians over repeats that alternate between the two, so that a noisy machine slows both alike.
"""

import argparse
import statistics
import time

import blackjax
import jax
import jax.numpy as jnp
import optax

from s2ac.samplers import make_svgd

STEP_SIZE, BANDWIDTH = 0.1, 1.0
SIZES = [(10, 2), (200, 2), (1000, 10)]


def log_target(x):
    return -0.5 * jnp.sum(x**2)


def our_step(form, hessian, diagnostics=False):
    """A compiled loop of steps that carries the density and, if asked for, sums the diagnostics; what is not carried the compiler drops."""
    sampler = make_svgd(STEP_SIZE, BANDWIDTH, form, hessian=hessian)

    def loop(particles, steps):
        state = sampler.init(particles, jnp.zeros(particles.shape[0]))

        def body(index, carry):
            state, totals = carry
            state, info = sampler.step(jax.random.fold_in(jax.random.key(0), index), state, log_target)
            seen = (info.jacobian_norm, info.guarded, info.nonfinite) if diagnostics else ()
            return state, jax.tree.map(jnp.add, totals, seen)

        return jax.lax.fori_loop(0, steps, body, (state, (jnp.zeros(()),) * 3 if diagnostics else ()))

    return jax.jit(loop)


def their_step():
    oracle = blackjax.svgd(jax.grad(log_target), optax.sgd(STEP_SIZE), blackjax.vi.svgd.rbf_kernel, lambda state: state)

    def loop(particles, steps):
        state = oracle.init(particles, {"length_scale": 2 * BANDWIDTH**2})
        return jax.lax.fori_loop(0, steps, lambda _, state: oracle.step(state), state)

    return jax.jit(loop)


def seconds(step, particles, calls):
    start = time.perf_counter()
    jax.block_until_ready(step(particles, calls))
    return (time.perf_counter() - start) / calls


def compare(steps, particles, repeats):
    """Median seconds per step of each."""
    pairs = particles.shape[0] ** 2
    calls = max(2, min(10_000, 4_000_000 // pairs))
    for step in steps.values():
        jax.block_until_ready(step(particles, 1))
    times = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            times[name].append(seconds(step, particles, calls))
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    steps = {
        "blackjax, no density": their_step(),
        "paper": our_step("paper", "exact"),
        "leave-one-out": our_step("leave-one-out", "exact"),
        "all, Hutchinson": our_step("all", "hutchinson"),
        "all, exact Hessian": our_step("all", "exact"),
        "l-o-o + diagnostics": our_step("leave-one-out", "exact", diagnostics=True),
    }
    print(f"{'m':>5} {'d':>3}  " + "  ".join(f"{name:>20}" for name in steps))
    for count, dimension in SIZES:
        particles = jax.random.normal(jax.random.key(1), (count, dimension))
        times = compare(steps, particles, repeats)
        base = times["blackjax, no density"]
        cells = (f"{value * 1e6:9.2f} µs {value / base:6.2f}×" for value in times.values())
        print(f"{count:5d} {dimension:3d}  " + "  ".join(f"{cell:>20}" for cell in cells))

    print("\ngrowth with m at d = 10 (form `all`, Hutchinson): time per step over m²")
    for count in (500, 1000, 2000, 4000):
        particles = jax.random.normal(jax.random.key(1), (count, 10))
        median = compare({"all": steps["all, Hutchinson"]}, particles, max(3, repeats // 3))["all"]
        print(f"  m = {count:5d}: {median * 1e3:8.2f} ms, {median / count**2 * 1e9:6.2f} ns per pair")

    shape = jax.ShapeDtypeStruct((4000, 10), jnp.float32)
    print(
        f"\nmemory at m = 4,000, d = 10 (one m×m array is {4000**2 * 4 / 1e6:.0f} MB, m×m×d would be {4000**2 * 40 / 1e6:.0f} MB)"
    )
    for name, step in steps.items():
        memory = step.lower(shape, 1).compile().memory_analysis()
        print(f"  {name:22s} peak of temporaries {memory.temp_size_in_bytes / 1e6:7.1f} MB")


if __name__ == "__main__":
    main()

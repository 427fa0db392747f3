"""What `s2ac.fit` reaches on targets whose evidence is known, and what BlackJAX gives for the same targets.

    python benchmarks/fit.py [--keys 10] [--targets banana ring ...] [--ways s2ac nuts ...]

For each target and way, over the keys: evidence − log Z (the ELBO, or what SMC estimates) with a 95 % interval of its mean and the
furthest key; the energy distance √(2E|x − y| − E|x − x'| − E|y − y'|) of 2,000 samples x to exact ones y, and that of exact ones to
other exact ones; the processor's seconds of one call, compilation included; and the lines of code a user writes, counted in this file.
Nobody is told where the modes are: `fit` and full-rank VI have their default starts, NUTS and SMC begin from N(0, 10²), which is as
far as `fit` looks.
"""

import argparse
import inspect
import math
import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.stats

import s2ac

COUNT = 2000
PLACES = 4 * np.c_[np.cos(np.arange(8) * np.pi / 4), np.sin(np.arange(8) * np.pi / 4)]
ROOT = np.random.RandomState(0).randn(5, 5)
COVARIANCE = ROOT @ ROOT.T / 5 + 0.3 * np.eye(5)
PRECISION = jnp.asarray(np.linalg.inv(COVARIANCE), jnp.float32)


def banana(x):
    return -0.5 * x[0] ** 2 - 0.5 * ((x[1] - x[0] ** 2) / 0.25) ** 2


def correlated(x):
    return -0.5 * x @ PRECISION @ x


def ring(x):
    return jax.nn.logsumexp(-2 * jnp.sum((x[None] - jnp.asarray(PLACES, x.dtype)) ** 2, axis=1))


def funnel(x):
    return -0.5 * (x[0] / 1.5) ** 2 - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) - 2 * x[0]


def gumbels(x):
    return jnp.sum(-x - jnp.exp(-x))


def two_bananas(x):
    return banana(x[:2]) + banana(x[2:])


def bent(random, pairs=1):
    points = random.randn(COUNT, 2 * pairs)
    points[:, 1::2] = points[:, 0::2] ** 2 + 0.25 * points[:, 1::2]
    return points


def narrowing(random):
    neck = 1.5 * random.randn(COUNT, 1)
    return np.c_[neck, np.exp(neck / 2) * random.randn(COUNT, 4)]


TARGETS = {  # log p̃, log Z, dimension, exact samples
    "banana": (banana, math.log(math.pi / 2), 2, bent),
    "correlated": (
        correlated,
        0.5 * np.linalg.slogdet(2 * np.pi * COVARIANCE)[1],
        5,
        lambda random: random.randn(COUNT, 5) @ np.linalg.cholesky(COVARIANCE).T,
    ),
    "ring": (
        ring,
        math.log(4 * math.pi),
        2,
        lambda random: PLACES[random.randint(8, size=COUNT)] + 0.5 * random.randn(COUNT, 2),
    ),
    "two bananas": (two_bananas, 2 * math.log(math.pi / 2), 4, lambda random: bent(random, 2)),
    "funnel": (funnel, 2.5 * math.log(2 * math.pi) + math.log(1.5), 5, narrowing),
    "ten Gumbels": (gumbels, 0.0, 10, lambda random: random.gumbel(size=(COUNT, 10))),
}


def with_s2ac(key, log_target, dimension):
    fit = s2ac.fit(key, log_target, jnp.zeros(dimension))
    return fit.sample(key, COUNT), fit.elbo


def with_s2ac_without_steps(key, log_target, dimension):
    fit = s2ac.fit(key, log_target, jnp.zeros(dimension), family=s2ac.Family(num_steps=0))
    return fit.sample(key, COUNT), fit.elbo


def with_full_rank_vi(key, log_target, dimension):
    algorithm = blackjax.fullrank_vi(log_target, optax.adam(0.02), num_samples=64)
    start = algorithm.init(jnp.zeros(dimension))
    step = lambda state, k: algorithm.step(k, state)  # noqa: E731
    state, info = jax.jit(lambda k: jax.lax.scan(step, start, jax.random.split(k, 3000)))(key)
    return algorithm.sample(key, state, COUNT), -jnp.mean(info.elbo[-100:])  # what it calls elbo is what it minimises


def with_nuts(key, log_target, dimension):
    def chain(key, start):
        key_warm, key_run = jax.random.split(key)
        adaptation = blackjax.window_adaptation(blackjax.nuts, log_target)
        (state, parameters), _ = adaptation.run(key_warm, start, 500)
        algorithm = blackjax.nuts(log_target, **parameters)
        step = lambda state, k: (algorithm.step(k, state)[0],) * 2  # noqa: E731
        return jax.lax.scan(step, state, jax.random.split(key_run, 500))[1].position

    key_start, key_run, key_pick = jax.random.split(key, 3)
    starts = 10 * jax.random.normal(key_start, (16, dimension))
    draws = jax.jit(jax.vmap(chain))(jax.random.split(key_run, 16), starts).reshape(-1, dimension)
    return jax.random.choice(key_pick, draws, (COUNT,), replace=False), None


def with_tempered_smc(key, log_target, dimension):
    start = s2ac.Gaussian(jnp.zeros(dimension), 10 * jnp.ones(dimension))
    algorithm = blackjax.adaptive_tempered_smc(
        start.log_density,
        lambda x: log_target(x) - start.log_density(x),
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        {
            "step_size": jnp.array([0.1]),
            "inverse_mass_matrix": jnp.eye(dimension)[None],
            "num_integration_steps": jnp.array([10]),
        },
        blackjax.smc.resampling.systematic,
        0.5,
        num_mcmc_steps=10,
    )
    state, step, evidence = algorithm.init(start.sample(key, COUNT)), jax.jit(algorithm.step), 0.0
    while state.tempering_param < 1:
        key, key_step = jax.random.split(key)
        state, info = step(key_step, state)
        evidence += info.log_likelihood_increment
    return state.particles, evidence


WAYS = {
    "s2ac": with_s2ac,
    "s2ac-no-steps": with_s2ac_without_steps,
    "full-rank-vi": with_full_rank_vi,
    "nuts": with_nuts,
    "tempered-smc": with_tempered_smc,
}


def lines(way):
    """Of the function's body: what a user would write."""
    return len([line for line in inspect.getsource(way).splitlines()[1:] if line.strip()])


def energy_distance(points, others):
    """√(2E|x − y| − E|x − x'| − E|y − y'|)."""
    apart = lambda a, b: np.linalg.norm(a[:, None] - b[None], axis=2).mean()  # noqa: E731
    return math.sqrt(max(0.0, 2 * apart(points, others) - apart(points, points) - apart(others, others)))


def mean_with_interval(values):
    """Mean and half-width of its 95 % interval."""
    half = scipy.stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):+.4f} ± {half:.4f}"


def measure(name, label, num_keys):
    log_target, log_evidence, dimension, exact = TARGETS[name]
    gaps, distances, floors, seconds = [], [], [], []
    for seed in range(num_keys):
        random = np.random.RandomState(seed)
        begun = time.process_time()
        points, evidence = WAYS[label](jax.random.key(seed), log_target, dimension)
        points = np.asarray(jax.block_until_ready(points), np.float64)
        seconds.append(time.process_time() - begun)
        if evidence is not None:
            gaps.append(float(evidence) - log_evidence)
        others = exact(random)
        distances.append(energy_distance(points, others))
        floors.append(energy_distance(exact(random), others))
    evidence = f"{mean_with_interval(gaps)} | {max(gaps, key=abs):+.3f}" if gaps else "none | none"
    print(
        f"| {name} | {label} | {evidence} | {np.median(distances):.3f} | {np.median(floors):.3f} | "
        f"{np.median(seconds):.1f} | {lines(WAYS[label])} |",
        flush=True,
    )


def main():
    """Print a row for each target and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10)
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    options = parser.parse_args()
    print("| target | way | evidence − log Z | furthest | distance | of exact samples | seconds | lines |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.targets:
        for label in options.ways:
            measure(name, label, options.keys)


if __name__ == "__main__":
    main()

"""Samples with a density, outside reinforcement learning: two posteriors whose log-evidence is known.

    python examples/variational.py [--out FIGURE.png] [--iterations 500]

1. A mixture of two Gaussians, normalised, so log Z = 0: a Gaussian must pick a mode or straddle both.
2. Bayesian logistic regression on the 23 flights before Challenger's last (temperature at launch, O-ring
   damage; the data are those of Dalal, Fowlkes and Hoadley, JASA 1989). Two weights, so log Z follows by
   quadrature.

For each: the ELBO of one Gaussian beside that of the default family, both true lower bounds. The figure has the fitted density,
evaluated on a grid, as contours of its own over the target's.
"""

import argparse
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import s2ac

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def two_modes(point):
    """Half N((2, 0), I/2), half N((−2, 0), I/2), normalised."""
    centre, std = jnp.array([2.0, 0.0]), jnp.full(2, math.sqrt(0.5))
    modes = [s2ac.Gaussian(c, std).log_density(point) for c in (centre, -centre)]
    return jnp.logaddexp(*modes) - math.log(2)


def challenger_posterior():
    """log p(damage, weights | temperature) with a N(0, 10²) prior on both weights; temperature standardised."""
    table = np.loadtxt(Path(__file__).with_name("challenger.csv"), delimiter=",", skiprows=1)
    temperature = jnp.asarray((table[:, 0] - table[:, 0].mean()) / table[:, 0].std())
    damage = jnp.asarray(table[:, 1])

    def log_target(weights):
        logits = weights[0] + weights[1] * temperature
        likelihood = jnp.sum(damage * logits - jax.nn.softplus(logits))
        return likelihood + s2ac.Gaussian(jnp.zeros(2), jnp.full(2, 10.0)).log_density(weights)

    return log_target


def log_evidence(log_target, low, high, num=801):
    """log ∫ exp(log_target) over a square, by the midpoint rule."""
    axis = low + (high - low) * (np.arange(num) + 0.5) / num
    grid = jnp.asarray(np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2))
    values = jax.lax.map(log_target, grid, batch_size=10_000)
    return (
        float(jax.nn.logsumexp(values) + 2 * math.log((high - low) / num)),
        axis,
        np.asarray(values).reshape(num, num),
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="runs/variational.png")
    parser.add_argument("--iterations", type=int, default=2000)
    options = parser.parse_args(arguments)
    problems = {
        "two modes": (two_modes, jnp.zeros(2), 2.0, (-6.0, 6.0)),
        "Challenger's O-rings": (challenger_posterior(), jnp.array([-1.0, -1.0]), 1.0, (-9.0, 6.0)),
    }
    families = {"one Gaussian": s2ac.Family(num_components=1, num_steps=0), "mixture and Stein steps": s2ac.Family()}
    figure, axes = plt.subplots(len(problems), len(families), figsize=(7.6, 7.4), layout="constrained")
    elbos = {}
    for row, (name, (log_target, mean, std, (low, high))) in zip(axes, problems.items(), strict=True):
        evidence, axis, surface = log_evidence(log_target, low, high)
        print(f"{name}: log Z = {evidence:.3f}")
        levels = surface.max() - np.array([8.0, 4.5, 2.0, 0.5])
        for panel, (label, family) in zip(row, families.items(), strict=True):
            fit = s2ac.fit(jax.random.key(0), log_target, mean, std, family, num_iterations=options.iterations)
            elbos[name, label] = float(fit.elbo) - evidence
            print(
                f"  {label:24s} ELBO {fit.elbo:.3f} ± {fit.elbo_standard_error:.3f}, ELBO − log Z {elbos[name, label]:+.3f}"
            )
            few = axis[::8]
            density = fit.log_density(np.stack(np.meshgrid(few, few, indexing="ij"), axis=-1)) + evidence
            panel.contour(axis, axis, surface.T, levels=levels, colors="#cc8844", linestyles="solid")
            panel.contour(few, few, density.T, levels=levels, colors="#224466", linestyles="dotted")
            panel.scatter(*np.asarray(fit.sample(jax.random.key(1), 600)).T, s=2, color="#224466", alpha=0.4)
            panel.set(title=f"{name}\n{label}: {elbos[name, label]:+.3f}", xlim=(low, high), ylim=(low, high))
            panel.set(xlabel="first coordinate", ylabel="second coordinate")
    figure.suptitle("Fitted samples and density (blue) over the target (orange), and ELBO − log Z")
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=150)
    print(f"figure: {options.out}")
    return elbos


if __name__ == "__main__":
    main()

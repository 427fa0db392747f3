"""What particles are worth, by importance weights or without: soft value, entropy, shares, effective number."""

import jax
import jax.numpy as jnp

from s2ac.types import Array


def soft_value(values: Array, log_prob: Array, alpha: Array, weighted: bool) -> tuple[Array, Array]:
    r"""The soft value of a policy, and its entropy, from `values` Q(s, a_i) `[M]` of its particles and their log-densities.

    A policy that executes any of its particles has V = E[Q − α log π] and H = −E[log π]. One that executes particle i with
    probability proportional to its importance weight w_i = exp(Q_i/α)/π(a_i) is nearer to exp(Q/α), and has

        V ≥ α E log (1/M) Σ_i w_i,         H ≥ E[ log (1/M) Σ_i w_i − Σ_i w̃_i Q_i/α ],        w̃_i = w_i/Σ_j w_j

    (Burda et al. 2015 for the bound on log Z, Cremer et al. 2017 for its being one on the weighted law's own objective).
    It needs densities that are right: E w_i = Z only then. With one particle both are the same.
    """
    if not weighted:
        entropy = -jnp.mean(log_prob)
        return jnp.mean(values) + alpha * entropy, entropy
    log_weight = values / alpha - log_prob
    log_mean = jax.nn.logsumexp(log_weight) - jnp.log(values.shape[0])
    return alpha * log_mean, log_mean - jnp.sum(jax.nn.softmax(log_weight) * values) / alpha


def shares(values: Array, log_prob: Array, alpha: Array, weighted: bool) -> Array:
    """The probability with which each particle is executed, `[M]`."""
    if weighted:
        return jax.nn.softmax(values / alpha - log_prob)
    return jnp.full(values.shape, 1 / values.shape[0])


def effective_size(executed: Array) -> Array:
    """Of particles executed with these probabilities `[M]`, the effective number: M if all are alike, 1 if one has them all."""
    return 1 / jnp.sum(executed**2)

r"""Networks that sample in one call: SQL's actor, and S²AC(φ,θ,ψ)'s f_ψ.

**SQL's** f_ψ(s, z) follows the Stein direction on Q/α (`stein_loss`), its only sampler (Haarnoja et al. 2017). Its outputs are a place m and a
width w, u = m(s, z) + w(s, z) g(z), w > 0, where squash(g(z)) is uniform on the box (`uniform_pre_tanh`). So the first law is nearly the one of an
infinite temperature, and a narrow one is a small w; a plain network starts nearly as a point, and has not become wide enough long after.

**S²AC's** is a mixture of K Gaussians before the squash, whose shares, means and spreads a network gives, so it has a density of its own. It is fitted to
what the agent executes by maximum likelihood: with the particles u_j, executed with probabilities p_j, it descends −Σ_j p_j log f_ψ(u_j|s), which over
states and draws is KL(executed ‖ f_ψ) up to a constant. So it loses no mode that the particles keep.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from s2ac.algorithms.protocol import Auxiliary, Energy
from s2ac.algorithms.start import box_of
from s2ac.distributions import Box, Gaussian, std_between, uniform_pre_tanh
from s2ac.nets.mlp import init_mlp, mlp
from s2ac.samplers import make_svgd
from s2ac.samplers.kernel import mean
from s2ac.types import Array, EnvSpec, Key, LogTarget, Params

STEIN_WIDTH = 0.25
"""σ² of SQL's kernel over the mean squared distance of the outputs."""

COMPONENTS = 8
"""K, Gaussians of the mixture."""


class Network(NamedTuple):
    """SQL's network, for one observation."""

    init: Callable[[Key], Params]
    draw: Callable[[Key, Params, Array, int], Array]  # `[num, D]`, before the squash


def make_network(spec: EnvSpec, hidden: tuple[int, ...], activation: str) -> Network:
    """SQL's network with these hidden layers."""

    def init(key: Key) -> Params:
        return init_mlp(key, (spec.observation_size + spec.action_size, *hidden, 2 * spec.action_size))

    def output(params: Params, noise: Array, observation: Array) -> Array:
        place, raw = jnp.split(mlp(params, jnp.concatenate([observation, noise]), activation), 2)
        return place + jax.nn.softplus(raw) / jnp.log(2.0) * uniform_pre_tanh(noise)

    def draw(key: Key, params: Params, observation: Array, num: int) -> Array:
        noise = jax.random.normal(key, (num, spec.action_size))
        return jax.vmap(lambda z: output(params, z, observation))(noise)

    return Network(init, draw)


def policy_target(box: Box, energy: Energy, alpha: Array) -> LogTarget:
    """u ↦ Q(s, squash(u))/α + log |det d squash/du|: the maximum-entropy policy before the squash, unnormalised."""
    return lambda pre_tanh: energy(box.squash(pre_tanh)) / alpha + box.log_det(pre_tanh)


def stein_loss(key: Key, points: Array, target: LogTarget) -> Array:
    r"""−Σ_i v(u_i)ᵀ u_i with v, SVGD's velocity at the outputs `points` themselves, held constant.

    Its gradient is that of KL(law of f_ψ ‖ p) in the kernel's function space, pulled back to ψ. The sum over the other outputs alone
    (`leave-one-out`) is an unbiased estimate of that velocity; with the self term, ∇log p(u_i)/M without its share of repulsion, the
    law would be too narrow.
    """
    stein = make_svgd(1.0, mean(STEIN_WIDTH), "leave-one-out")
    fixed = jax.lax.stop_gradient(points)
    moved, _ = stein.step(key, stein.init(fixed, jnp.zeros(points.shape[0])), target)
    return -jnp.mean(jnp.sum(jax.lax.stop_gradient(moved.particles - fixed) * points, axis=-1))


class Mixture(NamedTuple):
    """K Gaussians with independent dimensions."""

    log_share: Array  # [K]
    mean: Array  # [K, D]
    std: Array  # [K, D]

    def log_density(self, point: Array) -> Array:
        """log Σ_k share_k N(point; mean_k, std_k²)."""
        each = jax.vmap(lambda m, s: Gaussian(m, s).log_density(point))(self.mean, self.std)
        return jax.nn.logsumexp(self.log_share + each)

    def sample(self, key: Key) -> Array:
        """One point `[D]`, from D + 1 normal numbers alone: the first picks the component by inversion."""
        noise = jax.random.normal(key, (1 + self.mean.shape[1],))
        passed = jax.scipy.stats.norm.cdf(noise[0]) > jnp.cumsum(jnp.exp(self.log_share))
        last = self.mean.shape[0] - 1
        chosen = jax.nn.one_hot(jnp.minimum(jnp.sum(passed), last), last + 1)  # shares may sum to a little below 1
        return chosen @ self.mean + (chosen @ self.std) * noise[1:]


def init_mixture(key: Key, spec: EnvSpec, hidden: tuple[int, ...]) -> Params:
    """A network to a mixture whose means are apart from the first."""
    key_network, key_means = jax.random.split(key)
    width = COMPONENTS * spec.action_size
    *layers, last = init_mlp(key_network, (spec.observation_size, *hidden, COMPONENTS + 2 * width))
    apart = jax.random.normal(key_means, (width,))
    return *layers, last._replace(bias=last.bias.at[COMPONENTS : COMPONENTS + width].add(apart))


def mixture_of(params: Params, observation: Array, activation: str, bounds: tuple[float, float]) -> Mixture:
    """The mixture at one observation; the spreads run smoothly between their bounds."""
    output = mlp(params, observation, activation)
    means, raw = jnp.split(output[COMPONENTS:].reshape(2 * COMPONENTS, -1), 2)
    return Mixture(jax.nn.log_softmax(output[:COMPONENTS]), means, std_between(raw, *bounds))


def make_mixture(spec: EnvSpec, config: Any) -> Auxiliary:
    """f_ψ, a mixture fitted to what the policy executes."""
    box, bounds = box_of(spec), (config.min_std, config.max_std)
    law = lambda params, observation: mixture_of(params, observation, config.activation, bounds)  # noqa: E731

    def loss(params: Params, observation: Array, particles: Array, shares: Array) -> Array:
        return -shares @ jax.vmap(law(params, observation).log_density)(particles)

    def act(key: Key, params: Params, observation: Array) -> Array:
        return box.squash(law(params, observation).sample(key))

    return Auxiliary(lambda key: init_mixture(key, spec, config.hidden), loss, act)

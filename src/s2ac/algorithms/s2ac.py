r"""S²AC: the policy is L steps of SVGD on Q(s, ·)/α, from a Gaussian start, with an exact density.

Particles live before the squash: u in R^D, action a = squash(u). For one state s:

    target       log p(u) = Q(s, a(u))/α + log |det da/du|, unnormalised: exp(Q/α) over actions
    start        references y_1…y_M and particles x_1…x_N from q⁰ = N(μ_θ(s), σ_θ(s)²), or a fixed N(0, start_std²)
    velocity     v(x) = 1/M Σ_j [k(x, y_j) ∇log p(y_j) + ∇_{y_j} k(x, y_j)]                                  (paper: Eq. 1)
    L steps      x ← T(x) = x + ε v(x),  y_j ← T(y_j),  ε = min(step_size · α, bound)
    density      log q(x^L) = log q⁰(x⁰) − Σ_l log det(I + ε ∇v(x^l)),  log π(a|s) = log q(x^L) − log |det da/du|
    executed     any particle; or, `weighted`, particle i in proportion to w_i = exp(Q_i/α)/π_i

**What is exact.** Given the references, T is one smooth map for all particles, invertible everywhere by its bound (`samplers/bounds.py`), and
needs first derivatives of Q alone, so log q is exact, whatever critic is climbed: E[exp(log p − log q)] = ∫p for every set of references.
(The forms with a score of the particle's own need a smooth critic for that: at the kinks of a ReLU one their map jumps.)
**What is a bound.** The references are drawn for every action: −E log q is a lower bound of the entropy of one particle, before weighting.
Of a `weighted` policy `weights.soft_value` bounds entropy (its H) and soft value (α E log mean w) from below; the gap closes with more particles.

The three systems of the paper: S²AC(φ,θ) learns the start; S²AC(φ) has a fixed one, `start_std`; S²AC(φ,θ,ψ) adds f_ψ, `amortized`.
Departures from the paper: the paper's velocity is α times the one above, which is why ε is in units of α; its particles are their own
references (`form`, preset `paper`), so their density is approximate; it learns the start through the sampler (`start_alpha` None), which here
has SAC's loss. With `num_steps = 0` and one particle this is SAC, with flows SAC-NF, bit for bit.
"""

import jax
import jax.numpy as jnp

from s2ac.algorithms.amortized import make_mixture, policy_target
from s2ac.algorithms.maxent import make_maxent
from s2ac.algorithms.protocol import ActionSample, Algorithm, Energy, Policy
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.start import box_of, make_fixed_start, make_start, start_metrics
from s2ac.samplers import Sampler, make_svgd, run
from s2ac.samplers.kernel import mean
from s2ac.types import Array, EnvSpec, Key, Params


def make_sampler(config: S2acConfig, alpha: Array | float) -> Sampler:
    """The config's SVGD sampler at a temperature. Its density is exact with references, the paper's first order without."""
    exact = config.has_references
    return make_svgd(
        config.step_size * alpha,
        mean(config.bandwidth_factor),
        config.form,
        "log-det" if exact else "trace",
        "exact" if exact else "hutchinson",
        config.max_jacobian_norm,
        config.num_references if exact else None,
    )


RECORDED = ("step_size", "jacobian_norm", "guarded", "folded", "bandwidth")
"""Of what a sampler tells about its steps, what is recorded."""


def make_stein_policy(spec: EnvSpec, config: S2acConfig) -> Policy:
    """Particles of one observation, moved by SVGD from the start."""
    box = box_of(spec)
    start = make_start(spec, config) if config.start_std is None else make_fixed_start(spec, config.start_std)
    drawn = config.num_particles + (config.num_references if config.has_references else 0)

    def draw(key: Key, params: Params, observation: Array, energy: Energy, alpha: Array) -> ActionSample:
        law = start.law(params, observation)
        key_start, key_run = jax.random.split(key)
        particles, log_start, log_det = law.draw(key_start, drawn)
        log_density = log_start - log_det
        metrics = start_metrics(law, log_start, log_det)
        if config.num_steps:
            sampler, target = make_sampler(config, alpha), policy_target(box, energy, alpha)
            state, info = run(sampler, key_run, sampler.init(particles, log_density), target, config.num_steps)
            metrics["entropy_sampler"] = jnp.mean(log_density) - jnp.mean(state.log_density)
            particles, log_density = state.particles, state.log_density
            metrics |= {name: jnp.mean(getattr(info, name)) for name in RECORDED}
            metrics["particle_std"] = jnp.mean(jnp.std(particles, axis=0))
        squash = jax.vmap(box.log_det)(particles)
        metrics["entropy_squash"] = jnp.mean(squash)
        return ActionSample(jax.vmap(box.squash)(particles), log_density - squash, metrics, particles)

    def start_loss(key: Key, params: Params, observation: Array, energy: Energy, alpha: Array) -> Array:
        """SAC's, at the start's own temperature."""
        assert config.start_alpha is not None
        law = start.law(params, observation)
        particles, log_start, log_det = law.draw(jax.random.split(key)[0], config.num_particles)
        log_prob = log_start - log_det - jax.vmap(box.log_det)(particles)
        value = jax.vmap(lambda u: energy(box.squash(u)))(particles)
        return jnp.mean((alpha + config.start_alpha) * log_prob - value)

    def mean_action(params: Params, observation: Array) -> Array:
        return box.squash(start.law(params, observation).middle)

    loss = None if config.start_alpha is None else start_loss
    return Policy(start.init, draw, mean_action, loss, config.weighted, config.explore_alpha, "argmax")


def make_s2ac(spec: EnvSpec, config: S2acConfig) -> Algorithm:
    """S²AC."""
    beside = make_mixture(spec, config) if config.amortized else None
    return make_maxent(spec, config, make_stein_policy(spec, config), beside, config.guide)

r"""S²AC: the actor is L steps of SVGD on Q(s, ·)/α, started from a Gaussian.

Particles live before the squash: u in R^D, action a = squash(u). The policy's target in u is

    log p(u|s) = Q(s, a(u)) / α + log |det da/du|,

and the reported density is log π(a|s) = log q^L(u) − log |det da/du|. The three systems of the paper:

    S²AC(φ,θ)     start N(μ_θ(s), σ_θ(s)²), learned through the sampler         `start="learned"`
    S²AC(φ)       fixed start N(0, start_std²), no actor network                 `start="fixed"`
    S²AC(φ,θ,ψ)   adds f_ψ(s, z), trained along the Stein direction              `amortized=True`

Departures from the paper: the velocity is k∇log p + ∇k with p as above (the paper's is α times that, and its released
code leaves out both 1/α and the squash); the step is bounded (`max_jacobian_norm`) instead of dropping particles
that leave a range. The start may pass through flows (`num_flows`). With `num_steps = 0` and one particle this is SAC, with flows
SAC-NF, bit for bit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import jax
import jax.numpy as jnp

from s2ac.algorithms.base import ActionSample, Actor, Algorithm, Modes
from s2ac.algorithms.maxent import Auxiliary, make_maxent
from s2ac.algorithms.sac import SacConfig, box_of, gaussian_of, init_gaussian
from s2ac.checks import InvalidArgument
from s2ac.distributions import Box, Gaussian, uniform_pre_tanh
from s2ac.flows import FLOWS, Flowed, init_flows
from s2ac.networks import init_mlp, key_apart, mlp
from s2ac.ranges import (
    NOT_NEGATIVE,
    Count,
    CountOrZero,
    Flag,
    Positive,
    PositiveOrNone,
    Sizes,
    between,
    one_of,
    or_none,
)
from s2ac.samplers import FORMS, Sampler, make_svgd, run
from s2ac.samplers.base import DENSITIES, HESSIANS
from s2ac.samplers.kernel import as_rule, mean
from s2ac.types import Array, EnvSpec, Key, LogTarget, Params

PRECISIONS = ("auto", "float32", "bfloat16")

EDGE = 0.999
"""Of the box: fresh particles around an action nearer to it are drawn around this."""


@dataclass(frozen=True)
class S2acConfig(SacConfig):
    """S²AC in its three forms."""

    num_particles: Count = 10
    """M, particles per observation (tracer forms: references, with as many tracers)."""

    num_steps: CountOrZero = 3
    """L, SVGD steps."""

    step_size: Positive = 0.1
    """ε, for a velocity in units of the log-density."""

    scale_step_by_alpha: Flag = False
    """Multiply ε by α: the paper's velocity is α times ours."""

    bandwidth: PositiveOrNone = None
    """The kernel's standard deviation; if not given, σ² = bandwidth_factor · mean squared distance."""

    bandwidth_factor: Positive = 0.25
    """Factor of the mean rule."""

    form: Annotated[str, one_of(FORMS)] = "all"
    """all, leave-one-out, paper, normalized, tracer, tracer-own-score or tracer-normalized: see samplers/svgd.py."""

    density: Annotated[str, one_of(DENSITIES)] = "trace"
    """trace (first order) or log-det."""

    hessian: Annotated[str, one_of(HESSIANS)] = "hutchinson"
    """hutchinson or exact, for the forms that need the critic's curvature."""

    max_jacobian_norm: PositiveOrNone = 0.9
    """Bound on ε‖J‖; none if not given."""

    differentiate_score: Flag = True
    """Whether the actor's gradient sees the critic's second derivatives inside the sampler."""

    resample: Flag = False
    """Execute a particle in proportion to its importance weight, and learn what that policy is worth: see `soft_value_of`."""

    guide: Sizes = ()
    """Hidden layers of a critic that the sampler (and f_ψ) climbs and that says nothing in the targets, see `with_guide`; none if empty. The action joins its last one."""

    score_precision: Annotated[str, one_of(PRECISIONS)] = "auto"
    """Of the critic's gradient inside the sampler: float32, bfloat16, or auto: bfloat16 on an accelerator."""

    min_std: Positive = 0.3
    """Smallest standard deviation of the start: below it the particles freeze in one mode."""

    start: Annotated[str, one_of(("learned", "fixed"))] = "learned"
    """learned (φ,θ) or fixed (φ)."""

    start_alpha: Annotated[float | None, or_none(NOT_NEGATIVE)] = None
    """If given, the start is SAC's policy at the temperature α₀ = max(start_alpha, start_ratio · α), wide enough for every mode. If
    not, it is learned through the sampler, as in the paper."""

    start_ratio: Annotated[float, between(1, math.inf, open_high=True)] = 2.0
    """The start is hotter than the policy by at least this."""

    mode_alpha: PositiveOrNone = None
    """With `resample` and `start_alpha`: choose between modes at this temperature where it is above α: see `make_modes`."""

    start_std: Positive = 0.707
    """Standard deviation of a fixed start: variance 0.5."""

    num_flows: CountOrZero = 0
    """Flows that a learned start passes through before the sampler, as in SAC-NF."""

    flow: Annotated[str, one_of(FLOWS)] = "radial"
    """radial, planar, coupling or iaf (inverse autoregressive)."""

    amortized: Flag = False
    """Also train f_ψ(s, z), for use at test time (φ,θ,ψ)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.guide and self.frequency is not None:
            raise InvalidArgument(
                f"guide = {self.guide}: must be empty where frequency is set (it is {self.frequency}): its action would see no sine; --frequency None, or --guide with nothing after it"
            )
        if (
            self.batch_norm and self.resample
        ):  # the batch's statistics would be of the start's actions, not the policy's
            raise InvalidArgument(
                "batch_norm = True: must be off where resample is on (--no-batch-norm or --no-resample)"
            )
        if self.num_flows and self.start == "fixed":
            raise InvalidArgument(
                f"num_flows = {self.num_flows}: must be 0 where the start is fixed (S²AC(φ)); --num-flows 0"
            )
        if self.num_flows and self.mode_alpha is not None:  # σ_θ is then not the start's width
            raise InvalidArgument(
                f"num_flows = {self.num_flows}: must be 0 where mode_alpha is set (it is {self.mode_alpha}; --mode-alpha None)"
            )


def start_temperature(config: S2acConfig, alpha: Array | float) -> Array:
    """α₀, at which an annealed start is learned."""
    assert config.start_alpha is not None
    return jnp.maximum(config.start_alpha, config.start_ratio * alpha)


def make_sampler(config: S2acConfig, alpha: Array | float = 1.0) -> Sampler:
    """The config's SVGD sampler at a temperature."""
    rule = mean(config.bandwidth_factor) if config.bandwidth is None else as_rule(config.bandwidth)
    tracer = FORMS[config.form].tracer
    return make_svgd(
        config.step_size * alpha if config.scale_step_by_alpha else config.step_size,
        rule,
        config.form,
        config.density,
        config.hessian,
        config.max_jacobian_norm,
        config.num_particles if tracer else None,
        config.differentiate_score,
    )


def policy_target(box: Box, q: Callable[[Array], Array], alpha: Array) -> LogTarget:
    """u ↦ Q(s, squash(u))/α + log |det d squash/du|: the maximum-entropy policy before the squash, unnormalised."""
    return lambda pre_tanh: q(box.squash(pre_tanh)) / alpha + box.log_det(pre_tanh)


def score_dtype(config: S2acConfig) -> Any:
    """In which the critic's gradient is computed. It only steers the particles, whose density follows the path they take."""
    half = config.score_precision == "bfloat16"
    if config.score_precision == "auto":
        half = jax.default_backend() != "cpu"
    return jnp.bfloat16 if half else jnp.float32


def make_svgd_actor(spec: EnvSpec, config: S2acConfig) -> Actor:
    """Particles of one observation, moved by SVGD from the start distribution."""
    box = box_of(spec)
    if config.num_steps:
        make_sampler(config)  # refuses bad settings now, not in the first update
    drawn = config.num_particles * (2 if config.num_steps and FORMS[config.form].tracer else 1)

    def gaussian(params: Params, observation: Array) -> Gaussian:
        if config.start == "learned":
            return gaussian_of(params, observation, config)
        return Gaussian(jnp.zeros(spec.action_size), jnp.full(spec.action_size, config.start_std))

    def start_of(params: Params, observation: Array) -> Flowed:
        network, flows = params if config.num_flows else (params, ())
        return Flowed(gaussian(network, observation), config.flow, flows)

    def sample(key: Key, params: Params, observation: Array, q: Callable[[Array], Array], alpha: Array) -> ActionSample:
        law = start_of(params, observation)
        key_start, key_run = jax.random.split(key)
        particles, log_start, log_det = law.draw(key_start, drawn)
        log_density = log_start - log_det
        metrics = {"entropy_start": -jnp.mean(log_start)}
        if config.num_flows:
            metrics["entropy_flow"] = jnp.mean(log_det)
        if config.num_steps:
            sampler = make_sampler(config, alpha)
            state = sampler.init(particles, log_density)
            target = policy_target(box, q, alpha)
            state, info = run(sampler, key_run, state, target, config.num_steps)
            metrics["entropy_sampler"] = jnp.mean(log_density) - jnp.mean(state.log_density)
            particles, log_density = state.particles, state.log_density
            metrics |= {"step_size": jnp.mean(info.step_size), "jacobian_norm": jnp.mean(info.jacobian_norm)}
            metrics |= {"guarded": jnp.mean(info.guarded), "bandwidth": jnp.mean(info.bandwidth)}
            metrics["particle_std"] = jnp.mean(jnp.std(particles, axis=0))
        squash = jax.vmap(box.log_det)(particles)
        metrics |= {"entropy_squash": jnp.mean(squash), "std": jnp.mean(law.gaussian.std)}
        return ActionSample(jax.vmap(box.squash)(particles), log_density - squash, metrics)

    def start_loss(key: Key, params: Params, observation: Array, q: Callable[[Array], Array], alpha: Array) -> Array:
        """SAC's, at the start's own temperature."""
        law = start_of(params, observation)
        particles, log_start, log_det = law.draw(jax.random.split(key)[0], drawn)
        log_prob = log_start - log_det - jax.vmap(box.log_det)(particles)
        value = jax.vmap(lambda u: q(box.squash(u)))(particles)
        return jnp.mean(start_temperature(config, alpha) * log_prob - value)

    def mean_action(params: Params, observation: Array) -> Array:
        return box.squash(start_of(params, observation).middle)

    def init(key: Key) -> Params:
        if config.start == "fixed":
            return ()
        network = init_gaussian(key, spec, config)
        flows = init_flows(key_apart(key), config.flow, config.num_flows, spec.action_size)
        return (network, flows) if flows else network

    modes = None if config.mode_alpha is None else make_modes(config, config.mode_alpha, box, gaussian)
    loss = None if config.start_alpha is None else start_loss
    return Actor(init, sample, mean_action, score_dtype(config), config.resample, modes, loss)


def make_modes(config: S2acConfig, mode_alpha: float, box: Box, gaussian: Callable[[Params, Array], Gaussian]) -> Modes:
    r"""Choose a mode at a temperature τ ≥ α, and the place in it at α.

    exp(Q/α) weighs two modes by exp(ΔQ/α). So at a small α a critic that is wrong by α between two equally good ways to act decides
    that one of them is never taken, and what is never taken is never corrected. Between modes that are worse by many α this
    freedom costs much, between equally good ones it gains at most α log (number of modes). Hence

        mode     one of the start's particles, by exp(Q/τ)/π, with τ = max(α, mode_alpha), and in training τ = α₀
        place    by exp(Q/α)/q among as many fresh particles of q = N(mode, σ_θ² τ'/α₀), with τ' = max(α, mode_alpha)

    where σ_θ, learned at α₀, is scaled as the width of a mode in which Q is quadratic, which goes with the root of the temperature.
    With mode_alpha = α the second choice changes nothing but noise, and is left out. The critic's target stays α log mean w: it is off-policy, and
    exceeds what this policy is worth by α KL of the two choices between modes.
    """
    if config.start_alpha is None or not config.resample:
        raise InvalidArgument(f"mode_alpha = {mode_alpha}: needs start_alpha, and resample = True")

    def temperature(alpha: Array, training: bool) -> Array:
        return start_temperature(config, alpha) if training else jnp.maximum(alpha, mode_alpha)

    def near(key: Key, params: Params, observation: Array, action: Array, alpha: Array) -> ActionSample:
        scaled = (action - 0.5 * (box.low + box.high)) / box.half_width
        shrink = jnp.sqrt(temperature(alpha, False) / start_temperature(config, alpha))
        law = Gaussian(jnp.arctanh(jnp.clip(scaled, -EDGE, EDGE)), gaussian(params, observation).std * shrink)
        points = law.sample(key, config.num_particles)
        log_density = jax.vmap(law.log_density)(points) - jax.vmap(box.log_det)(points)
        return ActionSample(jax.vmap(box.squash)(points), log_density, {})

    return Modes(temperature, near)


def make_amortized(spec: EnvSpec, config: S2acConfig) -> Auxiliary:
    r"""f_ψ(s, z), a network that imitates the sampler: its outputs u_i move along the Stein direction.

    ψ descends −Σ_i v(u_i)ᵀ f_ψ(s, z_i) with v, SVGD's velocity at the outputs themselves, held constant: the gradient of
    KL(law of f_ψ ‖ p) in the kernel's function space, pulled back to ψ. The sum over the other outputs alone (`leave-one-out`) is an
    unbiased estimate of that velocity; with the self term, ∇log p(u_i)/M without its share of repulsion, the law would be too narrow.

    The network's outputs are a place m and a width w, u = m(s, z) + w(s, z) g(z), w > 0, where squash(g(z)) is uniform on the box
    (`uniform_pre_tanh`). So the first law is nearly the one of an infinite temperature, and a narrow one is a small w; a plain network starts
    nearly as a point, and has not become wide enough long after.
    """
    box = box_of(spec)
    stein = make_svgd(1.0, mean(config.bandwidth_factor), "leave-one-out")

    def output(params: Params, noise: Array, observation: Array) -> Array:
        place, raw = jnp.split(mlp(params, jnp.concatenate([observation, noise]), config.activation), 2)
        return place + jax.nn.softplus(raw) / jnp.log(2.0) * uniform_pre_tanh(noise)

    def loss(params: Params, key: Key, observation: Array, q: Callable[[Array], Array], alpha: Array) -> Array:
        key_noise, key_step = jax.random.split(key)
        noise = jax.random.normal(key_noise, (config.num_particles, spec.action_size))
        points = jax.vmap(lambda z: output(params, z, observation))(noise)
        fixed = jax.lax.stop_gradient(points)
        state = stein.init(fixed, jnp.zeros(config.num_particles))
        moved, _ = stein.step(key_step, state, policy_target(box, q, alpha))
        return -jnp.mean(jnp.sum(jax.lax.stop_gradient(moved.particles - fixed) * points, axis=-1))

    def act(key: Key, params: Params, observation: Array) -> Array:
        return box.squash(output(params, jax.random.normal(key, (spec.action_size,)), observation))

    def init(key: Key) -> Params:
        return init_mlp(key, (spec.observation_size + spec.action_size, *config.hidden, 2 * spec.action_size))

    return Auxiliary(init, loss, act)


def make_s2ac(spec: EnvSpec, config: S2acConfig) -> Algorithm:
    """S²AC."""
    auxiliary = make_amortized(spec, config) if config.amortized else None
    return make_maxent(spec, config, make_svgd_actor(spec, config), auxiliary, config.guide)

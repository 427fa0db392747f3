"""The closed forms of SVGD against autodiff, exact determinants, samples and another implementation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from s2ac.distributions import Gaussian
from s2ac.samplers import FORMS, make_svgd, run
from s2ac.samplers.bounds import everywhere_norm
from s2ac.samplers.interaction import _expanded, interaction
from s2ac.samplers.kernel import mean, squared_distances
from s2ac.samplers.protocol import score
from targets import gaussian, random_skewed, skewed, two_modes

SHAPES = [(2, 1), (10, 2), (5, 6), (13, 4), (30, 17)]


CASES_PER_SHAPE = 40


def autodiff_field(points, sources, scores, bandwidth):
    """F of the docstring as a naive double loop in vmap, and its derivative by autodiff."""

    def one(index, x):
        r = x[None] - sources
        kernel = jnp.exp(-0.5 * jnp.sum(r**2, axis=1) / bandwidth**2) * (jnp.arange(len(sources)) != index)
        return jnp.sum(kernel[:, None] * (scores + r / bandwidth**2), axis=0)

    indices = jnp.arange(len(points))
    return jax.vmap(one)(indices, points), jax.vmap(jax.jacfwd(one, argnums=1))(indices, points)


def autodiff_normalized(points, sources, scores, bandwidth, log_target):
    """The same of (F + s)/(Z + 1), the quotient differentiated as it stands."""

    def one(index, x):
        r = x[None] - sources
        kernel = jnp.exp(-0.5 * jnp.sum(r**2, axis=1) / bandwidth**2) * (jnp.arange(len(sources)) != index)
        force = jnp.sum(kernel[:, None] * (scores + r / bandwidth**2), axis=0) + jax.grad(log_target)(x)
        return force / (jnp.sum(kernel) + 1)

    indices = jnp.arange(len(points))
    return jax.vmap(one)(indices, points), jax.vmap(jax.jacfwd(one, argnums=1))(indices, points)


@pytest.mark.parametrize(
    ("count", "dimension"), [pytest.param(*s, marks=pytest.mark.slow) if s == (13, 4) else s for s in SHAPES]
)
def test_closed_forms_equal_autodiff(x64, count, dimension):
    """Velocity, trace, Jacobian and both density rules of every form, on random skewed targets."""

    def case(key):
        key_target, key_points, key_width, key_step = jax.random.split(key, 4)
        log_target = skewed(random_skewed(key_target, dimension))
        points = jax.random.normal(key_points, (count + 2, dimension)) * 1.5
        bandwidth = jnp.exp(jax.random.uniform(key_width, (), minval=-0.7, maxval=1.0))
        scores, hessian = score(log_target, points), jax.vmap(jax.hessian(log_target))(points)

        field, derivative = autodiff_field(points, points[:count], scores[:count], bandwidth)
        squared = squared_distances(points, points[:count])
        ours = interaction(points, points[:count], scores[:count], squared, bandwidth)
        probe = jnp.where(jnp.arange(dimension) % 3 == 0, -1.0, 1.0)
        kernel = jnp.exp(-0.5 * squared / bandwidth**2) * (1 - jnp.eye(*squared.shape))
        expanded, probed = (
            _expanded(points, points[:count], scores[:count], kernel, bandwidth**2, z) for z in (None, probe)
        )
        errors = {
            "velocity": ours.velocity - field,
            "jacobian": ours.jacobian - derivative,
            "trace": ours.trace - jnp.trace(derivative, axis1=1, axis2=2),
            "expanded velocity": expanded.velocity - field,
            "expanded jacobian": expanded.jacobian - derivative,
            "probed velocity": probed.velocity - field,
            "probed trace": probed.trace - jnp.trace(derivative, axis1=1, axis2=2),
            "probed norm": probed.norm - jnp.linalg.norm(derivative @ probe, axis=1),
        }
        size = 0.05
        eye = jnp.eye(dimension)[None]
        mean_force, mean_derivative = autodiff_normalized(points, points[:count], scores[:count], bandwidth, log_target)
        own = {
            "all": ((field + scores)[:count] / count, (derivative + hessian)[:count] / count),
            "leave-one-out": (field[:count] / (count - 1), derivative[:count] / (count - 1)),
            "paper": ((field + scores)[:count] / count, derivative[:count] / (count - 1)),
            "tracer": (field[count:] / count, derivative[count:] / count),
            "tracer-own-score": (
                (field + scores)[count:] / (count + 1),
                (derivative + hessian)[count:] / (count + 1),
            ),
            "normalized": (mean_force[:count], mean_derivative[:count]),
            "tracer-normalized": (mean_force[count:], mean_derivative[count:]),
        }
        for form, (velocity, jacobian) in own.items():
            references = count if FORMS[form].tracer else None
            start = points if references else points[:count]
            for density in ("trace", "log-det"):
                sampler = make_svgd(size, bandwidth, form, density, num_references=references)
                state, _ = sampler.step(key_step, sampler.init(start, jnp.zeros(len(start))), log_target)
                volume = (
                    size * jnp.trace(jacobian, axis1=1, axis2=2)
                    if density == "trace"
                    else jnp.linalg.slogdet(eye + size * jacobian)[1]
                )
                errors[f"{form} {density} density"] = state.log_density + volume
                before = start[references:] if references else start
                errors[f"{form} {density} step"] = state.particles - before - size * velocity
        return jax.tree.map(lambda error: jnp.max(jnp.abs(error)), errors)

    keys = jax.random.split(jax.random.key(count * 100 + dimension), CASES_PER_SHAPE)
    for name, error in jax.jit(jax.vmap(case))(keys).items():
        assert error.max() < 1e-10, name


@pytest.mark.parametrize("step_size", [0.05, 30.0], ids=["short", "folds"])
def test_all_particles_step_is_the_derivative_of_what_runs(x64, step_size):
    """Not of a formula: the own block of autodiff through `step` itself, Hessian included. Of a step that is far too long some blocks
    turn space over, and their share is told."""
    sampler = make_svgd(step_size, 0.9, "all", "log-det")
    particles = jax.random.normal(jax.random.key(1), (6, 3))
    log_target = skewed(random_skewed(jax.random.key(2), 3))
    one_step = lambda x: sampler.step(jax.random.key(0), sampler.init(x, jnp.zeros(6)), log_target)  # noqa: E731

    def end_of(index, x):
        return one_step(particles.at[index].set(x))[0].particles[index]

    @jax.jit
    def both():
        return one_step(particles), jax.vmap(jax.jacfwd(end_of, argnums=1))(jnp.arange(6), particles)

    (stepped, info), blocks = both()
    sign, log_det = jnp.linalg.slogdet(blocks)
    np.testing.assert_allclose(stepped.log_density, -log_det, atol=1e-10)
    assert round(6 * float(info.folded)) == np.sum(sign < 0)
    assert (0 < info.folded < 1) == (step_size > 1)


def test_no_gradient_flows_through_the_bound_on_the_step(x64):
    """With the step that the bound allows put in as a constant the gradient is the same."""
    points = jax.random.normal(jax.random.key(19), (6, 2))

    def slope(step_size, bound):
        sampler = make_svgd(step_size, 0.8, "all", max_jacobian_norm=bound)

        def end(scale):
            state, info = sampler.step(jax.random.key(0), sampler.init(points * scale, jnp.zeros(6)), two_modes)
            return jnp.sum(state.log_density) + jnp.sum(state.particles**2), info

        return jax.jit(jax.grad(end, has_aux=True))(1.0)

    bounded, info = slope(10.0, 0.4)
    assert info.guarded == 1
    np.testing.assert_allclose(slope(float(info.step_size), None)[0], bounded, rtol=1e-10)


def density_errors(step_size, target, count=10, dimension=2, steps=5):
    """First-order density against the exact own-block one, and that against the joint one per particle."""
    particles = 0.4 * jax.random.normal(jax.random.key(3), (count, dimension))
    zeros = jnp.zeros(count)
    by_rule = {}
    for density in ("trace", "log-det"):
        sampler = make_svgd(step_size, 1.0, "all", density)
        state, _ = run(sampler, jax.random.key(0), sampler.init(particles, zeros), target, steps)
        by_rule[density] = -jnp.mean(state.log_density)

    def flow(flat):
        state = sampler.init(flat.reshape(count, dimension), zeros)
        return run(sampler, jax.random.key(0), state, target, steps)[0].particles.ravel()

    joint = jnp.linalg.slogdet(jax.jacfwd(flow)(particles.ravel()))[1] / count
    return by_rule["trace"], by_rule["log-det"], joint


def test_first_order_density_against_exact_determinants(x64):
    coarse_trace, coarse_exact, joint = density_errors(0.1, gaussian())
    fine_trace, fine_exact, _ = density_errors(0.01, gaussian())
    coarse, fine = abs(coarse_trace - coarse_exact), abs(fine_trace - fine_exact)
    assert coarse < 0.012
    assert fine < 2e-4
    assert coarse > 50 * fine  # second order
    assert abs(coarse_exact) > 0.2  # the effect that the tolerances are small against
    assert abs(coarse_exact - joint) < 0.03 * abs(joint)


def test_particles_equal_blackjax(x64):
    blackjax = pytest.importorskip("blackjax")
    optax = pytest.importorskip("optax")
    bandwidth, size = 0.8, 0.1
    particles = jax.random.normal(jax.random.key(8), (12, 2))
    oracle = blackjax.svgd(jax.grad(two_modes), optax.sgd(size), blackjax.vi.svgd.rbf_kernel, lambda state: state)
    state = oracle.init(particles, {"length_scale": 2 * bandwidth**2})
    state = jax.lax.fori_loop(0, 100, lambda _, s: oracle.step(s), state)
    sampler = make_svgd(size, bandwidth, "all")
    ours, _ = run(sampler, jax.random.key(0), sampler.init(particles, jnp.zeros(12)), two_modes, 100)
    np.testing.assert_allclose(ours.particles, state.particles, atol=1e-6)


def test_bound_holds_everywhere(x64):
    """No point of a dense net has a steeper field than `everywhere_norm` says, and one comes close for one source."""
    net = jax.random.normal(jax.random.key(9), (4000, 2)) * 3
    for seed in range(5):
        sources = jax.random.normal(jax.random.key(seed), (5, 2))
        scores = 3 * jax.random.normal(jax.random.key(seed + 50), (5, 2))
        points = jnp.concatenate([sources, net])
        field = interaction(points, sources, scores, squared_distances(points, sources), jnp.array(0.7))
        steepest = jnp.linalg.norm(field.jacobian[5:] / 5, ord=2, axis=(1, 2)).max()
        bound = everywhere_norm(scores, jnp.array(0.7))
        assert steepest < bound < 6 * steepest


@pytest.mark.parametrize("form", FORMS)
def test_step_bound_is_kept_and_counted(x64, form):
    references = 10 if FORMS[form].tracer else None
    sharp = lambda x: -50 * jnp.sum(x**2)  # noqa: E731
    sampler = make_svgd(0.5, mean(), form, max_jacobian_norm=0.4, num_references=references)
    points = jax.random.normal(jax.random.key(10), (20, 2))
    state, info = run(sampler, jax.random.key(0), sampler.init(points, jnp.zeros(20)), sharp, 8)
    # A normalised tracer is bounded by what its references feel, so it may exceed the bound a little itself.
    assert info.jacobian_norm.max() <= (0.5 if form == "tracer-normalized" else 0.4 + 1e-12)
    if FORMS[form].own_hessian:
        assert (info.step_size * 100 * 2**0.5 <= 0.4 + 1e-12).all()  # the curvature that the cloud feels as a whole
    assert info.guarded.max() == 1
    assert (info.step_size <= 0.5).all()
    assert info.step_size.min() < 0.5
    assert jnp.isfinite(state.log_density).all()
    _, free_info = run(make_svgd(0.5, mean(), form, num_references=references), jax.random.key(0), state, gaussian(), 2)
    assert (free_info.step_size == 0.5).all()
    assert (free_info.guarded == 0).all()


def test_many_particles_estimate_the_jacobian_norm_by_a_probe(x64):
    particles = jax.random.normal(jax.random.key(14), (40, 6))
    probed, formed = make_svgd(0.1, 1.0, "leave-one-out"), make_svgd(0.1, 1.0, "leave-one-out", "log-det")
    state = probed.init(particles, jnp.zeros(40))
    keys = jax.random.split(jax.random.key(15), 500)
    norm = lambda sampler: jax.jit(jax.vmap(lambda key: sampler.step(key, state, two_modes)[1].jacobian_norm))  # noqa: E731
    estimates, truth = norm(probed)(keys), norm(formed)(keys[:1])[0]
    assert estimates.std() > 0
    assert 0.6 * truth < jnp.sqrt(jnp.mean(estimates**2)) < 1.6 * truth


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_vmap_over_a_thousand_states_keeps_the_dtype(x64, dtype):
    sampler = make_svgd(0.1, "median", "all", "log-det")

    def one(key, centre):
        particles = jax.random.normal(key, (4, 2), dtype)
        state = sampler.init(particles, jnp.zeros(4, dtype))
        return run(sampler, key, state, lambda x: -jnp.sum((x - centre) ** 2), 3)

    keys, centres = (
        jax.random.split(jax.random.key(16), 1000),
        jnp.linspace(-1, 1, 2000, dtype=dtype).reshape(1000, 2),
    )
    state, info = jax.jit(jax.vmap(one))(keys, centres)
    assert state.particles.shape == (1000, 4, 2)
    assert {leaf.dtype for leaf in jax.tree.leaves((state, info))} == {jnp.dtype(dtype)}
    alone, _ = one(keys[7], centres[7])
    np.testing.assert_allclose(state.particles[7], alone.particles, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("form", "hessian"),
    [
        pytest.param("all", "exact", marks=pytest.mark.slow),
        pytest.param("paper", "exact", marks=pytest.mark.slow),
        ("tracer", "exact"),
        pytest.param("all", "hutchinson", marks=pytest.mark.slow),
    ],
)
def test_gradients_through_all_steps(x64, form, hessian):
    """First and second order, with respect to the start, against finite differences."""
    references = 4 if FORMS[form].tracer else None
    sampler = make_svgd(0.1, 1.1, form, "trace", hessian, num_references=references)
    noise = jax.random.normal(jax.random.key(17), (6, 2))

    def loss(mean_and_log_std):
        start = Gaussian(*jnp.split(mean_and_log_std, 2))
        start = Gaussian(start.mean, jnp.exp(start.std))
        particles = start.mean[None] + start.std[None] * noise
        state = sampler.init(particles, jax.vmap(start.log_density)(particles))
        state, _ = run(sampler, jax.random.key(0), state, two_modes, 3)
        return jnp.mean(jax.vmap(two_modes)(state.particles) - state.log_density)

    check_grads(jax.jit(loss), (jnp.array([0.3, -0.2, 0.1, 0.0]),), order=2, modes=["rev"], atol=1e-5, rtol=1e-5)


def test_symmetries(x64):
    sampler = make_svgd(0.2, "median", "all", "log-det")
    particles = jax.random.normal(jax.random.key(20), (8, 3))
    order, shift = jax.random.permutation(jax.random.key(21), 8), jnp.array([5.0, -3.0, 100.0])
    target = skewed(random_skewed(jax.random.key(22), 3))

    @jax.jit
    def flow(points, offset):
        state = sampler.init(points, jnp.zeros(8))
        return run(sampler, jax.random.key(0), state, lambda x: target(x - offset), 5)[0]

    end, shuffled = flow(particles, 0 * shift), flow(particles[order], 0 * shift)
    moved = flow(particles + shift[None], shift)
    np.testing.assert_allclose(shuffled.particles, end.particles[order], atol=1e-12)
    np.testing.assert_allclose(moved.particles - shift[None], end.particles, atol=1e-10)
    np.testing.assert_allclose(moved.log_density, end.log_density, atol=1e-10)


def test_under_dispersion_is_what_it_was(x64):
    """Variance of ten SVGD particles on N(0, I): a property of SVGD; a moved number means a changed algorithm."""
    sampler = make_svgd(0.5, "median", "paper")

    @jax.jit
    @jax.vmap
    def variance(particles):
        state, _ = run(sampler, jax.random.key(0), sampler.init(particles, jnp.zeros(10)), gaussian(), 2000)
        return jnp.var(state.particles, axis=0).mean()

    for dimension, expected in ((1, 0.771), (2, 0.592), (6, 0.299)):
        measured = variance(jax.random.normal(jax.random.key(23), (8, 10, dimension))).mean()
        assert abs(measured - expected) < 0.03, dimension

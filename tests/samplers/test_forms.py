"""The closed forms of every form of SVGD against autodiff."""

import jax
import jax.numpy as jnp
import pytest

from s2ac.samplers import FORMS, make_svgd
from s2ac.samplers.interaction import _expanded, interaction
from s2ac.samplers.kernel import squared_distances
from s2ac.samplers.protocol import score
from targets import random_skewed, skewed

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
    ("count", "dimension"), [s if s in SHAPES[:2] else pytest.param(*s, marks=pytest.mark.slow) for s in SHAPES]
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

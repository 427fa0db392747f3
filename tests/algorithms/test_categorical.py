"""Critics of a distribution: its projection, what it learns, its loss's gradient, and whose statistics judge what."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax.extend import core

from s2ac.algorithms.categorical import ATOMS, GRID, REACH, aim_at_law, categorical_critics, project
from s2ac.algorithms.critics import Aim, Particles, energy_of, min_value, td_target
from s2ac.algorithms.maxent import aimed_entropy, make_critics
from s2ac.algorithms.s2ac import make_s2ac
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac import SacConfig
from s2ac.errors import InvalidArgument
from s2ac.nets.residual import fold_residual
from s2ac.types import EnvSpec
from transitions import RELU, SPEC, first_state, make_batch

CONFIG = SacConfig(hidden=(8,), categorical=True)


@pytest.fixture(scope="module")
def critics():
    return categorical_critics(2, SPEC, CONFIG)


@pytest.fixture(scope="module")
def states(critics):
    """A critic and a target that differ, with statistics that are not a batch's."""
    (critic, _), (_, target) = (critics.init(jax.random.key(seed)) for seed in (0, 1))
    return critic, target


@pytest.fixture(scope="module")
def particles():
    """Three actions for each next state, executed unequally."""
    keys = jax.random.split(jax.random.key(5), 3)
    executed = jax.nn.softmax(jax.random.normal(keys[1], (32, 3)))
    return Particles(jax.random.uniform(keys[0], (32, 3, 2), minval=-1), executed, jax.random.normal(keys[2], (32,)))


def test_projection_keeps_mass_and_mean_and_reports_what_leaves():
    law = jax.random.dirichlet(jax.random.key(0), jnp.ones(ATOMS))
    places = 0.7 * GRID + 0.33
    moved, clipped = project(law, places)
    np.testing.assert_allclose([moved.sum(), moved @ GRID, clipped], [1, law @ places, 0], atol=1e-5)
    assert (moved >= 0).all()

    one = jnp.zeros(ATOMS).at[3].set(0.25).at[9].set(0.75)
    places = jnp.zeros(ATOMS).at[3].set(2.03).at[9].set(REACH + 1)
    moved, clipped = project(one, places)
    at = round((2 + REACH) * 10)
    np.testing.assert_allclose(moved[jnp.array([at, at + 1, ATOMS - 1])], [0.25 * 0.7, 0.25 * 0.3, 0.75], atol=1e-5)
    np.testing.assert_allclose(clipped, 0.75)


def laws_by_hand(judges, observation, actions):
    """`[N, K]` of the critic that thinks less of each action."""
    found = []
    for action in actions:
        both = [jax.tree.map(lambda leaf, w=which: leaf[w], judges) for which in range(2)]
        laws = [np.asarray(jax.nn.softmax(c.logits(c.observe(observation, RELU), action, RELU))) for c in both]
        found.append(min(laws, key=lambda law: law @ GRID))
    return np.array(found)


def test_the_target_is_the_mixture_of_the_particles_laws_and_its_mean_is_y(critics, states, particles):
    batch = make_batch()
    judges = critics.judge(*states, batch, particles.action[:, 0])
    aim, told = jax.jit(lambda: aim_at_law(judges, batch, particles, 0.9, RELU))()
    y = td_target(batch.reward, batch.terminated, 0.9, particles.value)
    assert np.abs(y).max() < REACH
    np.testing.assert_allclose(aim.mean, y, rtol=1e-6)
    for row in (0, 7):
        laws = laws_by_hand(judges, batch.next_observation[row], particles.action[row])
        law = np.asarray(particles.executed[row]) @ laws
        bonus = particles.value[row] - law @ GRID
        places = batch.reward[row] + 0.9 * (1 - batch.terminated[row]) * (GRID + bonus)
        expected, _ = project(jnp.asarray(law), places)
        np.testing.assert_allclose(aim.law[row], expected, atol=1e-5)
    ended = np.flatnonzero(batch.terminated)
    np.testing.assert_allclose((aim.law @ GRID)[ended], batch.reward[ended], atol=1e-4)
    assert 0 < told["clipped"] < 0.2
    near = particles._replace(value=(aim.law @ GRID) * 0 + 0.1)
    small = batch._replace(reward=0.1 * batch.reward)
    aim, told = jax.jit(lambda: aim_at_law(judges, small, near, 0.5, RELU))()
    assert told["clipped"] == 0
    np.testing.assert_allclose(aim.law @ GRID, aim.mean, atol=1e-4)  # nothing left the range: the target's mean is y


def test_the_loss_is_the_cross_entropy_of_both_critics(critics, states):
    """Its gradient by the logits' bias is the mean of p − target: descending it moves the distribution to the target."""
    batch, actions = make_batch(), make_batch(seed=7).action
    law = jax.nn.one_hot(jnp.arange(32) % ATOMS, ATOMS)
    aim = Aim(law @ GRID, law)
    gradient, (metrics, _) = jax.jit(jax.grad(critics.loss, has_aux=True))(states[0], batch, actions, aim)
    judges = critics.judge(states[0], states[0], batch, actions)  # the critic itself, normalised as in its loss
    values, surprise = [], []
    for which in range(2):
        one = jax.tree.map(lambda leaf, w=which: leaf[w], judges)
        logits = jax.vmap(lambda o, a, c=one: c.logits(c.observe(o, RELU), a, RELU))(batch.observation, batch.action)
        np.testing.assert_allclose(gradient.head.bias[which], (jax.nn.softmax(logits) - law).mean(0), atol=1e-4)
        values.append(jax.nn.softmax(logits) @ GRID)
        surprise.append(-(jax.nn.log_softmax(logits) * law).sum(1).mean())
    np.testing.assert_allclose(metrics["critic_loss"], np.mean(surprise), rtol=1e-4)
    np.testing.assert_allclose(metrics["q_mean"], np.mean(values), atol=1e-4)
    np.testing.assert_allclose(metrics["td_error"], np.abs(np.array(values) - aim.mean[None]).mean(), rtol=1e-3)


def test_samplers_see_running_statistics_and_targets_those_of_the_joined_batch(critics, states):
    """So an action's energy does not depend on the others, nor on the batch; Q̄ at s' is the target's, of its own batch."""
    batch, actions = make_batch(), make_batch(seed=7).action
    _, (_, seen) = critics.loss(states[0], batch, actions, Aim(batch.reward, jnp.ones((32, ATOMS)) / ATOMS))
    moved, target = critics.move(states[0], states[1], seen)
    value = lambda judges, row=0: float(min_value(judges, batch.next_observation[row], RELU)(actions[row]))  # noqa: E731
    assert value(critics.climbed(moved)) == value(critics.plain(moved))
    assert value(critics.climbed(moved)) != value(critics.plain(states[0]))  # the averages moved
    assert value(critics.steady(moved, target)) != value(critics.plain(moved))
    halves = jax.tree.map(lambda leaf: leaf[:16], batch)
    whole, half = (value(critics.judge(*states, b, a)) for b, a in ((batch, actions), (halves, actions[:16])))
    assert abs(whole - half) > 1e-6  # of batch statistics
    for new, old, online in zip(*map(jax.tree.leaves, (target, states[1], moved)), strict=True):
        np.testing.assert_allclose(new, old + CONFIG.target_rate * (online - old), atol=1e-6)


def test_an_energy_keeps_its_curvature(critics, states):
    """Unlike that of a ReLU critic, which is piecewise linear."""
    energy = energy_of(critics.plain(states[0]), jnp.ones(3), RELU)
    assert np.abs(jax.jit(jax.hessian(energy))(jnp.array([0.1, -0.2]))).max() > 1e-4


def test_s2ac_learns_with_them_and_weights_are_refused():
    config = S2acConfig(hidden=(8,), categorical=True, num_steps=1, num_particles=2, num_references=2)
    algorithm = make_s2ac(SPEC, config)
    assert algorithm.scale_rewards == config.discount
    state = first_state(algorithm)
    state, metrics = jax.jit(algorithm.update)(jax.random.key(1), state, make_batch())
    assert np.isfinite(list(metrics.values())).all()
    assert 0 <= metrics["clipped"] <= 1
    assert not make_s2ac(SPEC, S2acConfig(hidden=(8,))).scale_rewards
    with pytest.raises(InvalidArgument, match="weighted = True: must be off where categorical is on"):
        S2acConfig(hidden=(8,), categorical=True, weighted=True)
    with pytest.raises(InvalidArgument, match=r"hidden = \(8, 4\): must be layers of one size"):
        SacConfig(hidden=(8, 4), categorical=True)
    for other in ({"batch_norm": True}, {"frequency": 1.0}):
        with pytest.raises(InvalidArgument, match="beside categorical critics"):
            SacConfig(hidden=(8,), categorical=True, **other)


def test_a_guide_beside_them_may_have_layers_of_two_sizes():
    """It is no critic of a distribution."""
    made = make_critics(SPEC, replace(CONFIG, hidden=(8, 8)), guide=(6, 4))
    (critic, guide), _ = jax.eval_shape(made.init, jax.random.key(0))
    assert [block[0].weight.shape for block in critic.blocks] == [(2, 8, 32)] * 2
    assert guide.action.shape == (1, 2, 4)


@pytest.mark.parametrize("box", [((-1.0, -1.0), (1.0, 1.0)), ((-0.4,), (0.4,)), (SPEC.action_low, SPEC.action_high)])
def test_the_default_target_entropy_is_of_a_gaussian_in_halves_of_the_box(box):
    """0.15 of half its width in each dimension. An algorithm without such critics aims at −D on any box."""
    spec = EnvSpec(3, *box)
    widths = 0.15 * (np.array(box[1]) - np.array(box[0])) / 2
    np.testing.assert_allclose(aimed_entropy(spec, CONFIG), scipy.stats.norm(scale=widths).entropy().sum(), rtol=1e-6)
    assert aimed_entropy(spec, SacConfig()) == -len(box[0])
    assert aimed_entropy(spec, SacConfig(hidden=(8,), categorical=True, target_entropy=-3.0)) == -3


def precise(jaxpr):
    """Products in full precision inside traced code, calls and loops included."""
    inner = sum(map(precise, core.subjaxprs(jaxpr)))
    return inner + sum(str(one.params.get("precision")).count("HIGHEST") == 2 for one in jaxpr.eqns)


def test_sums_over_atoms_and_particles_are_in_full_precision(critics, states, particles):
    """An accelerator's default has three digits."""
    batch = make_batch()
    target = jax.vmap(lambda one: fold_residual(one, 2, jnp.asarray(GRID)))(states[1])
    for function, inputs, products in (
        (lambda tower: tower.value(jnp.ones(8), jnp.ones(2), RELU), jax.tree.map(lambda leaf: leaf[0], target), 1),
        (lambda judges: aim_at_law(judges, batch, particles, 0.9, RELU), target, 4),
        (
            lambda critic: critics.loss(critic, batch, batch.action, Aim(batch.reward, jnp.ones((32, ATOMS)))),
            states[0],
            1,
        ),
    ):
        assert precise(jax.make_jaxpr(function)(inputs).jaxpr) == products

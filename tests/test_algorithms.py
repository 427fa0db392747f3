"""Reductions, targets, directions and protocol of the algorithms."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats

from s2ac.algorithms import ALGORITHMS
from s2ac.algorithms.amortized import (
    COMPONENTS,
    Mixture,
    make_mixture,
    make_network,
    mixture_of,
    policy_target,
    stein_loss,
)
from s2ac.algorithms.critics import critic_loss, energy_of, make_critics, min_value, td_target
from s2ac.algorithms.ddpg import DdpgConfig, make_ddpg
from s2ac.algorithms.ppo import (
    PpoConfig,
    Scale,
    advantages,
    clipped_objective,
    deviation,
    discounted_sums,
    folded,
    make_ppo,
    no_moments,
    seen,
)
from s2ac.algorithms.s2ac import make_s2ac, make_stein_policy
from s2ac.algorithms.s2ac_config import S2acConfig
from s2ac.algorithms.sac import SacConfig, make_sac
from s2ac.algorithms.sac_nf import SacNfConfig, make_sac_nf
from s2ac.algorithms.sql import soft_value
from s2ac.algorithms.start import box_of
from s2ac.errors import InvalidArgument
from s2ac.flows import FLOWS
from s2ac.nets.critic import Critic, critic_activations, critic_value, init_critic, observe, soft_update
from s2ac.nets.mlp import Layer, mlp
from s2ac.ranges import settled
from s2ac.types import EnvSpec, Transition

SPEC = EnvSpec(3, (-1.0, 0.0), (3.0, 0.5))
RELU = critic_activations("relu", None)
SMALL = {"hidden": (16,)}


def make_batch(num=32, seed=0):
    keys = jax.random.split(jax.random.key(seed), 5)
    low, high = jnp.array(SPEC.action_low), jnp.array(SPEC.action_high)
    return Transition(
        jax.random.normal(keys[0], (num, 3)),
        jax.random.uniform(keys[1], (num, 2), minval=low[None], maxval=high[None]),
        jax.random.normal(keys[2], (num,)),
        (jax.random.uniform(keys[3], (num,)) < 0.3).astype(jnp.float32),
        jnp.zeros(num),
        jax.random.normal(keys[4], (num, 3)),
    )


def after_updates(algorithm, num=10):
    @jax.jit
    def go():
        state = algorithm.init(jax.random.key(1))
        keys = jax.random.split(jax.random.key(2), num)
        return jax.lax.scan(lambda s, k: algorithm.update(k, s, make_batch()), state, keys)

    return go()


def assert_same(left, right):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_steps_s2ac_is_sac_and_without_flows_sac_nf_is_sac():
    """Bit for bit after ten updates: parameters, optimiser and temperature."""
    bounds = {"min_std": 0.01, "max_std": 5.0, "learn_alpha": True, **SMALL}
    sac, _ = after_updates(make_sac(SPEC, SacConfig(**bounds)))
    s2ac, _ = after_updates(make_s2ac(SPEC, S2acConfig(**bounds, num_steps=0, num_particles=1, start_alpha=None)))
    assert_same(sac, s2ac)
    flow, _ = after_updates(make_sac_nf(SPEC, SacNfConfig(**bounds, num_flows=0)))
    assert_same(sac, flow)


def test_without_steps_s2ac_with_flows_is_sac_nf():
    """Bit for bit after ten updates, with normalised critics; to rounding where the start has a loss of its own at the policy's temperature."""
    flows = {
        **SMALL,
        "min_std": 0.01,
        "max_std": 5.0,
        "num_flows": 2,
        "flow": "planar",
        "batch_norm": True,
        "learn_alpha": False,
    }
    sac_nf, _ = after_updates(make_sac_nf(SPEC, SacNfConfig(**flows)))
    config = S2acConfig(**flows, num_steps=0, num_particles=1, start_alpha=None)
    s2ac, _ = after_updates(make_s2ac(SPEC, config))
    assert_same(sac_nf, s2ac)
    own, _ = after_updates(make_s2ac(SPEC, replace(config, start_alpha=0.0)))
    for one, other in zip(*map(jax.tree.leaves, (sac_nf, own)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-8)
    makers = (
        make_sac_nf(SPEC, SacNfConfig(**flows)),
        make_s2ac(SPEC, config),
        make_s2ac(SPEC, replace(config, num_flows=0)),
    )
    states = sac_nf, s2ac, s2ac._replace(actor=s2ac.actor[0])
    means = [
        made.act(jax.random.key(0), state, jnp.ones(3), "mean") for made, state in zip(makers, states, strict=True)
    ]
    np.testing.assert_array_equal(means[0], means[1])
    assert np.abs(means[1] - means[2]).max() > 1e-4  # the Gaussian's mean goes through the flows
    with pytest.raises(
        InvalidArgument, match="num_flows = 2: must be left out, it has no effect where the start is fixed"
    ):
        settled(replace(config, start_std=0.7), {"num_flows"})


def test_a_start_with_a_loss_of_its_own_at_the_policys_temperature_learns_as_sac():
    """Bit for bit after an update, with no gradient through the samples; but α is aimed by the entropy at s'."""
    bounds = {"min_std": 0.01, "max_std": 5.0, "learn_alpha": True, "alpha": 0.2, **SMALL}
    sac, told = after_updates(make_sac(SPEC, SacConfig(**bounds)), 1)
    one = S2acConfig(**bounds, num_steps=0, num_particles=1)
    own, metrics = after_updates(make_s2ac(SPEC, one), 1)
    assert_same((sac.actor, sac.actor_memory, sac.critic), (own.actor, own.actor_memory, own.critic))
    np.testing.assert_allclose(metrics["actor_loss"], told["actor_loss"], rtol=1e-5)
    assert metrics["entropy"] != told["entropy"]
    hot, _ = after_updates(make_s2ac(SPEC, replace(one, start_alpha=0.2)), 1)
    assert not np.array_equal(jax.tree.leaves(hot.actor)[0], jax.tree.leaves(own.actor)[0])


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in ("s2ac-amortized", "s2ac-phi") else n for n in ALGORITHMS]
)
def test_protocol(name):
    """Actions stay in the box (PPO's are clipped by the loop), rules differ as they should, every parameter learns."""
    entry = ALGORITHMS[name]
    changes = {"hidden": (16,)} | (
        {"num_particles": 3, "num_references": 2, "num_steps": 2} if name.startswith("s2ac") else {}
    )
    algorithm = entry.make(SPEC, replace(entry.config, **changes))
    before = jax.jit(algorithm.init)(jax.random.key(0))
    batch = make_batch()
    if algorithm.experience == "rollout":
        batch = jax.tree.map(lambda field: field.reshape((8, 4, *field.shape[1:])), batch)
    update = jax.jit(algorithm.update)
    after, metrics = update(jax.random.key(1), before, batch)
    for step in range(2, 6):
        after, metrics = update(jax.random.key(step), after, batch)
    assert all(jnp.shape(value) == () and np.isfinite(value) for value in metrics.values())
    idle = {"actor_memory"} if name == "s2ac-phi" else set()  # no actor
    idle |= {"auxiliary_memory"} if name != "s2ac-amortized" else set()
    for field, old, new in zip(before._fields, before, after, strict=True):
        for one, other in zip(jax.tree.leaves(old), jax.tree.leaves(new), strict=True):
            assert np.array_equal(one, other) == (field in idle), field

    keys = jax.random.split(jax.random.key(9), 64)
    for rule in algorithm.rules:
        act = jax.jit(lambda k, o, r=rule: algorithm.act(k, after, o, r))
        actions = jax.vmap(act, (0, None))(keys, batch.observation.reshape(-1, 3)[0])
        assert actions.shape == (64, 2)
        if name != "ppo":
            assert (actions >= jnp.array(SPEC.action_low)[None]).all()
            assert (actions <= jnp.array(SPEC.action_high)[None]).all()
        assert (jnp.ptp(actions, axis=0) == 0).all() == (rule == "mean")


def test_td_target_masks_the_entropy_too_and_bootstraps_truncation():
    """Terminated: the reward alone, whatever the soft value; truncated rows have terminated = 0."""
    target = td_target(jnp.array([1.0, 1.0]), jnp.array([1.0, 0.0]), 0.9, jnp.array([1e6, 10.0]))
    np.testing.assert_allclose(target, [1.0, 10.0])


def test_critic_loss_has_no_hidden_broadcast():
    critic = jax.vmap(lambda k: init_critic(k, 3, 2, (8,)))(jax.random.split(jax.random.key(0), 2))
    batch, target = make_batch(4), jnp.array([0.0, 10.0, -5.0, 3.0])
    loss, metrics = critic_loss(critic, batch, target, RELU)
    by_hand = 0.0
    for index in range(4):
        for which in range(2):
            one = jax.tree.map(lambda leaf, w=which: leaf[w], critic)
            joined = jnp.concatenate([batch.observation[index], batch.action[index]])
            weight = jnp.concatenate([one.observation.weight, one.action])
            hidden = jax.nn.relu(joined @ weight + one.observation.bias)
            by_hand += (mlp(one.rest, hidden, "relu")[0] - target[index]) ** 2 / 4
    np.testing.assert_allclose(loss, by_hand, rtol=1e-5)
    assert metrics["critic_loss"].shape == ()
    gradient = jax.grad(lambda t: critic_loss(critic, batch, t, RELU)[0])(target)
    assert jnp.abs(gradient).min() > 0  # the loss sees its target; `update` must hold it constant


def test_min_value_takes_the_smaller_critic():
    critic = jax.vmap(lambda k: init_critic(k, 3, 2, (8,)))(jax.random.split(jax.random.key(0), 2))
    shifted = critic._replace(
        rest=tuple(layer._replace(bias=layer.bias.at[1].add(100.0)) for layer in critic.rest[-1:])
    )
    observation, action = jnp.ones(3), jnp.ones(2)
    first = Critic(*jax.tree.map(lambda leaf: leaf[0], tuple(shifted)))
    expected = critic_value(first, observe(first, observation, RELU), action, RELU)
    np.testing.assert_allclose(min_value(shifted, observation, RELU)(action), expected, rtol=1e-5)


def test_a_critic_of_waves_is_one_and_its_energy_keeps_its_curvature():
    frequency = 3.0
    one = init_critic(jax.random.key(0), 3, 2, (400, 5), frequency)
    weight = np.concatenate([one.observation.weight, one.action])
    assert abs(weight.std() - frequency) < 5 * frequency / (2 * weight.size) ** 0.5
    assert abs(np.abs(one.observation.bias).mean() - np.pi / 2) < 0.3
    observation, action = jnp.array([0.1, -0.2, 0.3]), jnp.array([0.4, -0.5])
    hidden = np.sin(np.concatenate([observation, action]) @ weight + one.observation.bias)
    expected = np.maximum(hidden @ one.rest[0].weight + one.rest[0].bias, 0) @ one.rest[1].weight + one.rest[1].bias
    config = SacConfig(frequency=frequency)
    critics = jax.tree.map(lambda leaf: leaf[None], one)
    energy = energy_of(critics, observation, config.activations)
    np.testing.assert_allclose(energy(action), expected[0], rtol=1e-4)
    assert (
        jnp.abs(jax.hessian(energy)(action)).max() > 0.1
    )  # with ReLU alone it is piecewise linear, and 0 by construction


@pytest.mark.parametrize("late", [False, True], ids=["first", "late"])
def test_where_the_action_joins_a_critic(late):
    """By hand from whole layers; each starts uniform in ±1/√fan-in, the fan-in of the joined one being that of both."""
    one = init_critic(jax.random.key(0), 3, 2, (40, 30), None, 2 if late else 1)
    joined = Layer(jnp.concatenate([one.observation.weight, one.action]), one.observation.bias)
    layers = [*one.trunk, joined, *one.rest]
    fans = [3, 42, 30] if late else [5, 40, 30]
    assert [layer.weight.shape[0] for layer in layers] == fans
    for layer, fan in zip(layers, fans, strict=True):
        assert 0.8 * fan**-0.5 < np.abs(layer.weight).max() <= fan**-0.5
    observation, action = jnp.array([0.1, -0.2, 0.3]), jnp.array([0.4, -0.5])
    hidden = observation
    for index, layer in enumerate(layers):
        hidden = hidden if index == 0 else np.maximum(hidden, 0)
        hidden = np.concatenate([hidden, action]) if index == late else hidden
        hidden = hidden @ np.asarray(layer.weight) + np.asarray(layer.bias)
    found = min_value(jax.tree.map(lambda leaf: leaf[None], one), observation, RELU)(action)
    np.testing.assert_allclose(found, hidden[0], rtol=1e-5)


GUIDED = S2acConfig(
    hidden=(8,),
    num_steps=2,
    num_particles=3,
    num_references=3,
    guide=(8, 4),
    step_size=2.0,
    start_alpha=None,
    alpha=0.2,
)


def guided_states(config=GUIDED):
    """A first state, one whose guide is another, and one whose judges are."""
    state = jax.jit(make_s2ac(SPEC, config).init)(jax.random.key(0))
    judges, guide = state.critic
    turned = lambda one: jax.tree.map(lambda leaf: -2 * leaf, one)  # noqa: E731
    return state, state._replace(critic=(judges, turned(guide))), state._replace(critic=(turned(judges), guide))


def test_a_guide_steers_the_particles_and_judges_nothing():
    """Particles move by the guide alone; values and the choice among particles do not see it."""
    algorithm, key, observation = make_s2ac(SPEC, GUIDED), jax.random.key(1), jnp.ones(3)
    state, other_guide, other_judges = guided_states()
    assert state.critic[1].action.shape == (1, 2, 4)
    draws = (
        jax.jit(lambda state: algorithm.cloud(key, state, observation, 3).action),
        jax.jit(lambda state: algorithm.act(key, state, observation, "sample")),
    )
    for draw in draws:
        assert np.abs(draw(state) - draw(other_guide)).max() > 1e-3
        np.testing.assert_array_equal(draw(state), draw(other_judges))
    action = jnp.array([0.5, 0.1])
    assert algorithm.value(other_guide, observation, action) == min_value(state.critic[0], observation, RELU)(action)
    barely = make_s2ac(SPEC, replace(GUIDED, step_size=1e-9, num_particles=10))
    for rule in ("argmax", "softmax"):
        choose = jax.jit(lambda state, rule=rule: barely.act(key, state, observation, rule))
        chosen, same, other = map(choose, (state, other_guide, other_judges))
        np.testing.assert_allclose(chosen, same, atol=1e-5)
        assert np.abs(chosen - other).max() > 1e-3


def test_a_guide_in_an_update():
    """The start is learned through particles that it moved, and f_ψ is fitted to them."""
    config = replace(GUIDED, amortized=True, critic_learning_rate=1e-12)  # critics that stay as they are
    update, batch = jax.jit(make_s2ac(SPEC, config).update), make_batch()
    (one, told), (other, otherwise), (same, _) = (update(jax.random.key(2), s, batch) for s in guided_states(config))
    assert abs(told["actor_loss"] - otherwise["actor_loss"]) > 1e-3
    assert_same(one.auxiliary, same.auxiliary)
    assert any(
        np.abs(x - y).max() > 1e-5 for x, y in zip(*map(jax.tree.leaves, (one.auxiliary, other.auxiliary)), strict=True)
    )


def test_a_guides_first_weights_are_its_own_and_what_it_excludes():
    (judge, guide), _ = make_critics(1, SPEC, replace(GUIDED, guide=()), False, (8,)).init(jax.random.key(3))
    assert np.abs(judge.action - guide.action).max() > 0.1
    with pytest.raises(InvalidArgument, match=r"guide = \(8, 4\): must be empty where frequency is set"):
        replace(GUIDED, frequency=1.0)


def test_soft_update_moves_the_target_by_the_rate():
    one = init_critic(jax.random.key(0), 3, 2, (4,))
    other = jax.tree.map(lambda leaf: leaf + 1, one)
    assert_same(soft_update(one, other, 0.0), one)
    for new, old in zip(jax.tree.leaves(soft_update(one, other, 0.1)), jax.tree.leaves(one), strict=True):
        np.testing.assert_allclose(new - old, 0.1, rtol=1e-4)


def test_learned_temperature_moves_towards_its_target():
    @jax.jit
    def learned(target):
        config = SacConfig(**SMALL, alpha=0.2, learn_alpha=True, target_entropy=target)
        return after_updates(make_sac(SPEC, config), num=3)[0].log_alpha

    assert learned(-50.0) < np.log(0.2) < learned(50.0)


def test_ddpg_target_by_hand():
    """One update from a zero critic moves it towards r + γ(1 − terminated)·Q̄(s', μ̄(s'))."""
    algorithm = make_ddpg(SPEC, DdpgConfig(**SMALL, discount=0.5))
    state, batch = jax.jit(algorithm.init)(jax.random.key(0)), jax.jit(make_batch, static_argnums=0)(8)
    box = box_of(SPEC)
    actions = jax.vmap(lambda o: box.squash(mlp(state.target_actor, o, "relu")))(batch.next_observation)
    values = jax.vmap(lambda o, a: min_value(state.target, o, RELU)(a))(batch.next_observation, actions)
    target = batch.reward + 0.5 * (1 - batch.terminated) * values
    expected = critic_loss(state.critic, batch, target, RELU)[1]["critic_loss"]
    _, metrics = jax.jit(algorithm.update)(jax.random.key(1), state, batch)
    np.testing.assert_allclose(metrics["critic_loss"], expected, rtol=1e-6)


def test_advantages_by_hand_and_across_episode_ends():
    """Two episodes of two steps; the second's reward of 100 must not enter the first; the cut end bootstraps."""
    rewards, values = jnp.array([1.0, 1.0, 100.0, 100.0]), jnp.array([0.5, 0.4, 0.3, 0.2])
    next_values = jnp.array([0.4, 9.0, 0.2, 7.0])
    for terminated, truncated in (([0, 1, 0, 0], [0, 0, 0, 0]), ([0, 0, 0, 1], [0, 1, 0, 0])):
        terminated, ended = jnp.array(terminated, float), jnp.maximum(jnp.array(terminated), jnp.array(truncated)) * 1.0
        for discount, trace in ((0.9, 0.8), (1.0, 0.0), (0.5, 1.0)):
            expected, following = np.zeros(4), 0.0
            for t in range(3, -1, -1):
                delta = rewards[t] + discount * (1 - terminated[t]) * next_values[t] - values[t]
                following = delta + discount * trace * (1 - ended[t]) * following
                expected[t] = following
            ours = advantages(rewards, terminated, ended, values, next_values, discount, trace)
            np.testing.assert_allclose(ours, expected, rtol=1e-5)
            assert ours[0] < 20


def test_ppo_clips_on_the_right_side():
    ratio = jnp.array([0.5, 1.0, 1.5, 0.5, 1.0, 1.5])
    advantage = jnp.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    np.testing.assert_allclose(clipped_objective(ratio, advantage, 0.2), [0.5, 1.0, 1.2, -0.8, -1.0, -1.5])


def test_moments_seen_in_parts_are_those_of_the_whole():
    values = np.random.default_rng(0).normal(5.0, [0.1, 30.0], (300, 2)).astype(np.float32)
    moments = no_moments((2,))
    for part in np.split(values, [1, 40, 200]):
        moments = seen(moments, jnp.asarray(part))
    np.testing.assert_allclose(moments.mean, values.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(deviation(moments), values.std(axis=0), rtol=1e-3)


def test_discounted_sums_begin_anew_with_an_episode():
    sums = discounted_sums(jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([0.0, 1.0, 0.0, 0.0]), 0.5)
    np.testing.assert_allclose(sums, [1.0, 2.5, 4.0, 10.0])


def test_ppo_that_normalizes_does_not_see_the_units():
    """Other units of observation and reward: after the first rollout, which is seen as it is, the same updates of the policy and the same acts."""
    spec, key = EnvSpec(3, (-1.0,) * 2, (1.0,) * 2), jax.random.key(0)
    algorithm = make_ppo(spec, PpoConfig(hidden=(8,), normalize=True, num_epochs=2, num_minibatches=2))
    rows = jax.tree.map(lambda field: jnp.stack([field, field[::-1]], axis=1), make_batch())
    units = jnp.array([[[100.0, 0.01, 3.0]]]), jnp.array([[[5.0, -2.0, 0.0]]])
    changed = rows._replace(
        observation=rows.observation * units[0] + units[1],
        next_observation=rows.next_observation * units[0] + units[1],
        reward=1000 * rows.reward,
    )
    start, update, found = algorithm.init(key), jax.jit(algorithm.update), []
    for rollout in (rows, changed):
        scale = update(key, start, rollout)[0].scale
        state, metrics = update(jax.random.key(1), start._replace(scale=scale), rollout)
        found.append((state.params, metrics, algorithm.act(key, state, rollout.observation[0, 0], "mean")))
        policy = folded(state.params[0], state.scale)
        unscaled = state._replace(params=(policy, *state.params[1:]), scale=Scale(no_moments((3,)), no_moments()))
        plain = algorithm.act(key, unscaled, rollout.observation[0, 0], "mean")
        np.testing.assert_allclose(plain, found[-1][2], atol=1e-5)
    for left, right in zip(jax.tree.leaves(found[0]), jax.tree.leaves(found[1]), strict=True):
        np.testing.assert_allclose(left, right, atol=2e-3)
    assert not np.allclose(found[0][2], algorithm.act(key, start, rows.observation[0, 0], "mean"), atol=2e-3)


def test_soft_value_against_quadrature():
    """A quadratic Q on an asymmetric box, 200,000 uniform actions: within 1 % of α log ∫ exp(Q/α)."""
    low, high, alpha = jnp.array([-1.0, 0.0]), jnp.array([3.0, 0.5]), 0.7
    q = lambda a: -jnp.sum((a - jnp.array([0.5, 0.2])) ** 2) + 2  # noqa: E731
    axes = [np.linspace(l, h, 801)[:-1] + (h - l) / 1600 for l, h in zip(low, high, strict=True)]  # noqa: E741
    grid = jnp.asarray(np.stack(np.meshgrid(*axes), -1).reshape(-1, 2), jnp.float32)
    cell = float(jnp.prod((high - low) / 800))
    exact = alpha * (jax.nn.logsumexp(jax.vmap(q)(grid) / alpha) + np.log(cell))
    estimate = soft_value(jax.random.key(0), q, alpha, low, high, 200_000)
    assert abs(estimate - exact) < 0.01 * abs(exact)


@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("dimension", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_flow_log_det_equals_autodiff(x64, name, dimension):
    init, apply = FLOWS[name]
    for seed in range(3):
        params = jax.tree.map(
            lambda leaf, s=seed: leaf + 0.5 * jax.random.normal(jax.random.key(s), leaf.shape),
            init(jax.random.key(seed), dimension),
        )
        for index in (0, 1):
            point = jax.random.normal(jax.random.key(10 + seed), (dimension,))
            _, log_det = apply(params, point, index)
            jacobian = jax.jacfwd(lambda x, p=params, i=index: apply(p, x, i)[0])(point)
            sign, expected = jnp.linalg.slogdet(jacobian)
            assert sign > 0
            np.testing.assert_allclose(log_det, expected, atol=1e-10)


def test_particles_of_s2ac_find_the_maximum_entropy_policy():
    """Quadratic Q in action space, several temperatures: converged particles have the target's mean. Q is seen after
    the squash and divided by α; without either, the mean is elsewhere."""
    spec = EnvSpec(1, (-2.0,), (2.0,))
    for alpha in (0.1, 10.0):
        config = S2acConfig(
            start_std=0.7, start_alpha=None, num_steps=200, num_particles=20, num_references=20, step_size=0.1
        )
        actor = make_stein_policy(spec, config)
        q = lambda a: -jnp.sum((a - 0.8) ** 2)  # noqa: E731
        sample = jax.jit(lambda k, a=actor, al=alpha, q=q: a.draw(k, (), jnp.zeros(1), q, jnp.array(al)))
        grid = np.linspace(-8, 8, 4001)
        weight = np.exp(-((2 * np.tanh(grid) - 0.8) ** 2) / alpha) / np.cosh(grid) ** 2
        expected = np.sum(weight * grid) / np.sum(weight)
        drawn = jax.vmap(sample)(jax.random.split(jax.random.key(0), 100))
        assert abs(jnp.mean(drawn.pre_tanh) - expected) < 0.06


def test_unknown_names_are_refused():
    with pytest.raises(InvalidArgument, match=r"flow = 'radail'.*did you mean 'radial'"):
        make_sac_nf(SPEC, SacNfConfig(flow="radail"))
    with pytest.raises(InvalidArgument, match=r"form = 'tracr'.*did you mean 'tracer'"):
        make_s2ac(SPEC, S2acConfig(form="tracr"))


def test_sqls_network_rests_where_its_law_is_the_targets():
    """Outputs that are drawn from the target have no velocity on average, so the loss is 0; with the self term it would be D/M = 0.2."""
    network, box = make_network(SPEC, (4,), "relu"), box_of(SPEC)
    resting = jax.tree.map(jnp.zeros_like, network.init(jax.random.key(0)))  # place 0, width 1: uniform on the box
    target = policy_target(box, lambda action: 0.0 * jnp.sum(action), jnp.float32(0.3))

    def loss(params, key):
        key_noise, key_step = jax.random.split(key)
        return stein_loss(key_step, network.draw(key_noise, params, jnp.zeros(SPEC.observation_size), 10), target)

    one = lambda key: loss(resting, key)  # noqa: E731
    losses = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 4000)))
    assert abs(losses.mean()) < 4 * losses.std() / 4000**0.5
    assert 4 * losses.std() / 4000**0.5 < 0.03

    # Too far to one side, and too wide: descent goes back.
    off = resting[-1]._replace(bias=jnp.ones_like(resting[-1].bias))

    def mean(last, keys):
        return jnp.mean(jax.vmap(lambda key: loss((*resting[:-1], last), key))(keys))

    gradient = jax.jit(jax.grad(mean))(off, jax.random.split(jax.random.key(1), 500))
    assert (gradient.bias > 0).all()


def test_a_mixtures_draws_fit_its_density():
    """Two components in one dimension, by a goodness-of-fit test; with the shares exchanged it fails."""
    law = Mixture(jnp.log(jnp.array([0.2, 0.8])), jnp.array([[-1.0], [1.0]]), jnp.array([[0.3], [0.6]]))
    drawn = np.asarray(jax.jit(jax.vmap(law.sample))(jax.random.split(jax.random.key(0), 8000)))[:, 0]
    other = law._replace(log_share=law.log_share[::-1])
    for one, fits in ((law, True), (other, False)):
        density = np.exp(np.asarray(jax.vmap(lambda x, one=one: one.log_density(x[None]))(jnp.linspace(-5, 5, 4001))))
        mass = np.cumsum(density) * 10 / 4000
        assert abs(mass[-1] - 1) < 1e-3
        assert (
            scipy.stats.kstest(drawn, lambda x, m=mass: np.interp(x, np.linspace(-5, 5, 4001), m)).pvalue > 1e-4
        ) == fits


def test_the_amortised_mixture_finds_the_modes_that_are_executed():
    """Fitted to particles of three narrow modes with unequal shares, it has their shares and places."""
    places, shares = jnp.array([[-0.6, 0.0], [0.5, 0.4], [0.5, -0.6]]), jnp.array([0.5, 0.3, 0.2])
    observation = jnp.zeros(SPEC.observation_size)
    auxiliary = make_mixture(SPEC, S2acConfig(hidden=(8,), min_std=0.02, max_std=2.0))

    @jax.jit
    def fitted(key):
        optimiser = optax.adam(1e-2)
        params = auxiliary.init(key)

        def loss(params, key):
            return auxiliary.loss(params, observation, places + 0.05 * jax.random.normal(key, places.shape), shares)

        def step(carry, key):
            updates, memory = optimiser.update(jax.grad(loss)(carry[0], key), carry[1])
            return (optax.apply_updates(carry[0], updates), memory), None

        carry = (params, optimiser.init(params))
        return mixture_of(
            jax.lax.scan(step, carry, jax.random.split(key, 2000))[0][0], observation, "relu", (0.02, 2.0)
        )

    law = fitted(jax.random.key(3))
    assert law.mean.shape == (COMPONENTS, 2)
    drawn = np.asarray(jax.vmap(law.sample)(jax.random.split(jax.random.key(1), 4000)))
    nearest = np.argmin(np.linalg.norm(drawn[:, None] - np.asarray(places)[None], axis=-1), axis=1)
    np.testing.assert_allclose(np.bincount(nearest) / 4000, shares, atol=0.05)
    assert np.linalg.norm(drawn - np.asarray(places)[nearest], axis=1).mean() < 0.12

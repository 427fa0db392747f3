r"""Critics against soft value iteration on a small chain whose values are known to many digits.

Three places, one action a in [−1, 1]. The reward is smooth in the action, and so is the chance of going one place on:

    r(i, a) = c_i − k_i (a − m_i)²,   P(i → i + 1 | a) = 1/(1 + e^{−2a}),   otherwise the place stays;

beyond the last place the episode has ended (terminated). For a temperature α and a discount γ

    Q(i, a) = r(i, a) + γ [P(a) V(i + 1) + (1 − P(a)) V(i)],   V(end) = 0,

and algorithms differ in V, each of which can be computed:

    V(i) = α log ∫ exp(Q(i, a)/α) da                        SQL, and the best that any policy can do
    V(i) = max over (μ, σ) of E[Q − α log π], π = tanh N    SAC: the best of its own class

S²AC in its `tracer` form carries a density that is exact given the references, so its value is α log ∫ exp(Q/α) − α KL,
a lower bound of SQL's that its start is trained to close: it is held to the same V. The KL is that of the law given the
references, and few references make it lumpy. With eight of them and three steps, the start fitted to the exact Q, α KL at the
three places is 0.043, 0.038, 0.040 for ε = 0.1 (the default) and 0.029, 0.036, 0.020 for ε = 0.03; the best Gaussian has
0.014, 0.009, 0.013. Along the chain this adds up: the critic trained with ε = 0.1 was 2.4 % off, with ε = 0.03 1.9 %. The test
uses the latter, so it says little of larger steps.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from s2ac.algorithms import ALGORITHMS
from s2ac.algorithms.critics import min_value
from s2ac.nets.critic import critic_activations
from s2ac.types import EnvSpec, Transition

ALPHA, DISCOUNT, PLACES = 0.5, 0.9, 3
BONUS, SHARPNESS, BEST = np.array([0.0, -1.0, 2.0]), np.array([2.0, 4.0, 1.0]), np.array([0.3, -0.4, 0.5])
SPEC = EnvSpec(PLACES, (-1.0,), (1.0,))


def soft_values(q, nodes, weights):
    """α log ∫ exp(q/α) over the action, for `q` `[I, A]`."""
    largest = q.max(axis=1)
    return largest + ALPHA * np.log(np.exp((q - largest[:, None]) / ALPHA) @ weights)


def gaussian_values(q_of):
    """The largest E[Q − α log π] of a tanh-Gaussian, per place."""
    noise, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def value(place, parameters):
        mean, std = parameters[0], np.exp(parameters[1])
        pre_tanh = mean + std * noise
        log_det = 2 * (np.log(2) - pre_tanh - np.log1p(np.exp(-2 * pre_tanh)))
        entropy = 0.5 * np.log(2 * np.pi * np.e) + np.log(std) + weights @ log_det
        return weights @ q_of(np.tanh(pre_tanh))[place] + ALPHA * entropy

    found = [
        scipy.optimize.minimize(lambda p, i=i: -value(i, p), [0.0, -0.5], method="BFGS", options={"gtol": 1e-9})
        for i in range(PLACES)
    ]
    return np.array([-result.fun for result in found])


def exact(kind):
    """Q(i, a) as a function of the actions `[A]`, in float64."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    values = np.zeros(PLACES)

    def q_of(actions, values):
        reward = BONUS[:, None] - SHARPNESS[:, None] * (actions[None] - BEST[:, None]) ** 2
        onwards = 1 / (1 + np.exp(-2 * actions[None]))
        following = np.append(values[1:], 0.0)
        return reward + DISCOUNT * (onwards * following[:, None] + (1 - onwards) * values[:, None])

    for _ in range(200):
        before = values
        if kind == "gaussian":
            values = gaussian_values(lambda actions, v=before: q_of(actions, v))
        else:
            values = soft_values(q_of(nodes, before), nodes, weights)
        if np.abs(values - before).max() < 1e-10:
            break
    return lambda actions: q_of(actions, values)


def transitions(key, num):
    """Rows from every place with uniform actions, straight from the chain's law."""
    key_place, key_action, key_move = jax.random.split(key, 3)
    place = jax.random.randint(key_place, (num,), 0, PLACES)
    action = jax.random.uniform(key_action, (num,), minval=-1.0, maxval=1.0)
    reward = jnp.asarray(BONUS, jnp.float32)[place] - jnp.asarray(SHARPNESS, jnp.float32)[place] * (
        (action - jnp.asarray(BEST, jnp.float32)[place]) ** 2
    )
    following = place + (jax.random.uniform(key_move, (num,)) < jax.nn.sigmoid(2 * action))
    ended = (following == PLACES).astype(jnp.float32)
    one_hot = lambda index: jax.nn.one_hot(index, PLACES)  # noqa: E731
    return Transition(one_hot(place), action[:, None], reward, ended, jnp.zeros(num), one_hot(following))


COMMON = {"hidden": (32, 32), "activation": "silu", "learning_rate": 1e-3, "discount": DISCOUNT, "alpha": ALPHA,
          "target_rate": 0.01}  # fmt: skip
CASES = {
    "sac": ("gaussian", {}),
    "sql": ("soft", {"num_value_samples": 128, "num_particles": 4}),
    "s2ac": (
        "soft",
        {"weighted": True, "num_references": 8, "num_particles": 8, "num_steps": 3, "step_size": 0.03, "min_std": 0.1},
    ),
}


def train_critic(name, changes, updates, batch):
    """The averaged critic after `updates` updates, each on fresh rows."""
    entry = ALGORITHMS[name]
    algorithm = entry.make(SPEC, replace(entry.config, **COMMON, **changes))

    @jax.jit
    def go():
        def one(state, key):
            key_rows, key_update = jax.random.split(key)
            return algorithm.update(key_update, state, transitions(key_rows, batch))[0], None

        keys = jax.random.split(jax.random.key(1), updates)
        return jax.lax.scan(one, algorithm.init(jax.random.key(0)), keys)[0].target

    return go()


def largest_error(name, kind, changes, updates=4000, batch=256):
    """max |Q − exact Q| over places and actions, as a share of the range of the exact Q."""
    critic = train_critic(name, changes, updates, batch)
    actions = np.linspace(-0.98, 0.98, 50)
    truth = exact(kind)(actions)
    value = lambda place, a: min_value(critic, jax.nn.one_hot(place, PLACES), critic_activations("silu", None))(a[None])  # noqa: E731
    each = jax.vmap(lambda place: jax.vmap(lambda a: value(place, a))(jnp.asarray(actions, jnp.float32)))
    ours = np.asarray(each(jnp.arange(PLACES)))
    return np.abs(ours - truth).max() / np.ptp(truth)


def test_the_gaussian_class_is_near_but_below_the_soft_optimum():
    """The reference values themselves: SAC's are lower, by little; a flipped sign of the entropy is far from both."""
    actions = np.linspace(-1, 1, 9)
    best, gaussian = exact("soft")(actions), exact("gaussian")(actions)
    gap = (best - gaussian).max() / np.ptp(best)
    assert 0 < gap < 0.02
    assert (best >= gaussian - 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_critics_learn_the_exact_soft_values(name):
    """Within 2.5 % of the range of Q, at every place and action; SAC stays at 2.1 % with twice or four times the updates."""
    assert largest_error(name, *CASES[name]) < 0.025

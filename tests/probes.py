"""One environment that holds all probes: the first observation, a one-hot, says which problem this episode is."""

import jax
import jax.numpy as jnp

from s2ac.envs.jax_env import JaxEnv, TimeStep
from s2ac.types import EnvSpec

DISCOUNT = 0.9
CONSTANT, FIRST, SECOND, PLUS, MINUS, ACTION, LEFT, RIGHT, CLOCK = range(9)
STARTS = jnp.array([CONSTANT, FIRST, PLUS, MINUS, ACTION, LEFT, RIGHT, CLOCK])
VALUES = {CONSTANT: 1.0, FIRST: DISCOUNT, SECOND: 1.0, PLUS: 1.0, MINUS: -1.0, ACTION: 0.0, LEFT: 0.0, RIGHT: 0.0,
          CLOCK: 1 / (1 - DISCOUNT)}  # fmt: skip
BEST = {ACTION: 0.5, LEFT: -0.4, RIGHT: 0.4}
CLOCK_STEPS = 5


def make_probe():
    """Reward and next place by place; only the clock goes on, and is cut after five steps: a truncation."""

    def one_hot(place):
        return jax.nn.one_hot(place, 9)

    def reset(key):
        place = jax.random.choice(key, STARTS)
        return (place, jnp.zeros((), jnp.int32)), one_hot(place)

    def step(key, state, action):
        place, time = state
        wanted = jnp.zeros(9).at[ACTION].set(0.5).at[LEFT].set(-0.4).at[RIGHT].set(0.4)[place]
        chosen = -((action[0] - wanted) ** 2)
        reward = jnp.select(
            [place == FIRST, place == MINUS, (place == ACTION) | (place == LEFT) | (place == RIGHT)],
            [0.0, -1.0, chosen],
            1.0,
        )
        goes_on = (place == FIRST) | (place == CLOCK)
        time = time + 1
        truncated = (place == CLOCK) & (time >= CLOCK_STEPS)
        place = jnp.where(place == FIRST, SECOND, place)
        return (place, time), TimeStep(one_hot(place), reward, ~goes_on, truncated)

    return JaxEnv(EnvSpec(9, (-1.0,), (1.0,)), reset, step, CLOCK_STEPS)


def make_counter(length=3):
    """Observation (episode, time): every stored pair must stay in its episode and advance by one."""

    def reset(key):
        episode = jax.random.uniform(key)
        state = (episode, jnp.zeros(()))
        return state, jnp.stack(state)

    def step(key, state, action):
        episode, time = state
        state = (episode, time + 1)
        return state, TimeStep(jnp.stack(state), jnp.ones(()), time + 1 >= length, jnp.zeros((), bool))

    return JaxEnv(EnvSpec(2, (-1.0,), (1.0,)), reset, step, length)

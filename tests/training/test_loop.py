"""What both loops share: keys that draw once."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.training.loop import ACT, HOLD, INIT, keys_to_act, stream


def test_no_key_is_used_twice():
    """The same noise for acting, stepping and learning, or at every step."""
    index = jnp.arange(200)
    keys = [jax.vmap(lambda i, w=which, s=seed: stream(jax.random.key(s), w, i))(index)
            for which in range(INIT, HOLD + 1) for seed in range(3)]  # fmt: skip
    data = np.concatenate([np.asarray(jax.random.key_data(some)) for some in keys])
    assert len(np.unique(data, axis=0)) == len(data) == 200 * 7 * 3


def test_held_keys_change_every_k_steps_and_each_k_has_the_same_share_of_the_time():
    """Steps at which an environment's key is new: with hold = 8 the mean of 1/k over k = 1, 2, 4, 8, in blocks that begin with a new one."""
    hold, num = 8, 400
    keys = jax.jit(lambda i: jax.random.key_data(keys_to_act(jax.random.key(0), i, num, hold)))
    data = np.stack([keys(jnp.int32(i)) for i in range(5 * hold)])
    new = (data[1:] != data[:-1]).any(axis=-1)
    assert new[hold - 1 :: hold].all()
    np.testing.assert_allclose(new[hold - 1 :].mean(), np.mean(1 / np.array([1, 2, 4, 8])), atol=0.03)
    assert len(np.unique(data[0], axis=0)) == num
    runs = (~new[: hold - 1]).sum(axis=0)
    assert set(runs.tolist()) == {0, 4, 6, 7}


def test_keys_that_are_not_held_are_those_of_every_step():
    key = jax.random.key(1)
    fresh = jax.random.split(stream(key, ACT, 7), 3)
    assert (jax.random.key_data(keys_to_act(key, 7, 3)) == jax.random.key_data(fresh)).all()

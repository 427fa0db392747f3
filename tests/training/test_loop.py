"""What both loops share: keys that draw once."""

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.training.loop import EVALUATE, INIT, stream


def test_no_key_is_used_twice():
    """The same noise for acting, stepping and learning, or at every step."""
    index = jnp.arange(200)
    keys = [jax.vmap(lambda i, w=which, s=seed: stream(jax.random.key(s), w, i))(index)
            for which in range(INIT, EVALUATE + 1) for seed in range(3)]  # fmt: skip
    data = np.concatenate([np.asarray(jax.random.key_data(some)) for some in keys])
    assert len(np.unique(data, axis=0)) == len(data) == 200 * 6 * 3

"""A record of the random keys that draw."""

import jax
import numpy as np


def recorded(used, name, draw):
    """`draw`, which from now on writes its name and its key to `used` whenever it runs, compiled or not."""

    def wrapper(key, *arguments, **keywords):
        jax.debug.callback(lambda data: used.append((name, *np.asarray(data).tolist())), jax.random.key_data(key))
        return draw(key, *arguments, **keywords)

    return wrapper

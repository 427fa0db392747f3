"""Names for the arrays and functions that everything else passes around."""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax

Array: TypeAlias = jax.Array
Key: TypeAlias = jax.Array
"""A typed random key, from `jax.random.key`."""

LogTarget: TypeAlias = Callable[[Array], Array]
"""An unnormalised log-density: one point `[D]` to a scalar."""

Metrics: TypeAlias = dict[str, Any]

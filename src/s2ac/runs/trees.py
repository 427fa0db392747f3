"""Trees of arrays as arrays by name, as checkpoints hold them: `algorithm/critic/rest/0/weight`.

A name is the fields and indices that lead to a leaf. Names on disk last longer than code: a field that is renamed keeps its name on disk by an
entry in `ON_DISK`, and `tests/golden/names.json` holds every algorithm to its names.
"""

from typing import Any

import jax
import numpy as np

from s2ac.errors import listed
from s2ac.runs.manifest import DamagedCheckpoint

ON_DISK: dict[str, str] = {}
"""Fields whose name in files is another than in the code: code's to file's."""


def name_of(path: Any) -> str:
    """The name of a leaf in files."""
    parts = (str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path)
    return "/".join(ON_DISK.get(part, part) for part in parts)


def is_key(leaf: Any) -> bool:
    """Whether a leaf is a random key, as an environment's state may hold one; files hold its numbers."""
    return bool(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def numbers(leaf: Any) -> Any:
    """A leaf as files hold it."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def tree_to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Leaves by name."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {name_of(path): np.array(numbers(leaf), order="C") for path, leaf in leaves}


def _misfits(leaves: dict[str, Any], arrays: dict[str, np.ndarray]) -> list[str]:
    """In words, every array of a checkpoint that is not a leaf of its shape and type, and every leaf that has none."""
    said = lambda array: f"{array.dtype}{list(array.shape)}"  # noqa: E731
    wrong = [f"{name} is missing" for name in leaves if name not in arrays]
    wrong += [f"{name} is too many" for name in sorted(arrays) if name not in leaves]
    both = [(name, said(arrays[name]), said(leaf)) for name, leaf in leaves.items() if name in arrays]
    return wrong + [f"{name} is {found}, not {wanted}" for name, found, wanted in both if found != wanted]


def arrays_to_tree(like: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree of `like`'s structure; every leaf must be there with its shape and type, and no other."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [name_of(path) for path, _ in paths]
    if wrong := _misfits({name: numbers(leaf) for name, (_, leaf) in zip(names, paths, strict=True)}, arrays):
        raise DamagedCheckpoint(f"the checkpoint belongs to another algorithm, environment or size: {listed(wrong)}")

    def restored(name: str, leaf: Any) -> Any:
        if not is_key(leaf):
            return arrays[name]
        return jax.random.wrap_key_data(jax.numpy.asarray(arrays[name]), impl=jax.random.key_impl(leaf))

    return jax.tree.unflatten(structure, [restored(name, leaf) for name, (_, leaf) in zip(names, paths, strict=True)])

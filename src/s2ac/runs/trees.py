"""Trees of arrays as arrays by name, as checkpoints hold them: `algorithm/critic/rest/0/weight`.

A name is the fields and indices that lead to a leaf. Names on disk last longer than code: a field that is renamed keeps its name on disk by an
entry in `ON_DISK`, and `tests/golden/names.json` holds every algorithm to its names.
"""

from typing import Any

import jax
import numpy as np

from s2ac.runs.manifest import DamagedCheckpoint

ON_DISK: dict[str, str] = {}
"""Fields whose name in files is another than in the code: code's to file's."""


def name_of(path: Any) -> str:
    """The name of a leaf in files."""
    parts = (str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))) for key in path)
    return "/".join(ON_DISK.get(part, part) for part in parts)


def tree_to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Leaves by name."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {name_of(path): np.array(leaf, order="C") for path, leaf in leaves}


def arrays_to_tree(like: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree of `like`'s structure; every leaf must be there with its shape and type, and no other."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [name_of(path) for path, _ in paths]
    if missing := sorted(set(names) ^ set(arrays)):
        raise DamagedCheckpoint(
            f"the checkpoint belongs to another algorithm or size: {missing[0]} is in one, not both"
        )
    for name, (_, leaf) in zip(names, paths, strict=True):
        if arrays[name].shape != leaf.shape or arrays[name].dtype != leaf.dtype:
            found = f"{arrays[name].dtype}{list(arrays[name].shape)}"
            raise DamagedCheckpoint(
                f"the checkpoint belongs to another environment or size: {name} is {found}, not {leaf.dtype}{list(leaf.shape)}"
            )
    return jax.tree.unflatten(structure, [arrays[name] for name in names])

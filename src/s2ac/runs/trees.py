"""Trees of arrays as arrays by name, as checkpoints hold them."""

from typing import Any

import jax
import numpy as np

from s2ac.runs.manifest import DamagedCheckpoint


def tree_to_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Leaves by path; a path is the fields and indices that lead to a leaf."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.array(leaf, order="C") for path, leaf in leaves}


def arrays_to_tree(like: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree of `like`'s structure; every leaf must be there with its shape and type, and no other."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
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

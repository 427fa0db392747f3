"""Write the golden files again: `PYTHONPATH=tests python -m golden`, on one thread, in a commit that says why the numbers change."""

import os

os.environ.setdefault("NPROC", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # as in conftest.py

import jax

from golden import AGENTS, NAMES, SHIPPED, UPDATES, machine, names, predictions, write
from golden.updates import CASES, after_ten_updates

if __name__ == "__main__":
    jax.config.update("jax_numpy_rank_promotion", "raise")
    cases = {}
    for name in CASES:
        cases[name] = after_ten_updates(name)
        print(name, flush=True)
    write(UPDATES, {"machine": machine(), "cases": cases})
    write(AGENTS, {name: predictions(name) for name in SHIPPED})
    write(NAMES, names())

"""Strict JAX for every test, and float64 for the tests that ask for it."""

import os

# Two test workers on two cores: a thread each keeps XLA from fighting over them.
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def x64():
    """Double precision inside the test."""
    with jax.enable_x64(True):
        yield

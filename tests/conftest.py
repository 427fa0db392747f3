"""Strict JAX for every test, float64 for the tests that ask for it, and a record of the keys that draw."""

import os
from pathlib import Path

# Two test workers on two cores: a thread each keeps XLA from fighting over them.
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Compiles faster: nothing is optimised, and not split for threads that are not there.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1")

import jax
import pytest

import chromium
from keys import recorded

jax.config.update("jax_numpy_rank_promotion", "raise")
# A resumed run compiles what the first one did: most of the suite's time is compilation.
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


@pytest.fixture
def x64():
    """Double precision inside the test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A browser for every test that asks for one."""
    if chromium.PATH is None:
        assert "BROWSER_REQUIRED" not in os.environ, "there is a Chromium here, and the tests do not find it"
        pytest.skip("no Chromium here: apt-get install chromium")
    browser = chromium.Chromium(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def used(monkeypatch):
    """(what is drawn, key) of every draw, also of compiled ones."""
    from s2ac.samplers.protocol import random_signs

    used = []
    for name in ("normal", "uniform", "randint", "categorical", "bits", "truncated_normal", "permutation"):
        monkeypatch.setattr(jax.random, name, recorded(used, name, getattr(jax.random, name)))
    random_signs.clear_cache()  # traced without the record, and after the test with it
    yield used
    random_signs.clear_cache()

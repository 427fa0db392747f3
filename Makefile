# Two commands: `make demo` and `make test`. Each sets up .venv by itself; the second time is quick.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: help setup setup-dev demo agents test test-slow docs lint types check-lock lock clean

help:
	@echo "make demo       install, train S2AC on multigoal and draw its trajectories"
	@echo "make agents     train the shipped agents again and draw them; about ten minutes"
	@echo "make test       install and run the tests"
	@echo "make test-slow  the tests that take minutes"
	@echo "make docs       build the documentation into site/"
	@echo "make lint types check-lock   what .ci/run checks besides the tests"
	@echo "make lock       resolve the dependencies again (needs uv)"

setup: $(VENV)/.installed
setup-dev: $(VENV)/.installed-dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Hashes pin every file, and the locks name every package: nothing is resolved, so no later release can get in the way (an older
# pip takes the newest where a package asks for another's extra). The package itself is installed in place, without touching the pins.
$(VENV)/.installed: requirements.lock pyproject.toml | $(BIN)/python
	$(PIP) install --no-deps --require-hashes -r requirements.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	$(PIP) check
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock pyproject.toml | $(BIN)/python
	$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	$(PIP) install --no-deps --no-build-isolation -e .
	$(PIP) check
	@touch $(VENV)/.installed $@

demo: setup
	rm -rf runs/demo
	$(BIN)/s2ac train multigoal --preset demo --out runs/demo
	$(BIN)/s2ac evaluate runs/demo --episodes 200 --picture runs/demo/trajectories.png

agents: setup
	$(BIN)/python examples/make_agents.py
	$(BIN)/python examples/results_table.py --write

test: setup-dev
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: setup-dev
	XLA_FLAGS=--xla_backend_optimization_level=1 $(BIN)/python -m pytest -n 2 -m slow  # these train longer than they compile

docs: setup-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lint: setup-dev
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs

types: setup-dev
	$(BIN)/mypy

# The locks must name no address: whoever installs chooses where from.
check-lock:
	@! grep -nE '://|--(extra-)?index-url|--find-links' requirements*.lock

lock:
	uv pip compile pyproject.toml --group build --universal --python-version 3.11 \
	  --no-emit-index-url --generate-hashes --no-header --no-annotate -o requirements.lock
	uv pip compile pyproject.toml --group build --group dev -c requirements.lock --universal --python-version 3.11 \
	  --no-emit-index-url --generate-hashes --no-header --no-annotate -o requirements-dev.lock
	uv pip compile --group build --group dist -c requirements.lock --universal --python-version 3.11 \
	  --no-emit-index-url --generate-hashes --no-header --no-annotate -o requirements-dist.lock

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache

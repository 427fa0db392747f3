"""Environments: `multigoal` in JAX, and an adapter for Gymnasium's."""

"""Environments: in JAX ours and those of other libraries, and an adapter for Gymnasium's."""

"""Multigoal: the environment in JAX, as a Gymnasium environment, and its exact optimum."""

"""Training: one trainer with a compiled loop for environments in JAX and one for Gymnasium's."""

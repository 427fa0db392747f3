"""Gymnasium environments: the adapter, the simulators that it steps, and worker processes for them."""

"""Sweeps: many runs from one small file, here, side by side or on a cluster."""

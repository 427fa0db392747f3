"""Tiny runs of the command line, and the hash of all that a run leaves: those of `s2ac selftest`."""

from s2ac.selftest.tiny import COMMAND, digest, environment, train_arguments

__all__ = ["COMMAND", "digest", "environment", "train_arguments"]

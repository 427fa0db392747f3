"""Tiny runs of the command line, the hash of all that a run leaves, and a killer: those of `s2ac selftest`."""

from s2ac.selftest.tiny import COMMAND, digest, environment, killed_often, train_arguments

__all__ = ["COMMAND", "digest", "environment", "killed_often", "train_arguments"]

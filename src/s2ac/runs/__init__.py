"""A run on disk: its description, checkpoints, records and lock. Knows no training."""

"""Trained policies as files and as films."""

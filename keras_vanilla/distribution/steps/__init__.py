"""A training step, one file for each backend."""

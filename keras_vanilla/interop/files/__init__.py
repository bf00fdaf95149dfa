"""Checkpoint files, which are checked before arrays are allocated and read."""

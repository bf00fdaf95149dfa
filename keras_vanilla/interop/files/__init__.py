"""Checkpoint files: read array by array, checked before anything is allocated."""

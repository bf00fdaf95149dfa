"""Exact resume of training from snapshots."""

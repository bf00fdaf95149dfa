"""Exact resume: snapshots of a training, and the callback that continues from them."""

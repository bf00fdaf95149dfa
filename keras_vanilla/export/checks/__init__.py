"""Checks of an exported file: its structure, and its outputs against Keras."""

"""Checks an exported file: its structure, and its outputs against those of Keras."""

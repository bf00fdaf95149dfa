"""The version, in a module of its own so that the build reads it without Keras."""

__version__ = "0.6.0"

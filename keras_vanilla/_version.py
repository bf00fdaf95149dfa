"""The version, in a separate module so that the build reads it without Keras."""

__version__ = "0.8.0"

"""Training on several devices and machines."""

from keras_vanilla.distribution.strategies import strategy

__all__ = ["strategy"]

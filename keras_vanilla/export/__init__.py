"""A trained translator as one file for a phone, or one folder for a server."""

from keras_vanilla.export.to_saved_model import saved_model
from keras_vanilla.export.to_tflite import tflite
from keras_vanilla.export.verification import verify

__all__ = ["saved_model", "tflite", "verify"]

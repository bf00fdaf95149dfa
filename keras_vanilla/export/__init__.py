"""A trained translator as one file for a phone, or one folder for a server."""

import importlib

_HOMES = {
    "Description": "metadata.description",
    "read_description": "metadata.description",
    "saved_model": "to_saved_model",
    "tflite": "to_tflite",
    "verify": "checks.verification",
}

__all__ = list(_HOMES)


# What a file says of itself is read without TensorFlow, which takes seconds to load.
def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

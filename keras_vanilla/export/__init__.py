"""A trained translator as one file for a phone, or one folder for a server."""

from keras_vanilla._checks import extra_missing
from keras_vanilla._lazy_names import lazy_names

_HOMES = {
    "ExportConfig": "config",
    "Description": "metadata.description",
    "read_description": "metadata.flatbuffer",
    "saved_model": "to_saved_model",
    "tflite": "to_tflite",
    "verify": "checks.verification",
}

__all__ = list(_HOMES)

_imported = lazy_names(__name__, _HOMES)


# Descriptions are read without TensorFlow, which takes seconds to load.
def __getattr__(name):
    try:
        return _imported(name)
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise extra_missing("Exports", "tensorflow", "tensorflow") from error

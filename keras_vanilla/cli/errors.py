"""Formats errors for the command line as one sentence."""

import sys

from keras_vanilla._checks import first_line
from keras_vanilla._out_of_memory import is_out_of_memory

LESS_MEMORY = {
    "train": "train on each batch in parts with --micro-batches N, or on smaller ones "
    "with --tokens-per-batch N",
    "translate": "a smaller --beam-size or --max-length needs less",
    "evaluate": "a smaller --beam-size needs less",
}


def is_expected(error: Exception) -> bool:
    """Returns True if an error's text explains it; others are bugs of this package."""
    expected = ValueError, OSError, ImportError, RuntimeError, MemoryError
    return isinstance(error, (*expected, *_tensorflow_errors()))


def sentence(error: Exception, command: str | None = None) -> str:
    """Returns a sentence that describes an error.

    Args:
        error: an exception that `is_expected`.
        command: str or None. The name of the failed command, for the remedy.
    """
    if is_out_of_memory(error):
        remedy = LESS_MEMORY.get(command)
        return f"There is not enough memory{f': {remedy}' if remedy else ''}."
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    if isinstance(error, _tensorflow_errors()):
        return first_line(error)  # followed by pages of locations in a graph
    return str(error)


def _tensorflow_errors():
    """Returns the class of TensorFlow's errors, if TensorFlow is in use."""
    tensorflow = sys.modules.get("tensorflow")
    return (tensorflow.errors.OpError,) if hasattr(tensorflow, "errors") else ()

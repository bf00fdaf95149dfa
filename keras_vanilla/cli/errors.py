"""Errors as the command line shows them: one sentence each."""

import errno
import sys

from keras_vanilla._checks import first_line

LESS_MEMORY = {
    "train": "train on each batch in parts with --micro-batches N, or on smaller ones "
    "with --tokens-per-batch N",
    "translate": "a smaller --beam-size or --max-length needs less",
    "evaluate": "a smaller --beam-size needs less",
}
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory", "can't allocate memory")


def is_expected(error: Exception) -> bool:
    """Whether an error's text explains it; others are mistakes of this package."""
    expected = ValueError, OSError, ImportError, RuntimeError, MemoryError
    return isinstance(error, (*expected, *_tensorflow_errors()))


def sentence(error: Exception, command: str | None = None) -> str:
    """The sentence that describes an error.

    Args:
        error: any that `is_expected`.
        command: str or None. The name of the command that it ended, for the remedy.
    """
    if is_out_of_memory(error):
        remedy = LESS_MEMORY.get(command)
        return f"There is not enough memory{f': {remedy}' if remedy else ''}."
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    if isinstance(error, _tensorflow_errors()):
        return first_line(error)  # then come pages of where it was in a graph
    return str(error)


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory was exhausted, of this machine or of a device."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    names = {each.__name__ for each in type(error).__mro__}
    if names & {"MemoryError", "OutOfMemoryError"}:
        return True
    text = str(error)  # TensorFlow reports a full disk as the same kind of error
    exhausted = "ResourceExhaustedError" in names
    return (exhausted and "No space left" not in text) or (
        isinstance(error, RuntimeError) and any(word in text for word in OUT_OF_MEMORY)
    )


def _tensorflow_errors():
    """The class of TensorFlow's own errors, where TensorFlow is in use."""
    tensorflow = sys.modules.get("tensorflow")
    return (tensorflow.errors.OpError,) if hasattr(tensorflow, "errors") else ()

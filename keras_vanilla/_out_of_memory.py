"""Recognises out-of-memory errors of all libraries."""

import errno
import os

MESSAGES = ("RESOURCE_EXHAUSTED", "out of memory", "can't allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Returns True if the memory of this machine or of a device was exhausted.

    Args:
        error: an exception of Python, NumPy, TensorFlow, JAX, PyTorch or the operating
            system.
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    names = {each.__name__ for each in type(error).__mro__}
    if names & {"MemoryError", "OutOfMemoryError"}:
        return True
    text = str(error)
    if "ResourceExhaustedError" in names:  # TensorFlow raises it for a full disk too
        return os.strerror(errno.ENOSPC) not in text
    return isinstance(error, RuntimeError) and any(each in text for each in MESSAGES)

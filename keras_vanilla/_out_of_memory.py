"""Which errors mean that memory is exhausted, whatever library raises them."""

import errno
import os

MESSAGES = ("RESOURCE_EXHAUSTED", "out of memory", "can't allocate memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was exhausted, of this machine or of a device.

    Args:
        error: of Python, NumPy, TensorFlow, JAX, PyTorch or the operating system.
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    names = {each.__name__ for each in type(error).__mro__}
    if names & {"MemoryError", "OutOfMemoryError"}:
        return True
    text = str(error)
    if "ResourceExhaustedError" in names:  # TensorFlow's, also of a full disk
        return os.strerror(errno.ENOSPC) not in text
    return isinstance(error, RuntimeError) and any(each in text for each in MESSAGES)

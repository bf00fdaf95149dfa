"""Files that are whole or not there at all."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def whole(path, partial=None):
    """A binary file to write that has its name only when all of it is on the disk.

    Args:
        path: path of the file.
        partial: path of what is written, in the same folder, until it gets that name;
            None means the path with ".partial" after it.
    Raises:
        OSError: if it cannot be written; what had the name before keeps it.
    """
    partial = f"{path}.partial" if partial is None else partial
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError:
        Path(partial).unlink(missing_ok=True)
        raise

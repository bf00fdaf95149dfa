"""Arrays that are written once, to a file that several snapshots share."""

import functools
import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np


class SeparateArrays(tuple):
    """Arrays that do not change, such as the weights after an epoch.

    A callback that returns them from `get_state` has them written to a file of their
    own once, instead of into every snapshot.

    Args:
        arrays: iterable of NumPy arrays. Nobody may change them from now on.
    """

    def __new__(cls, arrays: Iterable[np.ndarray]):
        return super().__new__(cls, arrays)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of types, shapes and values."""
        digest = hashlib.sha256()
        for array in self:
            digest.update(f"{array.dtype.name} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def __deepcopy__(self, memo: Any) -> "SeparateArrays":
        return self

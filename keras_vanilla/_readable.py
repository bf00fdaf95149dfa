"""The numbers in a tensor, where there are any to read."""

import numpy as np
from keras import ops

from keras_vanilla._types import Tensor


def readable(tensor: Tensor) -> np.ndarray | None:
    """The tensor as a NumPy array; None if it is symbolic, as inside a graph."""
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError):
        return None

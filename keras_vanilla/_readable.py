"""Reads the values of a tensor, if it has any."""

import keras
import numpy as np
from keras import ops

from keras_vanilla._types import Tensor


def readable(tensor: Tensor) -> np.ndarray | None:
    """Returns a tensor as a NumPy array, or None if it is symbolic, as in a graph."""
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError):
        return None


def check_finite(name: str, weight: keras.Variable | np.ndarray) -> None:
    """Refuses a weight with values that are NaN or infinite.

    Args:
        name: str. Name in the error.
        weight: keras.Variable or array.
    Raises:
        ValueError: if there are such values.
    """
    values = ops.convert_to_numpy(weight)
    others = values[~np.isfinite(values)]
    if others.size:
        raise ValueError(
            f"The weight {name!r} must be finite numbers, but {others.size:,} of "
            f"{values.size:,} are not, such as {others[0]}: a training that diverged "
            "leaves such weights."
        )


def check_finite_weights(model: keras.Model) -> None:
    """Refuses a model with a weight that `check_finite` refuses."""
    for weight in model.weights:
        check_finite(weight.path, weight)

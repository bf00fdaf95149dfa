"""The order of a model's channels, which its positions decide.

"interleaved" and "concatenated" positions are the same numbers in another order of the
channels. A model whose weights are put into that order too computes the same.
"""

from collections.abc import Mapping

import numpy as np

INPUTS_ARE_CHANNELS = ("query", "key", "value", "inner")
OUTPUTS_ARE_CHANNELS = ("output", "outer")


def halves_first(d_model: int) -> np.ndarray:
    """Channels of interleaved positions in the order of concatenated ones (D,).

    Args:
        d_model: int, even.
    """
    return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])


def reordered(weights: Mapping[str, np.ndarray], order: np.ndarray) -> dict:
    """A model's weights with its channels in another order.

    Args:
        weights: dict under the names of `layer_weights`.
        order: int array (D,). Channel `order[i]` becomes channel i.
    """
    return {name: _reordered(name, array, order) for name, array in weights.items()}


def _reordered(name, array, order):
    *_, part, kind = ("", *name.split("/"))
    if kind.endswith("_embedding") or kind == "output":  # (V, D)
        return array[:, order]
    if part.endswith("_norm"):  # (D,)
        return array[order]
    if part in INPUTS_ARE_CHANNELS:
        return array[order] if kind == "kernel" else array
    if part in OUTPUTS_ARE_CHANNELS:
        return array[..., order]  # (.., D) and (D,)
    return array  # the bias of the logits (V,)

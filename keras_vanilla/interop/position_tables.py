"""Finds the layout of tables of positions in other formats."""

import numpy as np

from keras_vanilla.layers import PositionalEncoding
from keras_vanilla.layers.positional_encoding import LAYOUTS

ROUNDING = 2e-3  # of angles in float32 after 5,000 positions, and of float16


def sinusoids(layout: str, length: int, width: int) -> np.ndarray:
    """Returns the positions of our layer as a float32 table (length, width).

    Args:
        layout: str, as in `PositionalEncoding`.
        length: int.
        width: int.
    """
    nothing = np.zeros((1, length, width), "float32")
    table = PositionalEncoding(layout=layout, dtype="float32")(nothing)
    return np.asarray(table, dtype="float32")[0]


def layout_of(table: np.ndarray) -> str:
    """Returns the layout of the sinusoids in a table (length, width).

    Raises:
        ValueError: if the table has no known layout, such as learned positions.
    """
    for layout in LAYOUTS:
        expected = sinusoids(layout, *table.shape)
        if np.allclose(table, expected, rtol=0, atol=ROUNDING):
            return layout
    raise ValueError(
        "The positions must be sinusoids: learned positions are not the paper's. "
        f"Received: a table {table.shape} that differs from all layouts {LAYOUTS}"
    )

"""Inputs of different sizes are refused by every backend, not broadcast."""

import re

import keras
import numpy as np
import pytest

from keras_vanilla.layers import DecoderLayer, MultiHeadAttention

B, T, S, D = 2, 3, 5, 8
QUERY, VALUE = (B, T, D), (B, S, D)
ATTENTION, DECODER = (MultiHeadAttention, 2, 3), (DecoderLayer, 2)
SHAPES = {  # the layer, the shapes of its inputs, and the two that differ
    "longer keys": (ATTENTION, [QUERY, VALUE, (B, 6, D)], "length", 2, 1),
    "one key": (ATTENTION, [QUERY, VALUE, (B, 1, D)], "length", 2, 1),
    "keys of one row": (ATTENTION, [QUERY, VALUE, (1, S, D)], "batch", 2, 1),
    "values of one row": (ATTENTION, [QUERY, (1, S, D)], "batch", 0, 1),
    "query of one row": (ATTENTION, [(1, T, D), VALUE], "batch", 0, 1),
    "inputs of one row": (DECODER, [(1, T, D), VALUE], "batch", 0, 1),
    "memory of one row": (DECODER, [QUERY, (1, S, D)], "batch", 0, 1),
}


def in_graph(layer):
    tf = pytest.importorskip("tensorflow", reason="its graphs are tried")
    return tf.function(layer)


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("way", ["eager", "graph", "symbolic", "unbuilt"])
def test_inputs_of_different_sizes_are_refused_with_both_shapes(case, way):
    (layer_class, *sizes), shapes, axis, one, other = SHAPES[case]
    layer = layer_class(*sizes, **{"d_ff": 7} if layer_class is DecoderLayer else {})
    if way != "unbuilt":
        layer(*[np.ones((B, 4, D), "float32")] * 2)
    make = keras.KerasTensor if way == "symbolic" else np.ones
    pair = re.escape(f"shapes {shapes[one]} and {shapes[other]}")
    with pytest.raises(ValueError, match=f"the same {axis}. Received: {pair}") as error:
        call = in_graph(layer) if way == "graph" else layer
        call(*[make(shape, dtype="float32") for shape in shapes])
    assert "infer" not in str(error.value)  # Keras's advice to write a method

"""What a layer says of its outputs before it computes them is what it computes."""

import keras
import numpy as np
import pytest

from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)


def symbol(*shape, dtype="float32"):
    return keras.KerasTensor(shape, dtype=dtype)


def traced(layer, *args, **kwargs):
    return keras.Operation.compute_output_spec(layer, *args, **kwargs)


WIDE, MEMORY = (None, None, 8), (None, None, 12)
MASK = {"dtype": "bool"}
ENCODER = [symbol(3, 5, 8)]
USUAL = [
    (EncoderLayer, [symbol(None, None, 8)], {}),
    (EncoderLayer, ENCODER, {"mask": symbol(3, 5, **MASK)}),
    (EncoderLayer, [symbol(3, None, 8)], {"inputs_mask": symbol(3, None, **MASK)}),
    (DecoderLayer, [symbol(None, None, 8), symbol(None, None, 12)], {}),
    (
        DecoderLayer,
        [symbol(3, 5, 8), symbol(3, None, 12)],
        {"inputs_mask": symbol(3, 5, **MASK), "memory_mask": symbol(3, None, **MASK)},
    ),
]
UNUSUAL = [
    (EncoderLayer, ENCODER, {"return_attention_scores": True}),
    (EncoderLayer, ENCODER, {"attention_mask": symbol(3, 5, 5, **MASK)}),
]


def make(layer_class, **settings):
    layer = layer_class(num_heads=2, d_ff=16, **settings)
    layer.build(*((WIDE, MEMORY) if layer_class is DecoderLayer else (WIDE,)))
    return layer


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("layer_class, args, kwargs", USUAL + UNUSUAL)
def test_spec_is_that_of_the_computation(layer_class, args, kwargs, dtype):
    layer = make(layer_class, dtype=dtype)
    args = [symbol(*x.shape, dtype=layer.compute_dtype) for x in args]  # by Keras
    specs = layer.compute_output_spec(*args, **kwargs), traced(layer, *args, **kwargs)
    said, computed = (
        [(x.shape, x.dtype) for x in keras.tree.flatten(each)] for each in specs
    )
    assert said == computed


@pytest.mark.parametrize("layer_class, args, kwargs", USUAL)
def test_usual_call_is_not_computed(layer_class, args, kwargs, monkeypatch):
    layer = make(layer_class)
    monkeypatch.setattr(layer, "call", None)
    layer.compute_output_spec(*args, **kwargs)


def test_subclasses_and_wrong_calls_are_computed():
    class Twice(EncoderLayer):
        def call(self, inputs, mask=None):
            x = super().call(inputs, mask)
            return keras.ops.concatenate([x, x], axis=-1)

    assert make(Twice).compute_output_spec(*ENCODER).shape == (3, 5, 16)
    for layer_class, args, kwargs in (
        (EncoderLayer, [symbol(3, 5, 9)], {}),
        (EncoderLayer, ENCODER, {"mask": symbol(3, 4, **MASK)}),
        (DecoderLayer, [*ENCODER, symbol(3, 7, 8)], {}),
        (DecoderLayer, [*ENCODER, symbol(4, 7, 12)], {}),
        (DecoderLayer, [*ENCODER, symbol(3, 7, 12)], {"memory_mask": symbol(3, 6)}),
    ):
        with pytest.raises(ValueError):
            make(layer_class).compute_output_spec(*args, **kwargs)


LAYERS = {  # arguments, and the shapes of the inputs
    TokenEmbedding: ({"vocabulary_size": 11, "d_model": 8}, [(2, 5)]),
    PositionalEncoding: ({}, [(2, 5, 8)]),
    FeedForward: ({"d_ff": 16}, [(2, 5, 8)]),
    MultiHeadAttention: ({"num_heads": 2, "key_dim": 4}, [(2, 5, 8), (2, 7, 8)]),
    EncoderLayer: ({"num_heads": 2, "d_ff": 16}, [(2, 5, 8)]),
    DecoderLayer: ({"num_heads": 2, "d_ff": 16}, [(2, 5, 8), (2, 7, 12)]),
}
WITH_WEIGHTS = MultiHeadAttention, EncoderLayer, DecoderLayer


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("layer_class", LAYERS)
def test_spec_is_known_of_arrays_and_of_unbuilt_layers(
    layer_class, as_array, is_built, dtype
):
    arguments, shapes = LAYERS[layer_class]
    given = "int32" if layer_class is TokenEmbedding else "float32"
    arrays = [np.ones(shape, given) for shape in shapes]
    outputs = layer_class(**arguments, dtype=dtype)(*arrays)
    layer = layer_class(**arguments, dtype=dtype)
    if is_built:
        layer(*arrays)
    args = arrays if as_array else [symbol(*x.shape, dtype=given) for x in arrays]
    spec = layer.compute_output_spec(*args)
    assert spec.shape == (2, 5, 8) == tuple(outputs.shape)
    assert spec.dtype == keras.backend.standardize_dtype(outputs.dtype)
    if layer_class in WITH_WEIGHTS:
        spec, *weights = layer.compute_output_spec(*args, return_attention_scores=True)
        spec = [*spec, *weights] if isinstance(spec, tuple) else [spec, *weights]
        assert {each.dtype for each in spec} == {layer.compute_dtype}
        assert spec[-1].shape == (2, 2, 5, shapes[-1][1])

"""Inputs that do not belong together: refused before anything is broadcast."""

import keras
import numpy as np
import pytest

from keras_vanilla import Transformer
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)
from keras_vanilla.training import SmoothedCrossentropy

B, T, S, D = 2, 3, 5, 8


def floats(*shape):
    return np.ones(shape, "float32")


def symbols(*shape):
    return keras.KerasTensor(shape, dtype="float32")


def attention():
    return MultiHeadAttention(num_heads=2, key_dim=3)


def decoder_layer():
    return DecoderLayer(num_heads=2, d_ff=7)


def small_transformer():
    sizes = {"d_model": D, "num_heads": 2, "d_ff": 7, "max_length": 16}
    return Transformer(11, num_encoder_layers=1, num_decoder_layers=1, **sizes)


def in_a_graph(layer):
    tf = pytest.importorskip("tensorflow", reason="its graphs are tried")
    return tf.function(layer)


WRONG = {  # layer, the shapes it is called with, what the error names
    "longer keys": (
        attention,
        {"query": (B, T, D), "value": (B, S, D), "key": (B, S + 1, D)},
        "`key` and `value` must have the same length. Received: shapes (2, 6, 8) and "
        "(2, 5, 8)",
    ),
    "one key": (
        attention,
        {"query": (B, T, D), "value": (B, S, D), "key": (B, 1, D)},
        "`key` and `value` must have the same length. Received: shapes (2, 1, 8) and",
    ),
    "keys of one row": (
        attention,
        {"query": (B, T, D), "value": (B, S, D), "key": (1, S, D)},
        "`key` and `value` must have the same batch. Received: shapes (1, 5, 8) and",
    ),
    "values of one row": (
        attention,
        {"query": (B, T, D), "value": (1, S, D)},
        "`query` and `value` must have the same batch. Received: shapes (2, 3, 8) and "
        "(1, 5, 8)",
    ),
    "a query of one row": (
        attention,
        {"query": (1, T, D), "value": (B, S, D)},
        "`query` and `value` must have the same batch. Received: shapes (1, 3, 8) and",
    ),
    "inputs of one row": (
        decoder_layer,
        {"inputs": (1, T, D), "memory": (B, S, D)},
        "`inputs` and `memory` must have the same batch. Received: shapes (1, 3, 8) "
        "and (2, 5, 8)",
    ),
    "memory of one row": (
        decoder_layer,
        {"inputs": (B, T, D), "memory": (1, S, D)},
        "`inputs` and `memory` must have the same batch. Received: shapes (2, 3, 8) "
        "and (1, 5, 8)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("way", ["eager", "graph", "symbolic", "before it is built"])
def test_inputs_of_different_sizes_are_refused_with_both_shapes(case, way):
    make, shapes, message = WRONG[case]
    layer = make()
    if way != "before it is built":
        names = "query", "value", "inputs", "memory"
        layer(**{name: floats(B, 4, D) for name in shapes if name in names})
    call = in_a_graph(layer) if way == "graph" else layer
    make_tensor = symbols if way == "symbolic" else floats
    with pytest.raises(ValueError) as error:
        call(**{name: make_tensor(*shape) for name, shape in shapes.items()})
    assert message in str(error.value)
    assert "infer" not in str(error.value)  # Keras's advice to write a method


def test_batches_that_a_graph_does_not_know_are_not_compared():
    inputs = keras.Input((T, D)), keras.Input((S, D))
    model = keras.Model(inputs, decoder_layer()(*inputs))
    with pytest.raises(ValueError, match="must have the same batch"):
        model([floats(B, T, D), floats(1, S, D)])


def test_a_model_refuses_a_source_of_another_batch_than_the_target():
    model = small_transformer()
    ids = {"source_ids": np.ones((1, S), "int32"), "target_ids": np.ones((B, T))}
    with pytest.raises(ValueError) as error:
        model(ids)
    assert "same batch. Received: shapes (2, 3, 8) and (1, 5, 8)" in str(error.value)
    cache = model.start_cache(*model.encode(ids["source_ids"]), 4)
    with pytest.raises(ValueError, match="must have the same batch"):
        model.decode_step(np.ones((B,), "int32"), 0, cache)


@pytest.mark.parametrize("shape", [(1, S), (B, 1), (B + 1, S), (S,)])
def test_padding_masks_are_not_broadcast(shape):
    for layer, inputs, name in (
        (EncoderLayer(2, d_ff=7), [floats(B, S, D)], "mask"),
        (decoder_layer(), [floats(B, T, D), floats(B, S, D)], "memory_mask"),
        (attention(), [floats(B, T, D), floats(B, S, D)], "value_mask"),
    ):
        with pytest.raises(ValueError) as error:
            layer(*inputs, **{name: np.ones(shape, bool)})
        assert f"must have shape (B, L), here (2, 5). Received: {shape}" in str(
            error.value
        )


@pytest.mark.parametrize("start_index", [np.arange(B), np.zeros(1, "int32"), [0, 1, 2]])
def test_positions_start_at_one_number(start_index):
    with pytest.raises(ValueError, match="`start_index` must be one number for all"):
        PositionalEncoding()(floats(B, T, D), start_index=start_index)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("is_built", [False, True])
def test_a_decoder_layer_without_memory_says_what_to_do(is_built, symbolic):
    layer = decoder_layer()
    if is_built:
        layer(floats(B, T, D), floats(B, S, D))
    for call in (layer, layer.compute_output_spec):
        message = r"call it as layer\(inputs, memory\).*EncoderLayer.*use_causal_mask"
        with pytest.raises(ValueError, match=message):
            call((symbols if symbolic else floats)(B, T, D))


def test_a_cache_needs_a_layer_that_is_built():
    with pytest.raises(ValueError, match="The DecoderLayer has no weights yet: call"):
        decoder_layer().start_cache(floats(B, S, D), 4)
    with pytest.raises(ValueError, match="The MultiHeadAttention has no weights yet"):
        attention().start_cache(B, 4)


def ragged_ids():
    tf = pytest.importorskip("tensorflow", reason="ragged tensors are TensorFlow's")
    return tf.ragged.constant([[5, 3, 1], [4]])


@pytest.mark.parametrize(
    "layer",
    [TokenEmbedding(11, D), PositionalEncoding(), EncoderLayer(2, d_ff=7)]
    + [FeedForward(7), decoder_layer(), attention()],
    ids=lambda layer: type(layer).__name__,
)
def test_ragged_tensors_are_refused_by_saying_what_to_do(layer):
    ragged = ragged_ids()
    if not isinstance(layer, TokenEmbedding):
        ragged = ragged.with_values(floats(4, D))
    name = type(layer).__name__
    two = isinstance(layer, DecoderLayer | MultiHeadAttention)
    calls = (
        [[ragged, floats(B, S, D)], [floats(B, T, D), ragged]] if two else [[ragged]]
    )
    for inputs in calls:
        with pytest.raises(ValueError, match=rf"{name} takes no ragged.*\.to_tensor"):
            layer(*inputs)


def test_models_refuse_ragged_batches_by_saying_what_to_do():
    ids = keras.Input((None,), dtype="int32", ragged=True)
    with pytest.raises(ValueError, match="TokenEmbedding takes no ragged tensors"):
        TokenEmbedding(11, D)(ids)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, EncoderLayer(2, d_ff=7)(TokenEmbedding(11, D)(ids)))
    with pytest.raises(ValueError, match="TokenEmbedding takes no ragged tensors"):
        model(ragged_ids())
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="TokenEmbedding takes no ragged tensors"):
        model.fit(ragged_ids(), floats(B, 3, D), verbose=0)


@pytest.mark.parametrize("part", ["inputs", "labels", "weights"])
@pytest.mark.parametrize("method", ["fit", "evaluate", "train_on_batch"])
def test_a_transformer_refuses_ragged_batches(method, part):
    tf = pytest.importorskip("tensorflow", reason="ragged tensors are TensorFlow's")
    ragged = ragged_ids()
    ids = ragged.to_tensor()
    x = {"source_ids": ids, "target_ids": ids}
    data = {"x": x, "y": ids, "sample_weight": tf.cast(ids != 0, "float32")}
    data |= {
        "inputs": {"x": {**x, "source_ids": ragged}},
        "labels": {"y": ragged},
        "weights": {"sample_weight": tf.cast(ragged, "float32")},
    }[part]
    model = small_transformer()
    model.compile("sgd", SmoothedCrossentropy(), micro_batches=2)
    quiet = {} if method == "train_on_batch" else {"verbose": 0}
    with pytest.raises(ValueError, match="A Transformer takes no ragged tensors: pad"):
        getattr(model, method)(**data, **quiet)


def test_a_search_refuses_ragged_sources():
    with pytest.raises(ValueError, match="TokenEmbedding takes no ragged tensors"):
        small_transformer().encode(ragged_ids())

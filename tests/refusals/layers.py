"""What layers refuse: arguments, shapes, masks and ragged tensors."""

import math
import re
from functools import partial

import keras
import numpy as np
import tensorflow as tf
from refusal import Refusal

from keras_vanilla import Transformer
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)

B, T, S, N, D = 2, 4, 5, 4, 8  # as many queries as heads: ranks can be confused
ARGUMENTS = {
    DecoderLayer: {"num_heads": N, "d_ff": 3},
    EncoderLayer: {"num_heads": N, "d_ff": 3},
    FeedForward: {"d_ff": 3},
    MultiHeadAttention: {"num_heads": N, "key_dim": 3},
    PositionalEncoding: {},
    TokenEmbedding: {"vocabulary_size": 11, "d_model": D},
    Transformer: {"source_vocabulary_size": 5, "d_model": D, "num_heads": N},
}
SIZES = {
    DecoderLayer: ("num_heads", "d_ff", "key_dim"),
    EncoderLayer: ("num_heads", "d_ff", "key_dim"),
    FeedForward: ("d_ff",),
    MultiHeadAttention: ("num_heads", "key_dim", "value_dim"),
    TokenEmbedding: ("vocabulary_size", "d_model"),
}
UNKNOWN_TO_KERAS = {
    "kernel_initializer": ("glorot", 5),
    "kernel_regularizer": ("l3",),
    "activation": ("rely",),
    "dtype": ("float33",),
}
TWO_INPUTS = DecoderLayer, MultiHeadAttention
QUANTISED = keras.dtype_policies.QuantizedDTypePolicy("int8", "float32")
ONE_QUANTISED = keras.dtype_policies.DTypePolicyMap("float32", {"(.*/)?a": QUANTISED})


def made(layer, *others, **arguments):
    return lambda: layer(*others, **{**ARGUMENTS[layer], **arguments})


def floats(*shape):
    return np.ones(shape, "float32")


def called(layer, *shapes, way="eager", **more):
    """A call of a layer with inputs of these shapes."""

    def call():
        one = layer(**ARGUMENTS[layer])
        if way != "unbuilt":
            one(*[floats(B, T, D)] * (2 if layer in TWO_INPUTS else 1))
        tensors = [
            keras.KerasTensor(shape) if way == "symbolic" else floats(*shape)
            for shape in shapes
        ]
        one(*tensors, **more)

    return call


def ragged(layer, place):
    def call():
        values = tf.ragged.constant([[5, 3, 1], [4]])
        if layer is not TokenEmbedding:
            values = values.with_values(floats(4, D))
        inputs = [floats(B, S, D)] * (2 if layer in TWO_INPUTS else 1)
        inputs[place] = values
        layer(**ARGUMENTS[layer])(*inputs)

    return call


def symbolic_ragged():
    ids = keras.Input((None,), dtype="int32", ragged=True)
    TokenEmbedding(11, D)(ids)


def unknown_batch():
    """A graph cannot compare batches that it does not know; its run does."""
    inputs = keras.Input((T, D)), keras.Input((S, D))
    layer = DecoderLayer(**ARGUMENTS[DecoderLayer])
    keras.Model(inputs, layer(*inputs))([floats(B, T, D), floats(1, S, D)])


def float_mask():
    inputs, mask = keras.Input((T, D)), keras.Input((T, T))
    MultiHeadAttention(N, 2)(inputs, inputs, attention_mask=mask)


def step(width, index):
    def call():
        layer = DecoderLayer(**ARGUMENTS[DecoderLayer])
        layer(floats(B, T, D), floats(B, S, D))
        cache = layer.start_cache(floats(B, S, D), max_length=T)
        layer.step(floats(B, width, D), cache, index)

    return call


QUERY, VALUE = (B, T, D), (B, S, D)
attend = partial(called, MultiHeadAttention)
positions = partial(called, PositionalEncoding)
WRONG = {  # name: the call, and a pattern of its error
    # constructors
    **{
        f"{layer.__name__} {name}": (made(layer, **{name: 0}), f"`{name}`.* 0")
        for layer, names in SIZES.items()
        for name in names
    },
    **{
        f"{layer.__name__} {name} {value}": (made(layer, **{name: value}), str(value))
        for layer in (DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention)
        for name, values in UNKNOWN_TO_KERAS.items()
        for value in values
        if (layer, name) != (MultiHeadAttention, "activation")
    },
    **{
        f"{layer.__name__} {name} {value}": (
            made(layer, **{name: value}),
            f"`{name}`.*{value}",
        )
        for layer, name in (
            (EncoderLayer, "layer_norm_epsilon"),
            (DecoderLayer, "layer_norm_epsilon"),
            (Transformer, "layer_norm_epsilon"),
            (PositionalEncoding, "max_wavelength"),
        )
        for value in (-1e-5, math.nan, math.inf, "10")
    },
    "no wavelength": (made(PositionalEncoding, max_wavelength=0), "`max_wavelength`"),
    "layout": (made(PositionalEncoding, layout="sideways"), "'sideways'"),
    "table": (made(TokenEmbedding, embeddings=floats(D, 11)), r"\(11, 8\).*\(8, 11\)"),
    **{
        f"quantised {layer.__name__}": (
            made(layer, dtype=dtype),
            r"0\.7\.0 .*dtype=int8",
        )
        for layer, dtype in (
            (TokenEmbedding, QUANTISED),
            (EncoderLayer, ONE_QUANTISED),
            (Transformer, ONE_QUANTISED),
        )
    },
    # shapes
    **{
        f"{layer.__name__} without a width": (
            lambda layer=layer: made(layer)()(keras.Input((None, None))),
            r"\(None, None, None\)",
        )
        for layer in (EncoderLayer, FeedForward, PositionalEncoding)
    },
    "attention without a width": (
        lambda: MultiHeadAttention(2, 3)(keras.Input((5, 4)), keras.Input((5, None))),
        r"`value`.*\(None, 5, None\)",
    ),
    **{
        f"{name} of another rank": (
            attend(*shapes, way="unbuilt"),
            rf"`{name}` must have shape \(batch, length",
        )
        for name, shapes in {
            "query": ((*QUERY, 1), VALUE, VALUE),
            "value": (QUERY, (*VALUE, 1), VALUE),
            "key": (QUERY, VALUE, (*VALUE, 1)),
        }.items()
    },
    "positions of two axes": (positions((T, D), way="unbuilt"), r"Received: \(4, 8\)"),
    "positions of four axes": (positions((B, 2, T, D), way="unbuilt"), r"\(2, 2, 4"),
    "odd width": (positions((1, T, 7), way="unbuilt"), "even width.*d_model=7"),
    "heads of encoder": (
        lambda: EncoderLayer(3, d_ff=2).build(QUERY),
        "divisible.*d_model=8, num_heads=3",
    ),
    "heads of decoder": (
        lambda: DecoderLayer(3, d_ff=2).build(QUERY, VALUE),
        "divisible.*d_model=8, num_heads=3",
    ),
    "unknown batch": (unknown_batch, "must have the same batch"),
    **{
        f"no memory, {way}": (
            called(DecoderLayer, QUERY, way=way),
            r"layer\(inputs, memory\).*EncoderLayer.*use_causal_mask",
        )
        for way in ("eager", "symbolic", "unbuilt")
    },
    **{
        f"start at {start}": (positions(QUERY, start_index=start), "`start_index`.*one")
        for start in (np.arange(B), np.zeros(1, "int32"), [0, 1, 2])
    },
    **{
        f"id {wrong}": (
            lambda wrong=wrong: TokenEmbedding(11, D)(np.array([[1, wrong]])),
            f"size, 11. Received: {wrong}",
        )
        for wrong in (-1, 11, 2.5, math.nan)
    },
    # steps
    "decoder's cache without weights": (
        lambda: made(DecoderLayer)().start_cache(floats(B, S, D), 4),
        "The DecoderLayer has no weights yet",
    ),
    "attention's cache without weights": (
        lambda: made(MultiHeadAttention)().start_cache(B, 4),
        "The MultiHeadAttention has no weights yet",
    ),
    **{
        f"step {index!r}": (step(1, index), f"holds {T}. Received: index={index}")
        for index in (-1, T, np.int64(T), np.array(T, "int32"))
    },
    "step of two": (step(2, 0), r"\(B, 1, D\). Received .* \(2, 2, 8\)"),
    # masks
    **{
        f"attention_mask {shape}": (
            attend(QUERY, QUERY, attention_mask=np.ones(shape, bool)),
            rf"`attention_mask`.*\(2, 4, 4, 4\). Received: {re.escape(str(shape))}",
        )
        for shape in ((B, T), (T,), (B, T, T + 1), (B, 3, T, T), (5, T, T))
    },
    **{
        f"{name} {shape}": (
            called(layer, *shapes, **{name: np.ones(shape, bool)}),
            rf"\(B, L\), here \(2, 5\). Received: {re.escape(str(shape))}",
        )
        for name, layer, *shapes in (
            ("mask", EncoderLayer, VALUE),
            ("memory_mask", DecoderLayer, QUERY, VALUE),
            ("value_mask", MultiHeadAttention, QUERY, VALUE),
            ("key_mask", MultiHeadAttention, QUERY, VALUE),
            ("query_mask", MultiHeadAttention, VALUE, VALUE),
        )
        for shape in ((1, S), (B, 1), (B + 1, S), (B, S + 1), (S,))
    },
    **{
        f"added {name}": (
            attend(QUERY, QUERY, **{name: floats(B, T) * -1e9}),
            f"`{name}` must be boolean.*Received: .*-1",
        )
        for name in ("attention_mask", "value_mask")
    },
    "float mask": (float_mask, "cast it to bool. Received: dtype=float32"),
    # ragged tensors
    **{
        f"ragged input {place} of {layer.__name__}": (
            ragged(layer, place),
            rf"{layer.__name__} takes no ragged.*\.to_tensor",
        )
        for layer in ARGUMENTS
        if layer is not Transformer
        for place in range(2 if layer in TWO_INPUTS else 1)
    },
    "symbolic ragged": (symbolic_ragged, "TokenEmbedding takes no ragged"),
}
TOO_MANY = {  # by position
    EncoderLayer: (64, 4),  # KerasHub's order: width, heads
    DecoderLayer: (64, 4),
    PositionalEncoding: (512,),  # a width, in other libraries
    TokenEmbedding: (5, D, 0),
    FeedForward: (64, 32),
}
ROWS = [
    *(Refusal(name, call, pattern) for name, (call, pattern) in WRONG.items()),
    *(
        Refusal(
            f"{layer.__name__}{others}",
            lambda layer=layer, others=others: layer(*others),
            rf"{layer.__name__}: too many positional arguments",
            TypeError,
        )
        for layer, others in TOO_MANY.items()
    ),
    Refusal("missing", lambda: EncoderLayer(4), "EncoderLayer.*'d_ff'", TypeError),
]

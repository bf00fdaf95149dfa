"""What layers refuse: arguments, shapes, masks and ragged tensors."""

import re

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
PADDING_MASKS = {
    "mask": (EncoderLayer, VALUE),
    "memory_mask": (DecoderLayer, QUERY, VALUE),
    "value_mask": (MultiHeadAttention, QUERY, VALUE),
    "key_mask": (MultiHeadAttention, QUERY, VALUE),
}


ROWS = [
    # constructors
    *(
        Refusal(f"{layer.__name__}({name}=0)", made(layer, **{name: 0}), f"`{name}`.*0")
        for layer, names in SIZES.items()
        for name in names
    ),
    *(
        Refusal(
            f"{layer.__name__}({name}={value!r})",
            made(layer, **{name: value}),
            str(value),
        )
        for layer in (DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention)
        for name, values in UNKNOWN_TO_KERAS.items()
        for value in values
        if (layer, name) != (MultiHeadAttention, "activation")
    ),
    *(
        Refusal(
            f"epsilon {value}",
            made(layer, layer_norm_epsilon=value),
            f"epsilon.*{value}",
        )
        for layer in (EncoderLayer, DecoderLayer, Transformer)
        for value in (-1e-5, float("nan"), "small")
    ),
    *(
        Refusal(
            f"wavelength {value}",
            made(PositionalEncoding, max_wavelength=value),
            f"`max_wavelength`.*{value}",
        )
        for value in (0, -1, float("nan"), float("inf"), "10")
    ),
    Refusal("layout", made(PositionalEncoding, layout="sideways"), "'sideways'"),
    *(
        Refusal(
            f"{layer.__name__}{others}",
            lambda layer=layer, others=others: layer(*others),
            rf"{layer.__name__}: too many positional arguments",
            TypeError,
        )
        for layer, others in {
            EncoderLayer: (64, 4),  # KerasHub's order: width, heads
            DecoderLayer: (64, 4),
            PositionalEncoding: (512,),  # a width, in other libraries
            TokenEmbedding: (5, D, 0),
            FeedForward: (64, 32),
        }.items()
    ),
    Refusal(
        "missing", lambda: EncoderLayer(num_heads=4), "EncoderLayer.*'d_ff'", TypeError
    ),
    Refusal(
        "table",
        made(TokenEmbedding, embeddings=floats(D, 11)),
        r"\(11, 8\). Received: \(8, 11\)",
    ),
    *(
        Refusal(f"quantised {name}", make, r"0\.7\.0 .*dtype=int8_from_float32")
        for name, make in {
            "table": made(TokenEmbedding, dtype=QUANTISED),
            "sub-layer": made(EncoderLayer, dtype=ONE_QUANTISED),
            "Transformer": made(Transformer, dtype=ONE_QUANTISED),
        }.items()
    ),
    Refusal(
        "quantize",
        lambda: Transformer(
            **ARGUMENTS[Transformer], num_encoder_layers=1, num_decoder_layers=1
        ).quantize("int8"),
        r"removed in 0\.8\.0: use `Translator\.save",
        NotImplementedError,
    ),
    # shapes
    *(
        Refusal(
            f"{layer.__name__} without a width",
            lambda layer=layer: made(layer)()(keras.Input((None, None))),
            r"\(None, None, None\)",
        )
        for layer in (EncoderLayer, FeedForward, PositionalEncoding)
    ),
    Refusal(
        "attention without a width",
        lambda: MultiHeadAttention(2, 3)(keras.Input((5, 4)), keras.Input((5, None))),
        r"`value`.*\(None, 5, None\)",
    ),
    *(
        Refusal(
            f"{name} of another rank",
            called(MultiHeadAttention, *shapes, way="unbuilt"),
            rf"`{name}` must have shape \(batch, length",
        )
        for name, shapes in {
            "query": ((*QUERY, 1), VALUE, VALUE),
            "value": (QUERY, (*VALUE, 1), VALUE),
            "key": (QUERY, VALUE, (*VALUE, 1)),
        }.items()
    ),
    *(
        Refusal(
            f"positions of {shape}",
            called(PositionalEncoding, shape, way="unbuilt"),
            "shape.*Received",
        )
        for shape in ((T, D), (B, 2, T, D))
    ),
    Refusal(
        "odd width",
        called(PositionalEncoding, (1, T, 7), way="unbuilt"),
        "even width.*Received: d_model=7",
    ),
    *(
        Refusal(
            f"{layer.__name__} with 3 heads",
            lambda layer=layer: (
                layer(3, d_ff=2).build(QUERY, VALUE)
                if layer is DecoderLayer
                else layer(3, d_ff=2).build(QUERY)
            ),
            "divisible.*d_model=8, num_heads=3",
        )
        for layer in (DecoderLayer, EncoderLayer)
    ),
    Refusal("unknown batch", unknown_batch, "must have the same batch"),
    *(
        Refusal(
            f"no memory, {way}",
            called(DecoderLayer, QUERY, way=way),
            r"layer\(inputs, memory\).*EncoderLayer.*use_causal_mask",
        )
        for way in ("eager", "symbolic", "unbuilt")
    ),
    *(
        Refusal(
            f"start_index {start}",
            called(PositionalEncoding, QUERY, start_index=start),
            "`start_index` must be one number for all",
        )
        for start in (np.arange(B), np.zeros(1, "int32"), [0, 1, 2])
    ),
    *(
        Refusal(f"id {wrong}", call, f"size, 11. Received: {wrong}")
        for wrong in (-1, 11, 2.5, np.nan)
        for call in (lambda w=wrong: TokenEmbedding(11, D)(np.array([[1, w]])),)
    ),
    # steps
    Refusal(
        "decoder's cache without weights",
        lambda: made(DecoderLayer)().start_cache(floats(B, S, D), 4),
        "The DecoderLayer has no weights yet",
    ),
    Refusal(
        "attention's cache without weights",
        lambda: made(MultiHeadAttention)().start_cache(B, 4),
        "The MultiHeadAttention has no weights yet",
    ),
    *(
        Refusal(f"step {index}", step(1, index), f"holds {T}. Received: index={index}")
        for index in (-1, T, np.int64(T), np.array(T, "int32"))
    ),
    Refusal("step of two", step(2, 0), rf"\(B, 1, D\). Received .* \({B}, 2, {D}\)"),
    # masks
    *(
        Refusal(
            f"attention_mask {shape}",
            called(
                MultiHeadAttention, QUERY, QUERY, attention_mask=np.ones(shape, bool)
            ),
            r"`attention_mask`.*\(2, 4, 4, 4\)\. Received: \("
            + ", ".join(map(str, shape)),
        )
        for shape in ((B, T), (T,), (B, T, T + 1), (B, 3, T, T), (5, T, T))
    ),
    *(
        Refusal(
            f"{name} {shape}",
            called(layer, *shapes, **{name: np.ones(shape, bool)}),
            rf"\(B, L\), here \(2, 5\). Received: {re.escape(str(shape))}",
        )
        for name, (layer, *shapes) in PADDING_MASKS.items()
        for shape in ((1, S), (B, 1), (B + 1, S), (B, S + 1), (S,))
    ),
    Refusal(
        "query_mask (2, 6)",
        called(MultiHeadAttention, QUERY, QUERY, query_mask=np.ones((B, 6), bool)),
        r"`query_mask`.*\(2, 4\)\. Received: \(2, 6\)",
    ),
    *(
        Refusal(
            f"added {name}",
            called(MultiHeadAttention, QUERY, QUERY, **{name: floats(B, T) * -1e9}),
            f"`{name}` must be boolean.*Received: .*-1",
        )
        for name in ("attention_mask", "value_mask")
    ),
    Refusal("float mask", float_mask, "cast it to bool. Received: dtype=float32"),
    # ragged tensors
    *(
        Refusal(
            f"ragged input {place} of {layer.__name__}",
            ragged(layer, place),
            rf"{layer.__name__} takes no ragged.*\.to_tensor",
        )
        for layer in ARGUMENTS
        if layer is not Transformer
        for place in range(2 if layer in TWO_INPUTS else 1)
    ),
    Refusal("symbolic ragged", symbolic_ragged, "TokenEmbedding takes no ragged"),
]

"""What layers refuse."""

import keras
from refusal import Refusal

from keras_vanilla import Transformer
from keras_vanilla.layers import (
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)

QUANTISED = keras.dtype_policies.QuantizedDTypePolicy("int8", "float32")
ONE_QUANTISED = keras.dtype_policies.DTypePolicyMap("float32", {"(.*/)?a": QUANTISED})
SIZES = {"source_vocabulary_size": 5, "d_model": 4, "num_heads": 2, "d_ff": 3}
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}

ROWS = [
    *(
        Refusal(f"quantised {name}", make, r"0\.7\.0 .*dtype=int8_from_float32")
        for name, make in {
            "table": lambda: TokenEmbedding(5, 4, dtype=QUANTISED),
            "sub-layer": lambda: EncoderLayer(2, d_ff=3, dtype=ONE_QUANTISED),
            "Transformer": lambda: Transformer(**SIZES, dtype=ONE_QUANTISED),
        }.items()
    ),
    *(
        Refusal(
            f"{type(layer).__name__} without a width",
            lambda layer=layer: layer(keras.Input((None, None))),
            r"\(None, None, None\)",
        )
        for layer in (
            EncoderLayer(2, d_ff=3),
            FeedForward(3),
            PositionalEncoding(),
        )
    ),
    Refusal(
        "attention without a width",
        lambda: MultiHeadAttention(2, 3)(keras.Input((5, 4)), keras.Input((5, None))),
        r"`value`.*\(None, 5, None\)",
    ),
    Refusal(
        "quantize",
        lambda: Transformer(**SIZES, **ONE_LAYER).quantize("int8"),
        r"removed in 0\.8\.0: use `Translator\.save",
        NotImplementedError,
    ),
]

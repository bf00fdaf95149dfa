"""Loads weights of layers of Keras and KerasHub into our layers."""

import keras

from keras_vanilla.interop.layer_weights import (
    check_setting,
    load_layer,
    read_weights,
    refuse_overrides,
)
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    MultiHeadAttention,
    TokenEmbedding,
)

NAMES = {  # their sub-layers -> the names of `layer_weights`
    "attention_output": "output",
    "self_attention_layer": "self_attention",
    "self_attention_layer_norm": "self_attention_norm",
    "cross_attention_layer_norm": "cross_attention_norm",
    "feedforward_intermediate_dense": "feed_forward/inner",
    "feedforward_output_dense": "feed_forward/outer",
    "feedforward_layer_norm": "feed_forward_norm",
}
LAYER_ARGUMENTS = {  # our argument -> theirs
    "num_heads": "num_heads",
    "d_ff": "intermediate_dim",
    "activation": "activation",
    "normalize_first": "normalize_first",
    "layer_norm_epsilon": "layer_norm_epsilon",
}
ATTENTION_ARGUMENTS = ("num_heads", "key_dim", "value_dim", "use_bias")
SETTINGS = {
    EncoderLayer: LAYER_ARGUMENTS,
    DecoderLayer: LAYER_ARGUMENTS,
    MultiHeadAttention: {name: name for name in ATTENTION_ARGUMENTS},
    TokenEmbedding: {"vocabulary_size": "input_dim", "d_model": "output_dim"},
}
COUNTERPARTS = {
    "Embedding": TokenEmbedding,
    "MultiHeadAttention": MultiHeadAttention,
    "ReversibleEmbedding": TokenEmbedding,
    "TransformerDecoder": DecoderLayer,
    "TransformerEncoder": EncoderLayer,
}


def load_keras_layer(
    layer: EncoderLayer | DecoderLayer | MultiHeadAttention | TokenEmbedding,
    theirs: keras.layers.Layer,
) -> None:
    """Loads the weights of a layer of Keras or KerasHub into one of our layers.

    Outputs at real positions are then equal up to rounding.

    | theirs | layer |
    | --- | --- |
    | `keras_hub.layers.TransformerEncoder` | `EncoderLayer` |
    | `keras_hub.layers.TransformerDecoder` | `DecoderLayer` |
    | the same without an encoder | `EncoderLayer`, with `use_causal_mask` |
    | `keras.layers.MultiHeadAttention` | `MultiHeadAttention` |
    | `keras.layers.ReversibleEmbedding`, `Embedding` | `TokenEmbedding(scale=False)` |

    Args:
        layer: one of the above, with the same sizes and settings. It is built if
            necessary.
        theirs: Keras layer that is built.
    Raises:
        TypeError: if `theirs` is not one of these layers, or a subclass that changes
            the computation, or `layer` is not its counterpart.
        ValueError: if `theirs` is not built, or has settings or weights that `layer`
            does not have.
    Example:
        >>> theirs = keras.layers.Embedding(11, 6)
        >>> vectors = theirs(np.array([[2, 7]]))
        >>> layer = TokenEmbedding(vocabulary_size=11, d_model=6, scale=False)
        >>> load_keras_layer(layer, theirs)
        >>> bool(np.all(layer(np.array([[2, 7]])) == vectors))
        True
    """
    expected = _counterpart(theirs)
    if not isinstance(layer, expected):
        raise TypeError(
            f"The weights of this {type(theirs).__name__} go into a layer of class "
            f"{expected.__name__}. Received: a {type(layer).__name__}"
        )
    for name, their_name in SETTINGS[expected].items():
        check_setting(name, getattr(layer, name), getattr(theirs, their_name), theirs)
    _refuse_variants(layer, theirs)
    load_layer(layer, read_weights(_named_weights(theirs)))


def _counterpart(theirs):
    """Returns our class with the same computation."""
    for each in type(theirs).__mro__:
        name = each.__name__
        if each.__module__.split(".")[0] not in ("keras", "keras_hub"):
            continue
        if name not in COUNTERPARTS:
            continue
        refuse_overrides(theirs, each)
        if not theirs.weights:
            raise ValueError(f"The {name} has no weights yet: call or build it first.")
        has_memory = any("/cross_attention/" in w.path for w in theirs.weights)
        if name == "TransformerDecoder" and not has_memory:
            return EncoderLayer
        return COUNTERPARTS[name]
    raise TypeError(
        f"`theirs` must be a layer of Keras or KerasHub of class "
        f"{', '.join(sorted(COUNTERPARTS))}. Received: a {type(theirs).__name__}"
    )


def _refuse_variants(layer, theirs):
    """Refuses settings that change outputs without changing names or shapes."""
    settings = theirs.get_config()
    axes = settings.get("attention_axes")
    refused = {
        "sliding_window": settings.get("sliding_window"),
        "attention_axes": axes if axes and tuple(axes) != (1,) else None,
        "logit_soft_cap": settings.get("logit_soft_cap"),
    }
    for name, value in refused.items():
        if value is not None:
            raise ValueError(
                f"{type(layer).__name__} cannot compute what a {type(theirs).__name__} "
                f"with {name}={value!r} does."
            )
    for name in ("scale", "zero_pad"):
        if isinstance(layer, TokenEmbedding) and getattr(layer, name):
            raise ValueError(
                f"A {type(theirs).__name__} gives the rows of its table as they are: "
                f"`layer` needs {name}=False. Received: {name}=True"
            )


def _named_weights(theirs):
    """Returns their variables under the names of `layer_weights`."""
    return {
        "/".join(
            NAMES.get(part, part)
            for part in weight.path.removeprefix(f"{theirs.path}/").split("/")
        ): weight
        for weight in theirs.weights
    }

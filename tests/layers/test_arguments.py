"""Arguments of constructors: suggestions for wrong names, kernels, NumPy's integers."""

import re

import keras
import numpy as np
import pytest
from checks import array, weights_of

from keras_vanilla import Transformer
from keras_vanilla._checks import check_choice, refuse_unknown
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)

D = 8
ARGUMENTS = {
    DecoderLayer: {"num_heads": 2, "d_ff": 3},
    EncoderLayer: {"num_heads": 2, "d_ff": 3},
    FeedForward: {"d_ff": 3},
    MultiHeadAttention: {"num_heads": 2, "key_dim": 3},
    PositionalEncoding: {},
    TokenEmbedding: {"vocabulary_size": 5, "d_model": D},
    Transformer: {"source_vocabulary_size": 5, "d_model": D, "num_heads": 2},
}
WITH_KERNELS = (DecoderLayer, EncoderLayer, FeedForward, MultiHeadAttention)
MEANT = [  # names of other libraries and slips, and the names that the error suggests
    *((layer, "droput", ["dropout"]) for layer in (EncoderLayer, Transformer)),
    (PositionalEncoding, "droput", ["dropout"]),
    (TokenEmbedding, "droput", []),
    (EncoderLayer, "intermediate_dim", ["d_ff"]),
    (EncoderLayer, "dim_feedforward", ["d_ff"]),
    (DecoderLayer, "norm_first", ["normalize_first"]),
    (DecoderLayer, "layer_norm_eps", ["layer_norm_epsilon"]),
    (TokenEmbedding, "vocab_size", ["vocabulary_size"]),
    (TokenEmbedding, "embedding_dim", ["d_model"]),
    (TokenEmbedding, "padding_idx", ["pad_id"]),
    (Transformer, "nhead", ["num_heads"]),
    (Transformer, "num_layers", ["num_encoder_layers", "num_decoder_layers"]),
    (Transformer, "hidden_dim", ["d_model", "d_ff"]),
    (MultiHeadAttention, "num_head", ["num_heads"]),
    (MultiHeadAttention, "bias", ["use_bias"]),
    # with another meaning here, or none
    (MultiHeadAttention, "embed_dim", []),
    (MultiHeadAttention, "output_shape", []),
    (MultiHeadAttention, "bias_regularizer", []),
    (MultiHeadAttention, "bias_initializer", []),
    (MultiHeadAttention, "kernel_constraint", []),
    (TokenEmbedding, "embeddings_initializer", []),
    (TokenEmbedding, "embeddings_regularizer", []),
    (EncoderLayer, "hidden_size", []),
    (EncoderLayer, "bias", []),
    (FeedForward, "output_dim", []),
]


@pytest.mark.parametrize(("layer", "given", "meant"), MEANT)
def test_unknown_argument_is_refused_with_suggestions(layer, given, meant):
    message = f"{layer.__name__} has no argument {given!r}"
    with pytest.raises(TypeError, match=message) as error:
        layer(**ARGUMENTS[layer], **{given: 4})
    names = str(error.value).partition("Did you mean ")[2]
    assert re.findall(r"\w+", names.replace(" or ", " ")) == meant


@pytest.mark.parametrize(
    ("given", "known", "is_slip"),
    [
        ("attenton_dropout", "attention_dropout", True),  # one letter less
        ("attention_dropoutt", "attention_dropout", True),  # one more
        ("kernel_initialiser", "kernel_initializer", True),  # another one
        ("kernel_initilaizer", "kernel_initializer", True),  # two swapped
        ("kernal_initialiser", "kernel_initializer", True),  # a slip in each word
        ("vocabularysize", "vocabulary_size", True),
        ("source_id", "pad_id", False),
        ("min_length", "max_length", False),
        ("top_p", "top_k", False),
        ("output_mask", "input_mask", False),
        ("embeddings_initializer", "embeddings", False),
        ("kernel_size", "kernel_initializer", False),
        ("int4", "int8", False),
        (">>est<<", ">>ess<<", False),
    ],
)
def test_only_misspellings_are_recognised(given, known, is_slip):
    with pytest.raises(TypeError) as of_name:
        refuse_unknown("It", [given], ["name", "dtype", known])
    with pytest.raises(ValueError) as of_value:
        check_choice("it", given, ["name", known])
    for error in (of_name, of_value):
        assert (f"Did you mean {known!r}" in str(error.value)) == is_slip
        assert is_slip or "Did you mean" not in str(error.value)


def test_subclass_may_have_its_own_arguments():
    class Named(EncoderLayer):
        def __init__(self, colour, **kwargs):
            super().__init__(**kwargs)
            self.colour = colour

    assert Named("red", num_heads=2, d_ff=3, name="one").colour == "red"
    with pytest.raises(TypeError, match="Named has no argument 'color'. Did you mean"):
        Named(color="red", num_heads=2, d_ff=3)


@pytest.mark.parametrize("integer", [np.int64, np.uint8])
def test_sizes_may_be_numpys_integers(integer):
    ids = np.ones((2, 3), "int32")
    x = TokenEmbedding(integer(5), integer(D), pad_id=integer(0))(ids)
    x = EncoderLayer(integer(2), d_ff=integer(3), seed=integer(1))(x)
    memory = MultiHeadAttention(integer(2), integer(3))(x, x)
    layer = DecoderLayer(integer(2), d_ff=integer(3))
    assert tuple(layer(x, memory).shape) == (2, 3, D)
    assert type(layer.get_config()["d_ff"]) is int


def kernels_of(layer_class, **arguments):
    layer = layer_class(**{**ARGUMENTS[layer_class], **arguments})
    two = layer_class in (DecoderLayer, MultiHeadAttention)
    layer(*[keras.Input((3, D))] * (1 + two))
    weights = weights_of(layer).items()
    return layer, [weight for name, weight in weights if name.endswith("kernel")]


@pytest.mark.parametrize("layer_class", WITH_KERNELS)
def test_kernel_initializer_and_regularizer_reach_every_kernel(layer_class):
    settings = {
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.1),
        "kernel_regularizer": keras.regularizers.L2(0.5),
    }
    layer, kernels = kernels_of(layer_class, **settings)
    for i, kernel in enumerate(kernels):  # each with its own numbers
        for other in kernels[:i]:
            assert np.abs(kernel.ravel()[:5] - other.ravel()[:5]).max() > 1e-3
    expected = sum(0.5 * (kernel**2).sum() for kernel in kernels)
    assert abs(sum(map(float, layer.losses)) / expected - 1) < 1e-5
    again = layer_class.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    assert type(keras.initializers.get(again.kernel_initializer)).__name__ == (
        "RandomNormal"
    )
    assert array(again.kernel_regularizer.l2) == 0.5
    _, zeros = kernels_of(layer_class, kernel_initializer="zeros")
    assert zeros and not any(kernel.any() for kernel in zeros)

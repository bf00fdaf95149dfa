"""Constructors: what they refuse, and how the error names it."""

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


@pytest.mark.parametrize("layer", ARGUMENTS)
def test_an_unknown_argument_is_refused_by_the_class_that_was_called(layer):
    with pytest.raises(TypeError, match=f"{layer.__name__} has no argument 'droput'"):
        layer(**ARGUMENTS[layer], droput=0.5)


@pytest.mark.parametrize(
    ("layer", "given", "meant"),
    [
        (EncoderLayer, "intermediate_dim", "d_ff"),
        (EncoderLayer, "dim_feedforward", "d_ff"),
        (DecoderLayer, "norm_first", "normalize_first"),
        (DecoderLayer, "layer_norm_eps", "layer_norm_epsilon"),
        (TokenEmbedding, "vocab_size", "vocabulary_size"),
        (TokenEmbedding, "embedding_dim", "d_model"),
        (Transformer, "nhead", "num_heads"),
        (Transformer, "droput", "dropout"),
        (MultiHeadAttention, "num_head", "num_heads"),
    ],
)
def test_the_error_names_what_it_is_called_here(layer, given, meant):
    with pytest.raises(TypeError, match=f"{given!r}. Did you mean {meant!r}?"):
        layer(**{given: 4})


@pytest.mark.parametrize(
    ("layer", "given", "meant"),
    [
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
        (Transformer, "num_layers", ["num_encoder_layers", "num_decoder_layers"]),
        (Transformer, "hidden_dim", ["d_model", "d_ff"]),
        (MultiHeadAttention, "bias", ["use_bias"]),
        (TokenEmbedding, "padding_idx", ["pad_id"]),
    ],
)
def test_a_name_of_other_libraries_never_leads_to_another_meaning(layer, given, meant):
    with pytest.raises(TypeError) as error:
        layer(**ARGUMENTS[layer], **{given: 4})
    _, question, names = str(error.value).partition("Did you mean ")
    assert re.findall(r"\w+", names.replace(" or ", " ")) == meant
    assert question or "Other libraries have it; " in str(error.value)


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("source_id", "pad_id"),
        ("min_length", "max_length"),
        ("top_p", "top_k"),
        ("output_mask", "input_mask"),
        ("embeddings_initializer", "embeddings"),
        ("kernel_size", "kernel_initializer"),
        ("int4", "int8"),
        (">>est<<", ">>ess<<"),
    ],
)
def test_another_word_is_no_misspelling(given, known):
    with pytest.raises(TypeError) as error:
        refuse_unknown("It", [given], [known])
    assert "Did you mean" not in str(error.value)
    with pytest.raises(ValueError) as error:
        check_choice("it", given, [known])
    assert "Did you mean" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("attenton_dropout", "attention_dropout"),  # one letter less
        ("attention_dropoutt", "attention_dropout"),  # one more
        ("kernel_initialiser", "kernel_initializer"),  # another one
        ("kernel_initilaizer", "kernel_initializer"),  # two swapped
        ("kernal_initialiser", "kernel_initializer"),  # a slip in each word
        ("vocabularysize", "vocabulary_size"),
    ],
)
def test_a_misspelling_is_recognised(given, known):
    with pytest.raises(TypeError, match=f"{given}'. Did you mean '{known}'"):
        refuse_unknown("It", [given], ["name", "dtype", known])


def test_a_preset_refuses_what_a_transformer_has_not():
    with pytest.raises(TypeError, match="'droput'. Did you mean 'dropout'"):
        Transformer.from_preset("tiny", source_vocabulary_size=50, droput=0.5)


def test_a_missing_argument_is_named_with_the_class():
    with pytest.raises(TypeError, match="EncoderLayer: missing .* 'd_ff'. Expected"):
        EncoderLayer(num_heads=4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EncoderLayer(64, 4),  # KerasHub's order: width, heads
        lambda: DecoderLayer(64, 4),
        lambda: PositionalEncoding(512),  # a width, in other libraries
        lambda: TokenEmbedding(5, D, 0),
        lambda: FeedForward(64, 32),
    ],
)
def test_what_could_be_meant_otherwise_is_given_by_name(make):
    with pytest.raises(TypeError, match=r": too many positional arguments. Expected"):
        make()


def test_a_subclass_may_have_arguments_of_its_own():
    class Named(EncoderLayer):
        def __init__(self, colour, **kwargs):
            super().__init__(**kwargs)
            self.colour = colour

    assert Named("red", num_heads=2, d_ff=3, name="one").colour == "red"
    with pytest.raises(TypeError, match="Named has no argument 'color'. Did you mean"):
        Named(color="red", num_heads=2, d_ff=3)


SIZES = {
    DecoderLayer: ("num_heads", "d_ff", "key_dim"),
    EncoderLayer: ("num_heads", "d_ff", "key_dim"),
    FeedForward: ("d_ff",),
    MultiHeadAttention: ("num_heads", "key_dim", "value_dim"),
    TokenEmbedding: ("vocabulary_size", "d_model"),
}


@pytest.mark.parametrize(
    ("layer", "name"), [(layer, name) for layer in SIZES for name in SIZES[layer]]
)
def test_a_size_below_one_is_refused(layer, name):
    with pytest.raises(
        ValueError, match=f"`{name}` must be an integer of at least 1. Received: 0"
    ):
        layer(**{**ARGUMENTS[layer], name: 0})


@pytest.mark.parametrize("layer", [DecoderLayer, EncoderLayer])
def test_a_width_that_the_heads_do_not_divide_is_refused(layer):
    with pytest.raises(ValueError, match="divisible.*d_model=8, num_heads=3"):
        built(layer, num_heads=3)


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint8])
def test_sizes_may_be_numpys_integers(integer):
    ids = np.ones((2, 3), "int32")
    x = TokenEmbedding(integer(5), integer(D), pad_id=integer(0))(ids)
    x = EncoderLayer(integer(2), d_ff=integer(3), seed=integer(1))(x)
    memory = MultiHeadAttention(integer(2), integer(3))(x, x)
    layer = DecoderLayer(integer(2), d_ff=integer(3))
    assert tuple(layer(x, memory).shape) == (2, 3, D)
    assert type(layer.get_config()["d_ff"]) is int


@pytest.mark.parametrize("epsilon", [-1e-5, float("nan"), "small"])
def test_an_epsilon_that_is_negative_or_not_a_number_is_refused(epsilon):
    for layer in (EncoderLayer, DecoderLayer, Transformer):
        with pytest.raises(ValueError, match="`layer_norm_epsilon` must be a finite"):
            layer(**ARGUMENTS[layer], layer_norm_epsilon=epsilon)


@pytest.mark.parametrize("layer", WITH_KERNELS)
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("kernel_initializer", "glorot"),
        ("kernel_initializer", 5),
        ("kernel_regularizer", "l3"),
        ("activation", "rely"),
        ("dtype", "float33"),
    ],
)
def test_what_keras_does_not_know_is_refused_by_the_constructor(layer, name, wrong):
    if layer is MultiHeadAttention and name == "activation":
        return
    with pytest.raises(ValueError, match=str(wrong)):
        layer(**ARGUMENTS[layer], **{name: wrong})


def built(layer, **arguments):
    layer = layer(**{**ARGUMENTS[layer], **arguments})
    inputs = keras.Input((3, D))
    layer(inputs) if isinstance(layer, (EncoderLayer, FeedForward)) else layer(
        inputs, inputs
    )
    return layer


@pytest.mark.parametrize("layer", WITH_KERNELS)
def test_kernels_start_as_asked(layer):
    weights = weights_of(built(layer, kernel_initializer="zeros"))
    kernels = {name for name in weights if name.endswith("kernel")}
    assert kernels and not any(weights[name].any() for name in kernels)


@pytest.mark.parametrize("layer", WITH_KERNELS)
def test_one_initializer_draws_other_numbers_for_each_kernel(layer):
    initializer = keras.initializers.RandomNormal(stddev=0.1)
    layer = built(layer, kernel_initializer=initializer)
    kernels = [w for name, w in weights_of(layer).items() if name.endswith("kernel")]
    firsts = [kernel.ravel()[:5] for kernel in kernels]
    for i, first in enumerate(firsts):
        assert all(np.abs(first - other).max() > 1e-3 for other in firsts[:i])
    config = type(layer).from_config(layer.get_config()).get_config()
    assert config == layer.get_config()
    assert "RandomNormal" in str(config["kernel_initializer"])


@pytest.mark.parametrize("layer", WITH_KERNELS)
def test_every_kernel_is_regularised(layer):
    layer = built(layer, kernel_regularizer=keras.regularizers.L2(0.5))
    kernels = [w for name, w in weights_of(layer).items() if name.endswith("kernel")]
    expected = sum(0.5 * (kernel**2).sum() for kernel in kernels)
    assert abs(sum(map(float, layer.losses)) / expected - 1) < 1e-5
    again = type(layer).from_config(layer.get_config())
    assert re.fullmatch("L2", type(again.kernel_regularizer).__name__)
    assert array(again.kernel_regularizer.l2) == 0.5

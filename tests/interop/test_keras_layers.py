"""Layers of Keras and KerasHub, replaced by ours: the same outputs."""

import keras
import numpy as np
import pytest
from checks import array, assert_close, randomize
from gated_layers import GatedEncoderLayer

from keras_vanilla.interop import load_keras_layer
from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)

pytestmark = pytest.mark.full
hub = pytest.importorskip("keras_hub", reason="keras-hub is not installed")

B, T, S, N, D, M, F, V, L = 2, 7, 5, 3, 12, 10, 17, 23, 11  # M: width of the memory
TOLERANCE = 4e-6  # some rounding steps of float32
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(B, T, D)).astype("float32")
MEMORY = RANDOM.normal(size=(B, S, M)).astype("float32")
IDS = RANDOM.integers(1, V, (B, T)) * (np.arange(T) < [[7], [4]])
MASK = IDS != 0
MEMORY_MASK = np.arange(S) < [[3], [5]]
VARIANTS = [
    {},
    {"normalize_first": True, "activation": "gelu", "layer_norm_epsilon": 1e-3},
]


SOME = RANDOM.random((B, T, T)) < 0.5
SOME |= np.eye(T, dtype=bool)
HUB_LAYERS = [  # of KerasHub, ours, inputs, our masks, their masks
    (
        "TransformerEncoder",
        EncoderLayer,
        [INPUTS],
        {"mask": MASK},
        {"padding_mask": MASK},
    ),
    (
        "TransformerEncoder",
        EncoderLayer,
        [INPUTS],
        {"mask": MASK, "attention_mask": SOME},
        {"padding_mask": MASK, "attention_mask": SOME},
    ),
    (
        "TransformerDecoder",
        DecoderLayer,
        [INPUTS, MEMORY],
        {"inputs_mask": MASK, "memory_mask": MEMORY_MASK},
        {"decoder_padding_mask": MASK, "encoder_padding_mask": MEMORY_MASK},
    ),
    (
        "TransformerDecoder",  # without an encoder
        EncoderLayer,
        [INPUTS],
        {"mask": MASK, "use_causal_mask": True},
        {"decoder_padding_mask": MASK},
    ),
]


def hub_layer(name, inputs, **settings):
    """A layer of KerasHub with weights that no initializer gives."""
    theirs = getattr(hub.layers, name)(intermediate_dim=F, num_heads=N, **settings)
    theirs(*inputs)
    return randomize(theirs)


def assert_same_at_real_positions(ours, theirs, mask=MASK):
    assert_close(array(ours)[mask], array(theirs)[mask], TOLERANCE)


@pytest.mark.parametrize("settings", VARIANTS)
@pytest.mark.parametrize(("name", "ours", "inputs", "masks", "their_masks"), HUB_LAYERS)
def test_layers_of_keras_hub(name, ours, inputs, masks, their_masks, settings):
    theirs = hub_layer(name, inputs, **settings)
    layer = ours(N, d_ff=F, **settings)
    load_keras_layer(layer, theirs)
    expected = theirs(*inputs, **their_masks)
    assert_same_at_real_positions(layer(*inputs, **masks), expected)


@pytest.mark.parametrize("settings", [{}, {"max_wavelength": 333}])
def test_sine_position_encoding(settings):
    theirs, layer = (
        hub.layers.SinePositionEncoding(**settings),
        PositionalEncoding(**settings),
    )
    assert_close(layer(INPUTS), INPUTS + array(theirs(INPUTS)), TOLERANCE)
    step = INPUTS[:, 4:5]
    expected = step + array(theirs(step, start_index=4))
    assert_close(layer(step, start_index=4), expected, TOLERANCE)


def test_token_and_position_embedding():
    theirs = hub.layers.TokenAndPositionEmbedding(V, L, D, mask_zero=True)
    theirs(IDS)
    randomize(theirs)
    layer = TokenEmbedding(V, D, scale=False)
    load_keras_layer(layer, theirs.token_embedding)
    vectors = layer(IDS)
    expected = theirs(IDS)
    np.testing.assert_array_equal(
        array(vectors + theirs.position_embedding(vectors)), array(expected)
    )
    np.testing.assert_array_equal(array(vectors._keras_mask), MASK)
    np.testing.assert_array_equal(array(expected._keras_mask), MASK)


def test_reversible_embedding():
    theirs = keras.layers.ReversibleEmbedding(V, D)
    theirs(IDS)
    randomize(theirs)
    layer = TokenEmbedding(V, D, scale=False, pad_id=-1)
    load_keras_layer(layer, theirs)
    np.testing.assert_array_equal(array(layer(IDS)), array(theirs(IDS)))
    assert_close(layer(INPUTS, reverse=True), theirs(INPUTS, reverse=True), TOLERANCE)


@pytest.mark.parametrize("settings", [{}, {"use_bias": False, "value_dim": 2}])
def test_multi_head_attention(settings):
    theirs = keras.layers.MultiHeadAttention(N, 5, **settings)
    theirs(INPUTS, MEMORY)
    randomize(theirs)
    layer = MultiHeadAttention(N, 5, **settings)
    load_keras_layer(layer, theirs)
    masks = {"value_mask": MEMORY_MASK}
    assert_close(
        layer(INPUTS, MEMORY, **masks), theirs(INPUTS, MEMORY, **masks), TOLERANCE
    )


def test_layers_inside_models():
    ids = keras.Input((None,), dtype="int32")
    embedding = keras.layers.ReversibleEmbedding(V, D, mask_zero=True)
    encoder = hub.layers.TransformerEncoder(F, N)
    theirs = randomize(keras.Model(ids, encoder(embedding(ids))))

    our_embedding = TokenEmbedding(V, D, scale=False)
    our_encoder = EncoderLayer(N, d_ff=F)
    ours = keras.Model(ids, our_encoder(our_embedding(ids)))
    load_keras_layer(our_embedding, embedding)
    load_keras_layer(our_encoder, encoder)
    assert_same_at_real_positions(
        ours.predict(IDS, verbose=0), theirs.predict(IDS, verbose=0)
    )


@pytest.mark.parametrize(
    ("ours", "settings", "sentence"),
    [
        ({"num_heads": 6}, {}, "needs num_heads=3, which is .*Received: num_heads=6"),
        ({"d_ff": 13}, {}, "needs d_ff=17"),
        ({}, {"activation": "gelu"}, "needs activation='gelu'.*activation='relu'"),
        ({}, {"layer_norm_epsilon": 1e-12}, "needs layer_norm_epsilon=1e-12"),
        ({}, {"normalize_first": True}, "needs normalize_first=True"),
        ({"key_dim": 5}, {}, "'self_attention/query/kernel' must have the shape"),
    ],
)
def test_other_settings_are_refused(ours, settings, sentence):
    theirs = hub_layer("TransformerDecoder", [INPUTS, MEMORY], **settings)
    layer = DecoderLayer(**{"num_heads": N, "d_ff": F, **ours})
    with pytest.raises(ValueError, match=sentence):
        load_keras_layer(layer, theirs)


def test_other_layers_are_refused():
    memoryless = hub_layer("TransformerDecoder", [INPUTS])
    with pytest.raises(TypeError, match="go into a layer of class EncoderLayer"):
        load_keras_layer(DecoderLayer(N, d_ff=F), memoryless)
    with pytest.raises(TypeError, match="class Embedding, Multi.*Received: a Dense"):
        load_keras_layer(EncoderLayer(N, d_ff=F), keras.layers.Dense(3))


def test_extended_layers_are_refused():
    theirs = hub_layer("TransformerEncoder", [INPUTS])
    message = "`feed_forward` of GatedEncoderLayer must be a FeedForward.*Received: a G"
    with pytest.raises(ValueError, match=message):
        load_keras_layer(GatedEncoderLayer(N, d_ff=F), theirs)


def test_unbuilt_layer_is_refused():
    with pytest.raises(ValueError, match="has no weights yet: call or build it first"):
        load_keras_layer(EncoderLayer(N, d_ff=F), hub.layers.TransformerEncoder(F, N))


@pytest.mark.parametrize(
    ("settings", "ours", "sentence"),
    [
        ({"tie_weights": False}, {"scale": False}, "no place .*'reverse_embeddings'"),
        ({"logit_soft_cap": 30.0}, {"scale": False}, "with logit_soft_cap=30.0 does"),
        ({}, {}, "`layer` needs scale=False. Received: scale=True"),
        ({}, {"scale": False, "zero_pad": True}, "needs zero_pad=False"),
    ],
)
def test_unsupported_embeddings_are_refused(settings, ours, sentence):
    theirs = keras.layers.ReversibleEmbedding(V, D, **settings)
    theirs.build((None, None))
    with pytest.raises(ValueError, match=sentence):
        load_keras_layer(TokenEmbedding(V, D, **ours), theirs)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sliding_window": 3}, "with sliding_window=3 does"),
        ({"attention_axes": (2,)}, "with attention_axes=.2.*does"),
        ({"use_gate": True}, "no place for the weights of 'gate/"),
        ({"use_bias": False}, "needs use_bias=False, which is the MultiHeadAttention"),
    ],
)
def test_unsupported_attentions_are_refused(settings, sentence):
    theirs = keras.layers.MultiHeadAttention(N, 5, **settings)
    images = RANDOM.normal(size=(B, 3, T, D))
    theirs(*[images if "attention_axes" in settings else INPUTS] * 2)
    with pytest.raises(ValueError, match=sentence):
        load_keras_layer(MultiHeadAttention(N, 5), theirs)


def test_quantised_weights_and_lora_are_refused():
    theirs = keras.layers.MultiHeadAttention(N, 5)
    theirs(INPUTS, INPUTS)
    theirs.query_dense.quantize("int8")
    with pytest.raises(ValueError, match="no place for the weights of 'query/kernel_s"):
        load_keras_layer(MultiHeadAttention(N, 5), theirs)

    theirs = hub_layer("TransformerEncoder", [INPUTS])
    layer = EncoderLayer(N, d_ff=F)
    layer(INPUTS)
    layer.self_attention.key_dense.enable_lora(2)
    with pytest.raises(ValueError, match="attention/key/kernel.*LoRA"):
        load_keras_layer(layer, theirs)


def test_class_with_another_call_is_refused():
    class Shifted(keras.layers.MultiHeadAttention):
        def call(self, query, value, key=None, **kwargs):
            return super().call(query, value, key, **kwargs) + 2

    class Doubled(keras.layers.ReversibleEmbedding):
        def call(self, inputs, reverse=False):
            return 2 * super().call(inputs, reverse)

    attention, table = Shifted(N, 5), Doubled(V, D)
    attention(INPUTS, INPUTS)
    table(IDS)
    message = "what a MultiHeadAttention does. Received: a Shifted, .* `call`"
    with pytest.raises(TypeError, match=message):
        load_keras_layer(MultiHeadAttention(N, 5), attention)
    message = "what a ReversibleEmbedding does. Received: a Doubled, .* `call`"
    with pytest.raises(TypeError, match=message):
        load_keras_layer(TokenEmbedding(V, D, scale=False), table)


def test_class_with_other_defaults_is_loaded():
    class Narrow(keras.layers.MultiHeadAttention):
        def __init__(self, **kwargs):
            super().__init__(N, 5, **kwargs)

    theirs, layer = Narrow(), MultiHeadAttention(N, 5)
    theirs(INPUTS, INPUTS)
    load_keras_layer(layer, randomize(theirs))
    assert_close(layer(INPUTS, INPUTS), theirs(INPUTS, INPUTS), TOLERANCE)

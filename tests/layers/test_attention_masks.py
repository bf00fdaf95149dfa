import keras
import numpy as np
import pytest
import tensorflow as tf
from checks import array, assert_close, randomize, with_mask

from keras_vanilla.layers import EncoderLayer, MultiHeadAttention
from keras_vanilla.layers.attention_masks import masked_softmax, training_softmax

B, T, N, H = 2, 4, 4, 2  # as many queries as heads, so that ranks can be confused
D = N * H
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(B, T, D)).astype("float32")
MASKS = {
    "(T, S)": np.tril(np.ones((T, T), bool)),
    "(1, S)": np.arange(T)[None] < 3,
    "(B, T, S)": RANDOM.random((B, T, T)) < 0.6,
    "(B, 1, S)": np.arange(T)[None, None] < np.array([[[3]], [[4]]]),
    "(B, N, T, S)": RANDOM.random((B, N, T, T)) < 0.6,
    "(B, 1, T, S)": RANDOM.random((B, 1, T, T)) < 0.6,
    "(1, N, T, S)": RANDOM.random((1, N, T, T)) < 0.6,
}


def attention_and_kerass():
    theirs, ours = keras.layers.MultiHeadAttention(N, H), MultiHeadAttention(N, H)
    theirs(INPUTS, INPUTS)
    ours(INPUTS, INPUTS)
    ours.set_weights(randomize(theirs).get_weights())
    return ours, theirs


@pytest.mark.parametrize("rank", MASKS)
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_masks_are_read_as_keras_reads_them(rank, dtype):
    ours, theirs = attention_and_kerass()
    mask = MASKS[rank] | np.eye(T, dtype=bool)  # a row without any has our own answer
    settings = {"attention_mask": mask, "return_attention_scores": True}
    expected = theirs(INPUTS, INPUTS, **settings)
    settings["attention_mask"] = mask.astype(dtype)
    for actual, other in zip(ours(INPUTS, INPUTS, **settings), expected, strict=True):
        assert_close(actual, other, 1e-6)


def test_integer_masks_may_be_symbolic():
    inputs, mask = keras.Input((T, D)), keras.Input((T, T), dtype="int32")
    outputs = MultiHeadAttention(N, H)(inputs, inputs, attention_mask=mask)
    assert tuple(outputs.shape) == (None, T, D)


def test_classifier_with_its_own_mask_is_saved(tmp_path):
    inputs, mask = keras.Input((None, D)), keras.Input((None, None), dtype="bool")
    outputs = EncoderLayer(N, d_ff=3)(inputs, attention_mask=mask)
    model = keras.Model([inputs, mask], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    data = [INPUTS, MASKS["(B, T, S)"]]
    np.testing.assert_array_equal(loaded(data), model(data))


def test_encoder_layer_joins_padding_and_attention_mask():
    layer = EncoderLayer(N, d_ff=3, dropout=0.0)
    padding = np.arange(T) < np.array([[3], [2]])
    layer(INPUTS)
    randomize(layer)
    causal = np.tril(np.ones((T, T), bool))
    both = causal & padding[:, None] & padding[:, :, None]
    _, expected = layer(INPUTS, attention_mask=both, return_attention_scores=True)
    carried = with_mask(INPUTS, padding)
    for arguments in (
        {"attention_mask": causal},
        {"use_causal_mask": True},
    ):
        _, weights = layer(carried, **arguments, return_attention_scores=True)
        np.testing.assert_array_equal(weights, expected)


def in_training(scores, mask):
    weights, some = training_softmax(scores, mask)
    return weights * keras.ops.cast(some, weights.dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, -3e3, 3e3])
@pytest.mark.parametrize("softmax", [masked_softmax, in_training])
def test_masked_softmax_is_softmax_of_unmasked_scores(softmax, dtype, offset):
    """To the last bit; also where every score that is left is far below the others."""
    random = np.random.default_rng(1)
    rows = 29 if offset else T  # few rows have operators of their own
    scores = (30 * random.normal(size=(B, N, rows, 29))).astype(dtype)
    mask = random.random((B, 1, rows, 29)) < 0.5
    scores = np.where(mask, scores + np.asarray(offset, dtype), scores)
    mask[0, :, 1] = False
    weights = array(softmax(keras.ops.convert_to_tensor(scores), mask), "float64")
    assert not weights[np.broadcast_to(~mask, weights.shape)].any()
    computed = "float64" if dtype == "float64" else "float32"
    infinite = np.where(mask, scores, -np.inf).astype(computed)
    expected = array(keras.ops.softmax(infinite), "float64")
    expected[0, :, 1] = 0  # NaN: nothing to attend to
    np.testing.assert_array_equal(weights, expected)


def test_training_has_the_same_gradients():
    scores = tf.constant(RANDOM.normal(size=(B, N, T, T)), "float32")
    mask, factors = MASKS["(B, 1, T, S)"].copy(), RANDOM.normal(size=(B, N, T, T))
    mask[0, :, 1] = False

    def gradient(softmax):
        with tf.GradientTape() as tape:
            tape.watch(scores)
            total = tf.reduce_sum(softmax(scores, mask) * factors.astype("float32"))
        return array(tape.gradient(total, scores))

    of_training = gradient(in_training)
    np.testing.assert_array_equal(of_training, gradient(masked_softmax))
    assert of_training.any() and not of_training[0, :, 1].any()


def test_masked_scores_stay_near_the_others(monkeypatch):
    """What 8 bits can tell apart is a share of the range from lowest to highest."""
    given = []

    def softmax(x):
        given.append(array(x))
        return x

    monkeypatch.setattr(keras.ops, "softmax", softmax)
    masked_softmax(keras.ops.ones((1, 1, 2, 3)), np.array([[[[True, False, True]]]]))
    assert 0 < np.ptp(given[0]) <= 100


@pytest.mark.parametrize("mask", [None, np.array([[[[True]], [[False]]]])])
def test_one_position_gets_all_weight_without_a_warning(mask, recwarn):
    scores = keras.ops.convert_to_tensor([[[[-7.0]], [[3.0]]]])
    expected = [1, 1] if mask is None else [1, 0]
    assert array(masked_softmax(scores, mask)).ravel().tolist() == expected
    assert not [each for each in recwarn if "softmax" in str(each.message)]

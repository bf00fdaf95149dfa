import inspect

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from checks import (
    array,
    assert_close,
    check_layer,
    mask_of,
    randomize,
    weights_of,
    with_mask,
)
from tiers import in_full

from keras_vanilla.layers import MultiHeadAttention
from keras_vanilla.layers.dense import HeadProjection

B, T, S, N, H = 2, 7, 5, 3, 11  # batch, queries, keys, heads, size of each head
D, DK, DV, HV = 13, 17, 19, 23  # widths of query, key and value; size of each value

QUERY_MASK = np.arange(T) < np.array([[T], [4]])
VALUE_MASK = np.arange(S) < np.array([[3], [S]])
KEY_MASK = np.arange(S) > np.array([[0], [1]])
ATTENTION_MASK = np.random.default_rng(1).random((B, T, S)) < 0.6
CAUSAL = np.tril(np.ones((T, S), bool))[None]


def random_inputs(seed=0):
    draw = np.random.default_rng(seed).normal
    return {
        name: draw(size=shape).astype("float32")
        for name, shape in (
            ("query", (B, T, D)),
            ("value", (B, S, DV)),
            ("key", (B, S, DK)),
        )
    }


def keras_and_ours(inputs, **arguments):
    """Both layers, with the same random weights."""
    theirs = keras.layers.MultiHeadAttention(N, H, **arguments)
    ours = MultiHeadAttention(N, H, **arguments)
    theirs(**inputs)
    ours(**inputs)
    randomize(theirs)
    ours.set_weights(theirs.get_weights())
    return theirs, ours


MASKS = {
    "none": ({}, np.ones((1, 1, S), bool)),
    "query": ({"query_mask": QUERY_MASK}, QUERY_MASK[:, :, None]),
    "value": ({"value_mask": VALUE_MASK}, VALUE_MASK[:, None]),
    "key": ({"key_mask": KEY_MASK}, KEY_MASK[:, None]),
    "attention": ({"attention_mask": ATTENTION_MASK}, ATTENTION_MASK),
    "causal": ({"use_causal_mask": True}, CAUSAL),
    "all": (
        {
            "query_mask": QUERY_MASK,
            "value_mask": VALUE_MASK,
            "key_mask": KEY_MASK,
            "attention_mask": ATTENTION_MASK,
            "use_causal_mask": True,
        },
        QUERY_MASK[:, :, None]
        & VALUE_MASK[:, None]
        & KEY_MASK[:, None]
        & ATTENTION_MASK
        & CAUSAL,
    ),
}


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("with_key", [False, True])
def test_equals_formula_and_kerass_attention_with_its_weights(masks, with_key):
    """Theirs is given all masks as one: it overwrites an explicit `query_mask`."""
    inputs = random_inputs()
    if not with_key:
        del inputs["key"]
    theirs, ours = keras_and_ours(inputs, value_dim=HV)
    arguments, joined = MASKS[masks]
    joined = np.broadcast_to(joined, (B, T, S))
    actual = ours(**inputs, **arguments, return_attention_scores=True)
    wide = {name: x.astype("float64") for name, x in inputs.items()}
    for expected in (
        theirs(**inputs, attention_mask=joined, return_attention_scores=True),
        reference.attention(weights_of(ours), **wide, mask=joined),
    ):
        for value, target in zip(actual, expected, strict=True):
            assert_close(value, target, 1e-6)


@pytest.mark.parametrize("arguments", [{"value_dim": HV}, {"use_bias": False}], ids=str)
def test_weights_have_kerass_names_and_shapes(arguments):
    inputs = random_inputs()
    layers = keras_and_ours(inputs, **arguments)
    theirs, ours = (
        [(weight.path.partition("/")[2], weight.shape) for weight in layer.weights]
        for layer in layers
    )
    assert ours == theirs
    theirs, ours = (layer(**inputs) for layer in layers)
    assert_close(ours, theirs, 1e-6)


@pytest.mark.parametrize("with_key", [True, *in_full(False)])
def test_is_a_keras_layer(with_key, tmp_path):
    inputs = random_inputs()
    if not with_key:
        del inputs["key"]
    arguments = {"num_heads": N, "key_dim": H, "value_dim": HV, "use_bias": True}
    check_layer(MultiHeadAttention, arguments, inputs, tmp_path)


def test_weight_files_of_keras_are_read(tmp_path):
    inputs = random_inputs()

    def model(layer):
        tensors = {k: keras.Input(x.shape[1:], name=k) for k, x in inputs.items()}
        return keras.Model(tensors, layer(**tensors))

    theirs, ours = keras.layers.MultiHeadAttention(N, H), MultiHeadAttention(N, H)
    source, target = randomize(model(theirs)), model(ours)
    source.save_weights(tmp_path / "attention.weights.h5")
    target.load_weights(tmp_path / "attention.weights.h5")
    assert_close(target(inputs), source(inputs), 1e-6)


def test_kernels_start_as_glorot_of_the_matrix():
    layer = MultiHeadAttention(num_heads=7, key_dim=11)
    layer.build((None, None, 97), (None, None, 89))
    for name, limit in {
        "query": np.sqrt(6 / (97 + 77)),
        "key": np.sqrt(6 / (89 + 77)),
        "attention_output": np.sqrt(6 / (77 + 97)),
    }.items():
        kernel = weights_of(layer)[f"{name}/kernel"]
        assert 0.99 * limit < np.abs(kernel).max() <= limit
        assert abs(kernel.std() * np.sqrt(3) / limit - 1) < 0.03
    assert all(not w.any() for p, w in weights_of(layer).items() if p.endswith("bias"))


@pytest.mark.parametrize(
    ("units", "shape"), [((7, 11), (97, 7, 11)), ((97,), (7, 11, 97))]
)
def test_kernels_whose_axes_keras_does_not_name_start_as_a_matrix(units, shape):
    """As every kernel on Keras 3.14."""
    kernel = HeadProjection(units, use_bias=False).add_weight(
        shape=shape, initializer=keras.initializers.GlorotUniform(3)
    )
    limit = np.sqrt(6 / (97 + 77))
    largest = np.abs(keras.ops.convert_to_numpy(kernel)).max()
    assert 0.99 * limit < largest <= limit


@pytest.mark.parametrize(
    "policy", ["float32", "mixed_bfloat16", "mixed_float16", "float64"]
)
def test_row_that_may_not_attend_has_zero_weights(policy):
    inputs = random_inputs()
    layer = MultiHeadAttention(N, H, dtype=policy)
    layer(**inputs)
    randomize(layer)
    mask = ATTENTION_MASK.copy()
    mask[0, 2] = False  # one query of a sequence
    mask[1] = False  # a whole sequence
    outputs, weights = layer(
        **inputs, attention_mask=mask, return_attention_scores=True
    )
    outputs, weights = array(outputs), array(weights)
    assert np.isfinite(outputs).all()
    assert not weights[0, :, 2].any() and not weights[1].any()
    assert_close(weights[0, :, :2].sum(-1), np.ones((N, 2)), 2**-6)
    bias = array(keras.ops.cast(layer.weights[-1], layer.compute_dtype))
    np.testing.assert_array_equal(outputs[1], np.broadcast_to(bias, (T, D)))
    np.testing.assert_array_equal(array(layer(**inputs, attention_mask=mask)), outputs)


def test_gradients_of_rows_that_may_not_attend_are_zero():
    inputs = random_inputs()
    layer = keras_and_ours(inputs)[1]
    with tf.GradientTape() as tape:
        outputs = layer(**inputs, value_mask=np.zeros((B, S), bool))
        loss = tf.reduce_sum(outputs**2)
    for gradient in tape.gradient(loss, layer.trainable_variables[:-1]):
        assert not np.asarray(gradient).any()


def test_explicit_masks_replace_implicit_ones():
    inputs = random_inputs()
    ours = keras_and_ours(inputs)[1]
    masks = {"query": QUERY_MASK, "value": VALUE_MASK, "key": KEY_MASK}
    explicit = {f"{name}_mask": mask for name, mask in masks.items()}
    expected = ours(**inputs, **explicit)
    carried = {name: with_mask(inputs[name], mask) for name, mask in masks.items()}
    np.testing.assert_array_equal(ours(**carried), expected)
    assert np.abs(ours(**inputs) - expected).max() > 0.01
    lost = {name: with_mask(x, np.zeros(x.shape[:2])) for name, x in inputs.items()}
    np.testing.assert_array_equal(ours(**lost, **explicit), expected)


@pytest.mark.parametrize("return_attention_scores", [False, True])
def test_mask_of_query_is_passed_on(return_attention_scores):
    inputs = random_inputs()
    inputs["query"] = with_mask(inputs["query"], QUERY_MASK)
    inputs["value"] = with_mask(inputs["value"], VALUE_MASK)
    outputs = MultiHeadAttention(N, H)(
        **inputs, return_attention_scores=return_attention_scores
    )
    outputs = outputs[0] if return_attention_scores else outputs
    np.testing.assert_array_equal(mask_of(outputs), QUERY_MASK)


def test_large_scores_stay_finite_in_half_precision():
    """-1e9, and anything else beyond 65,504, is infinite in float16."""
    inputs = {name: 50 * x for name, x in random_inputs().items()}
    layer = MultiHeadAttention(N, H, dtype="mixed_float16")
    settings = {"value_mask": VALUE_MASK, "return_attention_scores": True}
    outputs, weights = map(array, layer(**inputs, **settings))
    assert np.isfinite(outputs).all() and not weights[0, ..., 3:].any()
    assert_close(weights.sum(-1), np.ones((B, N, T)), 2**-9)


def test_call_takes_keras_arguments_in_keras_order():
    theirs, ours = keras.layers.MultiHeadAttention, MultiHeadAttention
    theirs, ours = (inspect.signature(each.call).parameters for each in (theirs, ours))
    assert list(ours) == list(theirs)


def test_seeded_dropout_is_active_only_in_training():
    inputs = random_inputs()

    def outputs(seed, training):
        keras.utils.set_random_seed(0)  # of the kernels
        layer = MultiHeadAttention(N, H, dropout=0.5, seed=seed)
        returned = layer(**inputs, training=training, return_attention_scores=True)
        return map(array, returned)

    kept, weights = outputs(3, False)
    dropped, same = outputs(3, True)
    np.testing.assert_array_equal(same, weights)  # returned before dropout
    np.testing.assert_array_equal(next(outputs(3, None)), kept)
    np.testing.assert_array_equal(next(outputs(3, True)), dropped)
    for other in (kept, next(outputs(4, True))):
        assert np.abs(dropped - other).max() > 1e-3

import keras
import numpy as np
import pytest
import tensorflow as tf
from checks import array, assert_close, check_layer, mask_of

from keras_vanilla.layers import TokenEmbedding

B, T, D, V = 2, 3, 5, 11
IDS = np.array([[7, 2, 0], [4, 0, 10]], "int32")
TABLE = np.random.default_rng(0).normal(size=(V, D)).astype("float32")


def test_is_a_keras_layer(tmp_path):
    arguments = {"vocabulary_size": V, "d_model": D, "pad_id": 1, "scale": True}
    check_layer(TokenEmbedding, arguments, {"inputs": IDS}, tmp_path)


@pytest.mark.parametrize(("scale", "factor"), [(True, np.sqrt(D)), (False, 1)])
def test_vectors_are_scaled_rows_of_table(scale, factor):
    layer = TokenEmbedding(V, D, scale=scale, embeddings=TABLE)
    expected = TABLE.astype("float64")[IDS] * factor
    np.testing.assert_allclose(layer(IDS), expected, rtol=1e-6)


def test_zero_pad_has_a_zero_vector_and_trains_no_row():
    layer = TokenEmbedding(V, D, embeddings=TABLE, zero_pad=True)
    expected = TABLE[IDS] * np.sqrt(D) * (IDS != 0)[..., None]
    assert (IDS == 0).any() and np.abs(TABLE[0]).min() > 0
    np.testing.assert_allclose(layer(IDS), expected, rtol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(IDS))
    gradient = tf.convert_to_tensor(tape.gradient(loss, layer.embeddings.value))
    assert not gradient[0].numpy().any() and gradient[IDS.max()].numpy().all()


def test_table_starts_with_variance_one_over_d_model():
    layer = TokenEmbedding(397, 67)
    layer.build()
    table = array(layer.embeddings)
    assert abs(table.std() * np.sqrt(67) - 1) < 0.02 and abs(table.mean()) < 0.003


@pytest.mark.parametrize("pad_id", [0, 7])
def test_mask_is_true_where_the_id_is_not_the_pad(pad_id):
    layer = TokenEmbedding(V, D, pad_id=pad_id)
    np.testing.assert_array_equal(mask_of(layer(IDS)), IDS != pad_id)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "float64"])
def test_reverse_is_the_transposed_table_in_float32_without_mask(policy):
    layer = TokenEmbedding(V, D, embeddings=TABLE, dtype=policy)
    hidden = layer(IDS)
    logits = layer(hidden, reverse=True)
    assert mask_of(hidden) is not None and mask_of(logits) is None
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    table = keras.ops.cast(layer.embeddings, layer.compute_dtype)
    expected = array(hidden, "float64") @ array(table, "float64").T
    assert_close(logits, expected, {"mixed_bfloat16": 2**-8}.get(policy, 1e-6))


def test_initial_table_is_not_in_the_config_and_not_kept_twice():
    layer = TokenEmbedding(V, D, embeddings=TABLE)
    assert "embeddings" not in layer.get_config()
    layer.build()
    assert layer._initial_value is None
    copy = TokenEmbedding.from_config(layer.get_config())
    copy.build()
    assert np.abs(array(copy.embeddings) - TABLE).max() > 0.1


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "uint16", "int32", "uint32", "int64"]
)
def test_ids_of_every_integer_dtype(dtype):
    layer = TokenEmbedding(V, D, embeddings=TABLE)
    outputs = layer(IDS.astype(dtype))
    np.testing.assert_array_equal(outputs, layer(IDS))
    np.testing.assert_array_equal(mask_of(outputs), mask_of(layer(IDS)))


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_sequential_model_takes_ids(policy):
    """`keras.Sequential` makes float inputs of what its first layer computes in."""
    layer = TokenEmbedding(4099, D, dtype=policy)
    model = keras.Sequential([layer, keras.layers.Dense(3, dtype=policy)])
    ids = np.array([[4098, 2049, 0]])
    outputs = array(model(ids))
    assert outputs.shape == (1, 3, 3)
    np.testing.assert_array_equal(model.predict(ids, verbose=0), outputs)
    expected = array(layer.embeddings)[ids] * np.sqrt(D)
    assert_close(array(layer(ids)), expected, 2**-10)
    assert_close(array(layer(ids.astype("float32"))), expected, 2**-10)


def test_shapes_follow_from_shapes():
    layer = TokenEmbedding(V, D)
    assert layer.compute_output_shape((7, None)) == (7, None, D)
    assert layer.compute_output_shape((7, None, D), reverse=True) == (7, None, V)
    several = keras.layers.TimeDistributed(layer)(np.ones((2, 3, 5), "int32"))
    assert tuple(several.shape) == (2, 3, 5, D)


def test_lora_trains_beside_the_table():
    layer = TokenEmbedding(V, D, embeddings=TABLE)
    before = array(layer(IDS))
    layer.enable_lora(2)
    np.testing.assert_array_equal(array(layer(IDS)), before)
    assert [weight.name for weight in layer.trainable_weights] == [
        "lora_embeddings_a",
        "lora_embeddings_b",
    ]
    layer.lora_embeddings_b.assign(np.ones((2, D)))
    table = TABLE + array(layer.lora_embeddings_a) @ np.ones((2, D))
    assert_close(layer(IDS), table[IDS] * np.sqrt(D), 1e-6)

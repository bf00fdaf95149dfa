import keras
import numpy as np
import pytest
from checks import array, assert_close, check_layer, mask_of

from keras_vanilla.layers import TokenEmbedding

B, T, D, V = 2, 3, 5, 11
IDS = np.array([[7, 2, 0], [4, 0, 10]], "int32")
TABLE = np.random.default_rng(0).normal(size=(V, D)).astype("float32")


def test_it_is_a_keras_layer(tmp_path):
    arguments = {"vocabulary_size": V, "d_model": D, "pad_id": 1, "scale": True}
    check_layer(TokenEmbedding, arguments, {"inputs": IDS}, tmp_path)


def test_vectors_are_the_tables_rows_times_root_d_model():
    layer = TokenEmbedding(V, D, embeddings=TABLE)
    expected = TABLE.astype("float64")[IDS] * np.sqrt(D)
    np.testing.assert_allclose(layer(IDS), expected, rtol=1e-6)


def test_scale_can_be_left_out():
    layer = TokenEmbedding(V, D, scale=False, embeddings=TABLE)
    np.testing.assert_array_equal(layer(IDS), TABLE[IDS])


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


def test_lookup_can_be_replaced_on_an_instance():
    layer = TokenEmbedding(V, D, scale=False, embeddings=TABLE)
    layer(IDS)
    layer.lookup = lambda table, ids: -table.value.numpy()[ids]
    np.testing.assert_array_equal(layer(IDS), -TABLE[IDS])


@pytest.mark.parametrize("name", ["vocabulary_size", "d_model"])
def test_size_below_one_is_refused(name):
    with pytest.raises(
        ValueError, match=f"`{name}` must be an integer of at least 1. Received: 0"
    ):
        TokenEmbedding(**{"vocabulary_size": V, "d_model": D, name: 0})


def test_table_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"\(11, 5\). Received: \(5, 11\)"):
        TokenEmbedding(V, D, embeddings=TABLE.T)


def test_ids_that_are_not_integers_are_refused():
    with pytest.raises(ValueError, match="integer ids. Received: dtype=float32"):
        TokenEmbedding(V, D)(IDS.astype("float32"))

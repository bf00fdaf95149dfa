"""A model that rounds as its `.tflite` file does, against NumPy's integers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from checks import array, randomize
from models import inputs, make_model

from keras_vanilla.layers import MultiHeadAttention, TokenEmbedding
from keras_vanilla.layers.dense import Dense
from keras_vanilla.models import fake_quantize
from keras_vanilla.models.fake_quantization import rounded, rounded_inputs
from keras_vanilla.training import compile_for_training

LARGEST = {"int8": 127, "int4": 7}
B, T, N, H, D, F, V = 2, 5, 4, 11, 44, 53, 37
# Every matrix has more than 1024 numbers, which the converter needs to quantise it.
SIZES = {"source_vocabulary_size": V, "d_model": D, "num_heads": N, "d_ff": F}
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}


def whole_weights(matrix, largest):
    """Integers, and a scale for each column."""
    scale = np.abs(matrix).max(axis=0) / np.float32(largest)
    return np.rint(matrix / scale).astype("int64"), scale


def whole_inputs(rows):
    """Integers of 8 bits minus a zero point, and a scale for each row."""
    low = np.minimum(rows.min(axis=-1, keepdims=True), 0).astype("float64")
    high = np.maximum(rows.max(axis=-1, keepdims=True), 0).astype("float64")
    scale = (high - low) / 255
    zero = np.rint(-128 - low / scale)
    return np.clip(np.rint(rows / scale) + zero, -128, 127).astype(
        "int64"
    ) - zero, scale


def product(rows, matrix, largest):
    """What integer arithmetic makes of a matrix product."""
    x, row_scale = whole_inputs(rows)
    w, scale = whole_weights(matrix, largest)
    return (x @ w) * row_scale * scale


def drawn(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def in_a_model(layer, *shapes):
    """The layer with random weights, and the model that it is in."""
    places = [keras.Input(shape) for shape in shapes]
    inputs = places if len(places) > 1 else places[0]
    model = keras.Model(inputs, layer(*places))
    return randomize(layer), model


@pytest.mark.parametrize("mode", LARGEST)
def test_dense_layer_equals_integer_arithmetic(mode):
    dense, model = in_a_model(Dense(F, "relu"), (T, D))
    x = drawn(B, T, D)
    fake_quantize(model, mode)
    kernel, bias = dense.get_weights()
    expected = np.maximum(product(x, kernel, LARGEST[mode]) + bias, 0)
    np.testing.assert_allclose(array(model(x)), expected, rtol=0, atol=1e-5)
    assert np.abs(array(model(x)) - np.maximum(x @ kernel + bias, 0)).max() > 1e-3


def test_attention_rounds_its_four_projections():
    attention, model = in_a_model(MultiHeadAttention(N, H), (T, D), (T, D))
    x = drawn(B, T, D)
    fake_quantize(model, "int8")
    weights = [array(weight) for weight in attention.weights]
    matrices = [w.reshape(D, D) for w in weights[:6:2]] + [weights[6].reshape(D, D)]
    biases = [bias.reshape(-1) for bias in weights[1::2]]
    query, key, value = (
        (product(x, matrix, 127) + bias).reshape(B, T, N, H).swapaxes(1, 2)
        for matrix, bias in zip(matrices[:3], biases[:3], strict=True)
    )
    scores = np.exp(query @ key.swapaxes(2, 3) / np.sqrt(H))
    heads = scores / scores.sum(axis=-1, keepdims=True) @ value
    joined = heads.swapaxes(1, 2).reshape(B, T, D).astype("float32")
    expected = product(joined, matrices[3], 127) + biases[3]
    np.testing.assert_allclose(array(model([x, x])), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", LARGEST)
def test_table_is_rounded_by_rows_both_ways(mode):
    table = TokenEmbedding(V, D, scale=False)
    ids, hidden = keras.Input((T,), dtype="int32"), keras.Input((T, D))
    model = keras.Model([ids, hidden], [table(ids), table(hidden, reverse=True)])
    randomize(table)
    fake_quantize(model, mode)
    tokens, rows = np.random.default_rng(1).integers(0, V, (B, T)), drawn(B, T, D)
    (matrix,) = table.get_weights()
    whole, scale = whole_weights(matrix.T, LARGEST[mode])
    vectors, logits = map(array, model([tokens, rows]))
    expected = (whole * scale).T[tokens]
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)
    expected = product(rows, matrix.T, LARGEST[mode])
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)


def test_gradients_pass_through_the_roundings():
    dense, model = in_a_model(Dense(F), (D,))
    fake_quantize(model, "int4")
    x, weights = tf.Variable(drawn(T, D)), drawn(T, F)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model(x) * weights)
    of_x, of_kernel = tape.gradient(total, [x, dense.kernel.value])
    integers, scale = whole_weights(dense.get_weights()[0], 7)
    np.testing.assert_allclose(of_x, weights @ (integers * scale).T, atol=1e-4)
    integers, scale = whole_inputs(x.numpy())
    np.testing.assert_allclose(of_kernel, (integers * scale).T @ weights, atol=1e-4)


@pytest.mark.parametrize("mode", LARGEST)
def test_compiled_graph_has_the_same_scales(mode):
    """Constants that TensorFlow divides by become products, which round otherwise."""
    weights = tf.Variable(drawn(D, 31 * F))

    def scales():
        return rounded(weights, 0, LARGEST[mode])[1], rounded_inputs(weights)[1]

    compiled = tf.function(scales, autograph=False)
    for eager, graph in zip(scales(), compiled(), strict=True):
        np.testing.assert_array_equal(graph, eager)
    _, expected = whole_weights(weights.numpy(), LARGEST[mode])
    np.testing.assert_array_equal(scales()[0][0], expected)


def test_rows_of_one_sign_and_of_zeros_are_finite():
    _, model = in_a_model(Dense(F), (D,))
    fake_quantize(model, "int8")
    rows = np.stack([np.abs(drawn(D)), -np.abs(drawn(D)), np.zeros(D, "float32")])
    kernel, bias = model.get_weights()
    expected = product(rows[:2], kernel, 127) + bias
    outputs = array(model(rows))
    np.testing.assert_allclose(outputs[:2], expected, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(outputs[2], bias)


def test_rounding_ends_with_none_and_in_copies_files_and_when_compiled_again(tmp_path):
    model, ids = make_model(**SIZES, **ONE_LAYER), inputs(size=V)
    before = array(model(ids))
    fake_quantize(model, "int4")
    assert np.abs(array(model(ids)) - before).max() > 0.1
    assert model.fake_quantization == "int4"
    model.save(tmp_path / "model.keras")
    for plain in (model.copy(), keras.saving.load_model(tmp_path / "model.keras")):
        assert plain.fake_quantization is None
        np.testing.assert_array_equal(array(plain(ids)), before)
    fake_quantize(model, None)
    np.testing.assert_array_equal(array(model(ids)), before)
    compile_for_training(model, quantize="int8")
    assert model.fake_quantization == "int8"
    compile_for_training(model)
    assert model.fake_quantization is None


def test_small_matrices_are_not_rounded():
    model = make_model(**ONE_LAYER)
    before = array(model(inputs()))
    fake_quantize(model, "int4")
    np.testing.assert_array_equal(array(model(inputs())), before)


@pytest.mark.full
def test_compiled_translator_follows_rounding(trained_translator, unseen_sentences):
    texts = unseen_sentences[160:180]  # half of them longer than it has learnt
    used, fresh = trained_translator.copy(), trained_translator.copy()
    before = used.translate(texts)
    for translator in (used, fresh):
        fake_quantize(translator.model, "int4")
    assert used.translate(texts) == fresh.translate(texts) != before
    plain = used.in_float32()
    assert plain is not used and plain.translate(texts) == before
    fake_quantize(used.model, None)
    assert used.translate(texts) == before


@pytest.mark.full
def test_litert_computes_the_same_numbers():
    """TensorFlow's own converter, and LiteRT with its kernels for phones."""
    dense, model = in_a_model(Dense(F), (T, D))
    x = drawn(1, T, D)
    x[0, 1], x[0, 2] = np.abs(x[0, 1]), 100 * x[0, 2]
    kernel, bias = (tf.constant(weight) for weight in dense.get_weights())
    spec = [tf.TensorSpec([T, D])]
    graph = tf.function(lambda rows: tf.matmul(rows, kernel) + bias, spec)
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [graph.get_concrete_function()]
    )
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    interpreter = Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x[0])
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    fake_quantize(model, "int8")
    expected = interpreter.get_tensor(output["index"])
    # The products are the same integers; the sums with the bias are rounded once.
    np.testing.assert_allclose(array(model(x))[0], expected, rtol=2**-22, atol=2e-6)

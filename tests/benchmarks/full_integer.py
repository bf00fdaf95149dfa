"""What full-integer quantisation leaves of a classifier made of attention layers.

    python tests/benchmarks/full_integer.py

The same classifier twice, of this package's layers and of Keras's attention: trained in
float32, converted by TensorFlow's own converter to 8-bit integers alone, and run by
LiteRT. Between the two, the first one with -1e9 added to masked scores, as attention is
often written: that number enters the range of the scores, and 8 bits have no resolution
left for the others.

The task: a text's first id (1 to 4) says which ids to count; a third of the places are
padding, on average.
"""

import contextlib
import io
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from keras import ops

from keras_vanilla.layers import (
    EncoderLayer,
    PositionalEncoding,
    TokenEmbedding,
    multi_head_attention,
)

LENGTH, IDS, MOST = 16, 40, 5  # tokens, vocabulary, highest count
WIDTH, HEADS, INNER = 32, 4, 64
TRAINED, TESTED, CALIBRATED = 20_000, 2_000, 200
EPOCHS = 6


def main():
    draw = np.random.default_rng(0)
    train, test = texts(draw, TRAINED), texts(draw, TESTED)
    print(f"{TESTED:,} texts tested, {EPOCHS} epochs of {TRAINED:,}")
    print(f"{'correct, percent':<42}{'float32':>9}{'int8':>9}", flush=True)

    ours = trained(our_layer, train)
    report("keras_vanilla.layers.EncoderLayer", ours, train, test)
    multi_head_attention.masked_softmax = softmax_with_large_bias
    report("the same with -1e9 at masked scores", ours, train, test)
    peer = trained(layer_of_keras, train)
    report("keras.layers.MultiHeadAttention", peer, train, test)


def texts(draw, count):
    """Padded ids (count, LENGTH), and how many of each text's ids its first one names.

    The first id is k + 1; it names those that are k modulo 4.
    """
    ids, counts = np.zeros((count, LENGTH), "int32"), np.zeros(count, "int32")
    for row in range(count):
        text = draw.integers(5, IDS, draw.integers(5, LENGTH + 1))
        text[0] = draw.integers(1, 5)
        ids[row, : len(text)] = text
        counts[row] = min(MOST, np.sum(text[1:] % 4 == text[0] - 1))
    return ids, counts


def trained(layer, data):
    """A classifier of two layers, trained on pairs of ids and counts."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((LENGTH,), dtype="int32")
    x = PositionalEncoding()(TokenEmbedding(IDS, WIDTH)(ids))
    x = layer(layer(x))
    model = keras.Model(ids, keras.layers.Dense(MOST + 1)(x[:, 0]))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3), loss)
    model.fit(*data, epochs=EPOCHS, batch_size=128, verbose=0)
    return model


def our_layer(x):
    return EncoderLayer(HEADS, d_ff=INNER, dropout=0.0)(x)


def layer_of_keras(x):
    """An encoder layer of Keras's own parts."""
    attention = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
    x = keras.layers.LayerNormalization(epsilon=1e-5)(x + attention(x, x))
    inner = keras.layers.Dense(INNER, "relu")(x)
    return keras.layers.LayerNormalization(epsilon=1e-5)(
        x + keras.layers.Dense(WIDTH)(inner)
    )


def softmax_with_large_bias(scores, mask):
    """A softmax whose masked scores are about -1e9."""
    if mask is None:
        return ops.softmax(scores)
    bias = ops.cast(ops.logical_not(mask), scores.dtype) * -1e9
    return ops.softmax(scores + bias)


def report(name, model, train, test):
    ids, counts = test
    copy = keras.models.clone_model(model)  # traces its layers anew
    copy.set_weights(model.get_weights())
    in_float = copy.predict(ids, verbose=0).argmax(-1) == counts
    in_integers = predicted(converted(copy, train[0]), ids) == counts
    shares = f"{100 * in_float.mean():9.2f}{100 * in_integers.mean():9.2f}"
    print(f"{name:<42}{shares}", flush=True)


def converted(model, calibration_ids):
    """The model as a `.tflite` file that holds 8-bit integer operators alone."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: (
        [calibration_ids[row : row + 1]] for row in range(CALIBRATED)
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    with contextlib.redirect_stdout(io.StringIO()):  # it prints the signature
        return converter.convert()


def predicted(file, ids):
    """The class that the file chooses for each row of ids."""
    interpreter = Interpreter(model_content=file)
    interpreter.allocate_tensors()
    (inputs,), (outputs,) = (
        interpreter.get_input_details(),
        interpreter.get_output_details(),
    )
    classes = []
    for row in ids:
        interpreter.set_tensor(inputs["index"], row[None].astype(inputs["dtype"]))
        interpreter.invoke()
        classes.append(interpreter.get_tensor(outputs["index"]).argmax())
    return np.array(classes)


if __name__ == "__main__":
    main()

"""What a loss of Keras means on the 0/1 weights of `batches`; the guide's table."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from micro_batch_worker import ONE_LAYER
from models import make_model
from tiers import in_full
from word_reversal import dutch, english_sentences

import keras_vanilla
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import SmoothedCrossentropy

GUIDE = Path(keras_vanilla.__file__).parent / "training" / "README.md"
V = 318
# Of each reduction: what the number shown, and the gradient, are divided by.
DIVISORS = {
    "mean_with_sample_weight": ("tokens", "tokens"),
    "sum_over_batch_size": ("positions", "positions"),
    "mean": ("positions", "positions"),
    "sum": ("one", "one"),
    "none": ("positions", "one"),
}


@pytest.fixture(scope="module")
def batch():
    """Inputs, labels and weights of a batch with padding, as `batches` make it."""
    sources = english_sentences(9, seed=0)
    corpus = ParallelCorpus(sources, map(dutch, sources))
    lines = english_sentences(99, seed=1)
    tokenizer = Tokenizer.train([*lines, *map(dutch, lines)], vocabulary_size=V)
    data = batches(corpus, tokenizer, 320, max_tokens=32, widths=[32])
    inputs, labels, weights = next(iter(data))
    assert set(weights.flat) == {0.0, 1.0}
    return inputs, labels, weights


@pytest.fixture(scope="module")
def summed(model, batch):
    """The sum over all tokens of -log p(label), and its gradient."""
    inputs, labels, weights = batch
    with tf.GradientTape() as tape:
        log_p = tf.nn.log_softmax(model(inputs))
        chosen = tf.reduce_sum(log_p * tf.one_hot(labels, V), axis=-1)
        loss = -tf.reduce_sum(chosen * weights)
    gradients = tape.gradient(loss, model.trainable_weights)
    return float(loss), [tf.convert_to_tensor(each).numpy() for each in gradients]


@pytest.fixture(scope="module")
def model():
    return make_model(source_vocabulary_size=V, **ONE_LAYER)


def trained(model, loss, batch):
    """The number that is shown, and the gradient of each weight."""
    model.compile(keras.optimizers.SGD(1.0), loss, run_eagerly=True, jit_compile=False)
    before = model.get_weights()
    shown = model.train_on_batch(*batch)
    after = model.get_weights()
    model.set_weights(before)
    return float(shown), [old - new for old, new in zip(before, after, strict=True)]


def assert_divided(found, summed, by):
    number, gradients = found
    assert number == pytest.approx(summed[0] / by[0], rel=1e-5)
    for ours, whole in zip(gradients, summed[1], strict=True):
        expected = whole / by[1]
        atol = 1e-5 * max(1, np.abs(expected).max())  # weights are stored with 7 digits
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=atol)


@pytest.mark.parametrize(
    "reduction",
    ["mean_with_sample_weight", "sum_over_batch_size"] + in_full("mean", "sum", "none"),
)
def test_each_reduction_divides_as_the_guide_says(reduction, model, batch, summed):
    weights = batch[2]
    counts = {"tokens": weights.sum(), "positions": weights.size, "one": 1}
    assert counts["tokens"] < 0.8 * counts["positions"]
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction=reduction
    )
    divisors = [counts[name] for name in DIVISORS[reduction]]
    assert_divided(trained(model, loss, batch), summed, divisors)


@pytest.mark.parametrize("weighted", in_full(True, False))
def test_ours_is_per_token_with_and_without_weights(weighted, model, batch, summed):
    inputs, labels, weights = batch
    given = (inputs, labels, weights) if weighted else (inputs, labels)
    loss = SmoothedCrossentropy(label_smoothing=0.0)
    assert_divided(trained(model, loss, given), summed, [weights.sum()] * 2)


def table():
    """The rows of the guide's table: [loss, reduction, number, gradient, per token]."""
    text = GUIDE.read_text().split("| loss | `reduction` |")[1].split("\n\n")[0]
    rows = text.splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_guide_has_a_row_for_each_reduction_of_keras():
    words = {"tokens": "tokens", "positions": "all positions", "one": "nothing"}
    named = {
        name: (number, gradient)
        for _, reduction, number, gradient, _ in table()
        for name in re.findall(r'"(\w+)"', reduction)
    }
    expected = {
        name: tuple(words[each] for each in divisors)
        for name, divisors in DIVISORS.items()
    }
    assert named == expected
    with pytest.raises(ValueError, match="Expected one of") as error:
        keras.losses.MeanSquaredError(reduction="unknown")
    known = re.findall(r"'(\w+)'", str(error.value).split("Received")[0])
    assert set(known) == set(DIVISORS)


def test_only_rows_that_divide_by_tokens_are_called_per_token():
    for _, _, number, gradient, per_token in table():
        assert per_token.startswith("yes") == (number == gradient == "tokens")


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        "SparseCategoricalCrossentropy",
        keras.losses.SparseCategoricalCrossentropy(),
        keras.losses.sparse_categorical_crossentropy,
    ],
    ids=lambda loss: loss if isinstance(loss, str) else type(loss).__name__,
)
def test_a_loss_of_probabilities_is_refused(loss, model, batch):
    model.compile("sgd", loss)
    with pytest.raises(
        ValueError, match=r"returns logits, .* ignore_class=0.*Received"
    ):
        model.fit(*batch[:2])

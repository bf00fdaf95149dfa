import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_vanilla import Transformer
from keras_vanilla.training import (
    Perplexity,
    SmoothedCrossentropy,
    TokenAccuracy,
    TokenCrossentropy,
)

V = 17


def unequal_batches():
    """Batches of other lengths, row counts and token counts, as `fit` takes them."""
    rng = np.random.default_rng(5)
    for rows, source, target in ((5, 3, 7), (2, 11, 3), (3, 2, 5)):
        labels = rng.integers(1, V, (rows, target))
        for row in range(1, rows):
            labels[row, rng.integers(1, target) :] = 0
        mask = labels != 0
        inputs = {
            "source_ids": rng.integers(1, V, (rows, source)).astype("int32"),
            "target_ids": np.roll(labels, 1, axis=1).astype("int32"),
        }
        yield inputs, labels.astype("int32"), (mask / mask.sum()).astype("float32")


def dataset():
    ids = tf.TensorSpec((None, None), tf.int32)
    signature = (
        {"source_ids": ids, "target_ids": ids},
        ids,
        tf.TensorSpec((None, None), tf.float32),
    )
    data = tf.data.Dataset.from_generator(unequal_batches, output_signature=signature)
    return data.apply(tf.data.experimental.assert_cardinality(3))


def true_values(model):
    total = right = count = 0
    for inputs, labels, _ in unequal_batches():
        logits = np.asarray(model(inputs), dtype="float64")
        log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        real = labels != 0
        total -= np.take_along_axis(log_p, labels[..., None], -1)[..., 0][real].sum()
        right += (logits.argmax(-1) == labels)[real].sum()
        count += real.sum()
    return total / count, right / count


@pytest.fixture
def model():
    model = Transformer.from_preset(
        "tiny",
        source_vocabulary_size=V,
        dropout=0.0,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    # A learning rate of 0 keeps the weights, so that the whole epoch can be recomputed.
    model.compile(
        keras.optimizers.SGD(0.0),
        SmoothedCrossentropy(),
        metrics=[TokenCrossentropy(), Perplexity(), TokenAccuracy()],
        jit_compile=False,
    )
    return model


def test_fit_and_evaluate_are_exact_on_unequal_batches(model):
    crossentropy, accuracy = true_values(model)
    history = model.fit(
        dataset(), validation_data=dataset(), shuffle=False, verbose=0
    ).history
    for prefix in ("", "val_"):
        shown = {name: history[prefix + name][0] for name in NAMES}
        assert shown["token_crossentropy"] == pytest.approx(crossentropy, rel=1e-5)
        assert shown["perplexity"] == pytest.approx(np.exp(crossentropy), rel=1e-5)
        assert shown["token_accuracy"] == pytest.approx(accuracy, rel=1e-6)


NAMES = ("token_crossentropy", "perplexity", "token_accuracy")


@pytest.mark.full
def test_mean_over_batches_would_differ(model):
    """The mutant: each batch counts the same, as Keras's weighted metrics would."""
    crossentropy, _ = true_values(model)
    means = []
    for inputs, labels, _ in unequal_batches():
        metric = TokenCrossentropy()
        metric.update_state(labels, model(inputs))
        means.append(float(metric.result()))
    assert abs(np.mean(means) - crossentropy) > 1e-3


def test_another_pad_id_is_left_out():
    metric = TokenAccuracy(pad_id=4)
    logits = np.eye(V, dtype="float32")[[[1, 4, 2]]]
    metric.update_state(np.array([[1, 4, 3]]), logits)
    assert float(metric.result()) == 0.5


def test_each_of_several_highest_logits_is_right():
    metric = TokenAccuracy()
    logits = np.zeros((1, 3, V), "float32")
    logits[..., [2, 5]] = 1
    metric.update_state(np.array([[2, 5, 7]]), logits)
    assert float(metric.result()) == pytest.approx(2 / 3)


def test_metric_without_tokens_is_zero():
    assert float(TokenAccuracy().result()) == 0.0


@pytest.mark.parametrize("better", [-1, 1])
@pytest.mark.parametrize("metric", [TokenCrossentropy, Perplexity, TokenAccuracy])
def test_callback_knows_direction_of_metric(metric, better):
    """Without being told by `mode`; Keras knows it of its own metrics."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(V)])
    model.compile("sgd", "mse", metrics=[metric()])
    model._compile_metrics.build(np.zeros((1, 1)), np.zeros((1, 1, V)))
    name = f"val_{metric().name}"
    callback = keras.callbacks.EarlyStopping(name, patience=0)
    callback.set_model(model)
    callback.on_train_begin()
    for epoch in range(2):
        callback.on_epoch_end(epoch, {name: 1 + epoch * better})
    assert model.stop_training is ((better == 1) != (metric is TokenAccuracy))

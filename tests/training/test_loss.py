import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_vanilla.training import SmoothedCrossentropy
from keras_vanilla.training.loss import smoothed_crossentropy

V = 13


@pytest.fixture
def batch():
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(3, 5, V)).astype("float32") * 4
    labels = rng.integers(1, V, (3, 5))
    labels[0, 2:] = labels[2, 4:] = 0
    mask = labels != 0
    return labels, logits, mask.astype("float32")


def reference(labels, logits, smoothing):
    """Per-token loss and its gradient, from q and log p in float64."""
    logits = logits.astype("float64")
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    q = np.eye(V)[labels] * (1 - smoothing) + smoothing / V
    return -(q * log_p).sum(-1), np.exp(log_p) - q


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradient_is_softmax_minus_smoothed_label(batch, smoothing, compiled):
    labels, logits, weights = batch

    def gradient(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = SmoothedCrossentropy(smoothing)(labels, logits, weights)
        return tape.gradient(loss, logits)

    run = tf.function(gradient) if compiled else gradient
    shares = weights[..., None] / weights.sum()
    expected = reference(labels, logits, smoothing)[1] * shares
    np.testing.assert_allclose(run(tf.constant(logits)), expected, atol=1e-7)


def test_gradient_follows_upstream_gradient(batch):
    labels, logits, _ = batch
    logits = tf.constant(logits)
    scale = tf.constant(np.arange(15, dtype="float32").reshape(3, 5))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = tf.reduce_sum(scale * smoothed_crossentropy(labels, logits, 0.1))
    expected = reference(labels, logits.numpy(), 0.1)[1] * scale.numpy()[..., None]
    np.testing.assert_allclose(tape.gradient(loss, logits), expected, atol=2e-5)


def test_gradient_has_no_scatter(batch):
    """TensorFlow's deterministic scatter copies all logits to the host and back."""
    labels, logits, _ = batch

    @tf.function
    def gradient(logits):
        return tf.gradients(smoothed_crossentropy(labels, logits, 0.1), logits)

    graph = gradient.get_concrete_function(tf.constant(logits)).graph
    kinds = {operation.type for operation in graph.get_operations()}
    assert "SelectV2" in kinds and not any("Scatter" in kind for kind in kinds)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("scale", [None, 1 / 11, 1.0, 100.0])
def test_loss_is_mean_over_real_tokens_for_any_scale(batch, smoothing, scale):
    labels, logits, mask = batch
    weights = None if scale is None else mask * np.float32(scale)
    expected = reference(labels, logits, smoothing)[0][labels != 0].mean()
    loss = SmoothedCrossentropy(smoothing)
    assert float(loss(labels, logits, weights)) == pytest.approx(expected, rel=1e-6)
    assert float(loss(labels, logits, mask * 0)) == 0


def test_label_0_counts_with_another_pad_id(batch):
    labels, logits, _ = batch
    expected = reference(labels, logits, 0.1)[0].mean()
    loss = SmoothedCrossentropy(pad_id=V + 1)
    assert float(loss(labels, logits)) == pytest.approx(expected, rel=1e-6)


def test_config_round_trip():
    config = keras.losses.serialize(SmoothedCrossentropy(0.3, pad_id=5))
    loss = keras.losses.deserialize(config)
    assert (loss.label_smoothing, loss.pad_id) == (0.3, 5)


def test_loss_of_older_version_loads():
    config = {"label_smoothing": 0.3, "micro_batches": 1, "name": "x"}
    assert SmoothedCrossentropy.from_config(config).label_smoothing == 0.3
    config["micro_batches"] = 8
    with pytest.warns(UserWarning, match=r"model.compile\(..., micro_batches=8\)"):
        SmoothedCrossentropy.from_config(config)


@pytest.mark.parametrize("name", ["RDropCrossentropy", "WordLevelCrossentropy"])
def test_removed_loss_loads_as_smoothed_crossentropy(name):
    config = {
        "class_name": name,
        "registered_name": f"keras_vanilla>{name}",
        "module": "keras_vanilla.training.loss",
        "config": {"name": name, "label_smoothing": 0.3, "pad_id": 7, "alpha": 5.0},
    }
    with pytest.warns(UserWarning, match=rf"{name} was removed in 0\.8\.0.* 0\.7\.0"):
        loss = keras.saving.deserialize_keras_object(config)
    assert type(loss) is SmoothedCrossentropy
    assert (loss.label_smoothing, loss.pad_id) == (0.3, 7)


@pytest.mark.parametrize("wrong", [-1, -100, V])
def test_labels_outside_vocabulary_are_refused_if_they_count(batch, wrong):
    labels, logits, weights = batch
    expected = float(SmoothedCrossentropy()(labels, logits, weights))
    labels[1, 3] = wrong
    message = rf"ids from 0 to {V - 1} where they count.* Received: {wrong}$"
    with pytest.raises(ValueError, match=message):
        SmoothedCrossentropy()(labels, logits)
    in_graph = tf.function(SmoothedCrossentropy())
    assert np.isnan(in_graph(labels, logits, weights))
    weights[1, 3] = 0.0
    without = float(SmoothedCrossentropy()(labels, logits, weights))
    assert np.isfinite(without) and without != expected
    assert float(in_graph(labels, logits, weights)) == pytest.approx(without)


def test_weights_per_pair_of_unknown_width_do_not_count_padding(batch):
    labels, logits, _ = batch
    weights = np.array([[0.5], [2.0], [3.0]], "float32")
    unknown = [None, None]

    @tf.function(
        input_signature=[
            tf.TensorSpec(unknown, tf.int64),
            tf.TensorSpec([*unknown, V]),
            tf.TensorSpec(unknown),
        ]
    )
    def loss(labels, logits, weights):
        return SmoothedCrossentropy(0.1)(labels, logits, weights)

    per_label = weights * (labels != 0)
    for given in (weights, per_label.astype("float32")):
        actual = loss(labels, logits, given)
        expected = (reference(labels, logits, 0.1)[0] * per_label).sum()
        np.testing.assert_allclose(actual, expected / per_label.sum(), rtol=1e-5)

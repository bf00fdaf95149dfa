import importlib.util
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from child_process import PROGRAMS, environment
from micro_batch_worker import COUNTS, ONE_LAYER, batch, compiled, difference, step
from models import make_model
from tiers import in_full

from keras_vanilla.distribution.refusals import refuse_unknown_shapes_on_tpu
from keras_vanilla.training import SmoothedCrossentropy


@pytest.fixture(scope="module")
def oracle():
    """Float64 sums of the gradients of single sentences, and the batch's loss."""
    model = make_model(**ONE_LAYER)
    total, loss = [0.0 for _ in model.trainable_weights], 0.0
    feed, labels, weights = batch()
    for row in range(len(labels)):
        one = slice(row, row + 1)
        with tf.GradientTape() as tape:
            logits = model({name: ids[one] for name, ids in feed.items()})
            log_p = tf.nn.log_softmax(tf.cast(logits, "float64"))
            q = 0.9 * tf.one_hot(labels[one], 19, dtype="float64") + 0.1 / 19
            losses = -tf.reduce_sum(q * log_p, axis=-1)
            share = tf.reduce_sum(losses * weights[one]) / weights.sum()
        gradients = tape.gradient(share, model.trainable_weights)
        total = [
            one + tf.convert_to_tensor(other).numpy().astype("float64")
            for one, other in zip(total, gradients, strict=True)
        ]
        loss += float(share)
    return total, loss


@pytest.mark.parametrize(
    "count", [3, *in_full(*(count for count in COUNTS if count != 3))]
)
def test_the_gradient_is_that_of_all_sentences(count, oracle):
    gradients, shown = step(count)
    expected, loss = oracle
    assert difference(gradients, expected) <= 1e-5
    assert shown["loss"] == pytest.approx(loss, rel=1e-6)


@pytest.mark.full
def test_a_mean_of_the_parts_means_would_show(oracle):
    """What accumulating gradients of parts, each normalised by itself, comes to."""
    feed, labels, weights = batch()
    model, loss, count = make_model(**ONE_LAYER), SmoothedCrossentropy(0.1), 3
    parts = []
    for number in range(count):
        rows = slice(number, None, count)
        ids = {name: ids[rows] for name, ids in feed.items()}
        parts.append(gradients_of(model, loss, ids, labels[rows], weights[rows]))
    means = [sum(each) / count for each in zip(*parts, strict=True)]
    assert difference(means, oracle[0]) >= 1e-2


def gradients_of(model, loss, ids, labels, weights):
    """Those of the whole batch, by TensorFlow alone."""
    with tf.GradientTape() as tape:
        value = loss(labels, model(ids), weights)
    gradients = tape.gradient(value, model.trainable_weights)
    return [tf.convert_to_tensor(each).numpy() for each in gradients]


@pytest.mark.full
def test_weights_of_any_scale_give_the_same_gradient(oracle):
    feed, labels, mask = batch()
    model = compiled(3)
    before = model.get_weights()
    for weights in (None, 0.01 * mask, 7.0 * mask):
        model.set_weights(before)
        model.train_on_batch(feed, labels, weights)
        pairs = zip(before, model.get_weights(), strict=True)
        assert difference([old - new for old, new in pairs], oracle[0]) <= 1e-6


@pytest.mark.full
@pytest.mark.parametrize(
    "reduction", ["sum", "sum_over_batch_size", "mean_with_sample_weight"]
)
def test_a_loss_of_keras_gives_its_gradient_in_micro_batches(reduction):
    feed, labels, mask = batch()
    loss = keras.losses.SparseCategoricalCrossentropy(True, reduction=reduction)
    model = make_model(**ONE_LAYER)
    model.compile(keras.optimizers.SGD(1.0), loss, micro_batches=3, jit_compile=False)
    expected = gradients_of(model, loss, feed, labels, mask)
    before = model.get_weights()
    model.train_on_batch(feed, labels, mask)
    pairs = zip(before, model.get_weights(), strict=True)
    assert difference([old - new for old, new in pairs], expected) <= 1e-5


@pytest.fixture(scope="module")
def other_backends(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backends")
    processes = {
        backend: subprocess.Popen(
            [sys.executable, PROGRAMS / "micro_batch_worker.py", f"{backend}.npz"],
            env=environment(backend),
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        for backend in ("jax", "torch")
        if importlib.util.find_spec(backend)
    }
    errors = {backend: one.communicate()[1] for backend, one in processes.items()}
    for backend, process in processes.items():
        assert process.returncode == 0, errors[backend][-3000:]
    return {backend: dict(np.load(folder / f"{backend}.npz")) for backend in processes}


@pytest.mark.full
@pytest.mark.parametrize("backend", ["jax", "torch"])
@pytest.mark.parametrize("count", COUNTS)
def test_so_it_is_on_other_backends(backend, count, other_backends, oracle):
    if backend not in other_backends:
        pytest.skip(f"{backend} is not installed")
    found, (expected, loss) = other_backends[backend], oracle
    assert found["backend"] == backend
    gradients = [found[f"{count}/{number}"] for number in range(len(expected))]
    assert difference(gradients, expected) <= 1e-5
    assert found[f"{count}/loss"] == pytest.approx(loss, rel=1e-6)
    for name in ("token_crossentropy", "token_accuracy"):
        assert found[f"{count}/{name}"] == pytest.approx(found[f"1/{name}"], rel=1e-6)


@pytest.mark.full
def test_every_part_draws_a_dropout_of_its_own():
    def draws(model):
        return [
            variable.numpy()[1]
            for variable in model.non_trainable_variables
            if variable.path.endswith("seed_generator_state")
        ]

    once, model = make_model(**ONE_LAYER, dropout=0.3), compiled(3, dropout=0.3)
    once(batch()[0], training=True)
    model.train_on_batch(*batch())
    assert min(draws(once)) > 0 and draws(model) == [3 * each for each in draws(once)]


def test_fewer_than_one_part_is_refused():
    with pytest.raises(ValueError, match="at least 1. Received: 0"):
        compiled(0)


def test_xla_is_refused():
    model = compiled(2)
    model.jit_compile = True
    with pytest.raises(ValueError, match="XLA cannot compile .*micro_batches=2"):
        model.train_on_batch(*batch())


def test_a_tpu_is_refused(monkeypatch):
    monkeypatch.setattr(
        tf.distribute, "TPUStrategy", type(tf.distribute.get_strategy())
    )
    with pytest.raises(ValueError, match="on TPUs take smaller batches.*=2"):
        compiled(2).train_on_batch(*batch())


def test_accumulation_by_keras_is_refused():
    model = compiled(2)
    model.optimizer.gradient_accumulation_steps = 3
    with pytest.raises(ValueError, match="averages the means of batches, .*steps=3"):
        model.train_on_batch(*batch())


def test_losses_of_layers_are_refused():
    model = compiled(2)
    model.trainable_weights[0].regularizer = keras.regularizers.L2(0.1)
    with pytest.raises(ValueError, match="micro_batches=2 and 1 losses of layers"):
        model.train_on_batch(*batch())


def test_unknown_shapes_are_refused_on_a_tpu(monkeypatch):
    model = compiled(1)
    moving = [tf.TensorSpec((3, None))]
    refuse_unknown_shapes_on_tpu(model, moving)
    monkeypatch.setattr(
        tf.distribute, "TPUStrategy", type(tf.distribute.get_strategy())
    )
    refuse_unknown_shapes_on_tpu(model, [tf.TensorSpec((3, 5))])
    with pytest.raises(ValueError, match=r"batches of one shape.*shape=\(3, None\)"):
        refuse_unknown_shapes_on_tpu(model, moving)

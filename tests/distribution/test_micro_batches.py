"""Steps in micro-batches, against sums over tokens in NumPy's float64."""

import importlib.util
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from child_process import PROGRAMS, environment
from micro_batch_worker import (
    CASES,
    COUNTS,
    ONE_LAYER,
    PER_PAIR,
    PER_TOKEN,
    batch,
    compiled,
    difference,
    loss_of_keras,
    step,
)
from models import make_model
from tiers import in_full

DEFAULT_TIER = "sum_over_batch_size, 0, None"


def coefficients(reduction, ignored, weights):
    """What the loss of each token is multiplied by, (B, T), as Keras documents it."""
    _, labels, mask = batch()
    counted = np.ones(labels.shape) if ignored is None else labels != ignored
    per_token = {None: 1.0, "token": PER_TOKEN, "pair": PER_PAIR[:, None] * mask}
    weighted = counted * per_token[weights]
    if reduction == "sum":
        return weighted
    by_weight = reduction == "mean_with_sample_weight" and weights
    return weighted / (weighted if by_weight else counted).sum()


@pytest.fixture(scope="module")
def oracle():
    """Function from coefficients (B, T) to gradients and loss of the whole batch."""
    model = make_model(**ONE_LAYER)
    feed, labels, _ = batch()

    def of(coefficients, smoothing=0.0):
        with tf.GradientTape() as tape:
            log_p = tf.nn.log_softmax(tf.cast(model(feed), "float64"))
            one_hot = tf.one_hot(labels, 19, dtype="float64")
            q = (1 - smoothing) * one_hot + smoothing / 19
            loss = tf.reduce_sum(-tf.reduce_sum(q * log_p, axis=-1) * coefficients)
        gradients = tape.gradient(loss, model.trainable_weights)
        return [tf.convert_to_tensor(each).numpy() for each in gradients], float(loss)

    return of


def of_ours(oracle):
    mask = batch()[2]
    return oracle(mask / mask.sum(), smoothing=0.1)


def assert_same(gradients, shown, expected):
    assert difference(gradients, expected[0]) <= 1e-5
    assert shown["loss"] == pytest.approx(expected[1], rel=1e-5)


@pytest.mark.parametrize(
    "count", [3, *in_full(*(count for count in COUNTS if count != 3))]
)
def test_gradient_is_that_of_whole_batch(count, oracle):
    assert_same(*step(count), of_ours(oracle))


@pytest.mark.parametrize(
    "case",
    [DEFAULT_TIER, *in_full(*(case for case in CASES if case != DEFAULT_TIER))],
)
def test_loss_of_keras_has_gradient_of_whole_batch(case, oracle):
    reduction, ignored, weights = CASES[case]
    found = step(3, loss_of_keras(reduction, ignored), weights)
    assert_same(*found, oracle(coefficients(*CASES[case])))


@pytest.mark.full
def test_mean_of_means_of_parts_would_show(oracle):
    _, labels, _ = batch()
    parts = [(labels != 0) * (np.arange(7)[:, None] % 3 == part) for part in range(3)]
    means = oracle(sum(part / part.sum() for part in parts) / 3)
    right = oracle(coefficients("mean", 0, None))
    assert difference(means[0], right[0]) >= 1e-2 * 3
    assert means[1] != pytest.approx(right[1], rel=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("times", [None, 0.01, 7.0])
def test_weights_of_any_scale_have_same_gradient(times, oracle):
    feed, labels, mask = batch()
    model = compiled(3)
    before = model.get_weights()
    model.train_on_batch(feed, labels, times and times * mask)
    pairs = zip(before, model.get_weights(), strict=True)
    assert difference([old - new for old, new in pairs], of_ours(oracle)[0]) <= 1e-6


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
@pytest.mark.parametrize("run", [*map(str, COUNTS), *CASES])
def test_other_backends_have_same_gradient(backend, run, other_backends, oracle):
    if backend not in other_backends:
        pytest.skip(f"{backend} is not installed")
    found = other_backends[backend]
    assert found["backend"] == backend
    expected = oracle(coefficients(*CASES[run])) if run in CASES else of_ours(oracle)
    gradients = [found[f"{run}/{number}"] for number in range(len(expected[0]))]
    assert_same(gradients, {"loss": found[f"{run}/loss"]}, expected)
    for name in ("token_crossentropy", "token_accuracy", "of all"):
        assert found[f"{run}/{name}"] == pytest.approx(found[f"1/{name}"], rel=1e-6)


@pytest.mark.full
def test_every_part_draws_its_own_dropout():
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


def mean(labels, logits):
    return keras.ops.mean(
        keras.losses.sparse_categorical_crossentropy(labels, logits, True)
    )


def on_tpu(monkeypatch, model):
    strategy = type(tf.distribute.get_strategy())
    monkeypatch.setattr(tf.distribute, "TPUStrategy", strategy)


REFUSED = {
    "XLA": (
        lambda _, model: setattr(model, "jit_compile", True),
        "XLA .*micro_batches=2",
    ),
    "TPU": (on_tpu, "on TPUs take smaller batches.*=2"),
    "accumulation": (
        lambda _, model: setattr(model.optimizer, "gradient_accumulation_steps", 3),
        "gradient_accumulation_steps=3",
    ),
    "losses of layers": (
        lambda _, model: setattr(
            model.trainable_weights[0], "regularizer", keras.regularizers.L2(0.1)
        ),
        "micro_batches=2 and 1 losses of layers",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_micro_batches_are_refused(name, monkeypatch):
    change, message = REFUSED[name]
    model = compiled(2)
    change(monkeypatch, model)
    with pytest.raises(ValueError, match=message):
        model.train_on_batch(*batch())


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (mean, r"reduction='sum_over_batch_size' of values of shape \(\)"),
        (loss_of_keras("none", None), "reduction='none' of values of shape"),
    ],
    ids=["mean", "none"],
)
def test_loss_that_cannot_be_split_is_refused(loss, message):
    with pytest.raises(ValueError, match=message):
        compiled(2, loss).train_on_batch(*batch())


def test_fewer_than_one_part_is_refused():
    with pytest.raises(ValueError, match="at least 1. Received: 0"):
        compiled(0)


def test_unknown_shapes_are_refused_on_tpu(monkeypatch):
    from keras_vanilla.distribution.refusals import refuse_unknown_shapes_on_tpu

    model = compiled(1)
    moving = [tf.TensorSpec((3, None))]
    refuse_unknown_shapes_on_tpu(model, moving)
    on_tpu(monkeypatch, model)
    refuse_unknown_shapes_on_tpu(model, [tf.TensorSpec((3, 5))])
    with pytest.raises(ValueError, match=r"shape=\(3, None\)"):
        refuse_unknown_shapes_on_tpu(model, moving)

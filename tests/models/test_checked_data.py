"""Weights, labels and ids that `fit` and its like take, or refuse in one sentence."""

import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from child_process import environment
from micro_batch_worker import ONE_LAYER, batch
from models import make_model
from tiers import in_full

from keras_vanilla.models.checked_data import CheckedData
from keras_vanilla.training import (
    Perplexity,
    SmoothedCrossentropy,
    TokenAccuracy,
    TokenCrossentropy,
)

V, MAX_LENGTH = 19, 97
INPUTS, LABELS, MASK = batch()  # 7 pairs of up to 7 labels: B = T
B, T = LABELS.shape
PER_PAIR = np.arange(1, B + 1, dtype="float32")


def compiled(
    loss=None, micro_batches=1, rate=0.0, dropout=0.0, in_graph=False, **settings
):
    """A small model; few steps take less time without a graph, except on JAX."""
    model = make_model(**ONE_LAYER, dropout=dropout)
    loss = SmoothedCrossentropy(0.1) if loss is None else loss
    is_jax = keras.backend.backend() == "jax"
    settings |= {"jit_compile": is_jax, "run_eagerly": not (is_jax or in_graph)}
    optimizer = keras.optimizers.SGD(rate)
    model.compile(optimizer, loss, micro_batches=micro_batches, **settings)
    return model


@pytest.fixture(scope="module")
def model():
    """Its learning rate is 0, so that every test has the same weights."""
    metrics = [TokenCrossentropy(), TokenAccuracy(), Perplexity()]
    weighted = [type(each)(name=f"weighted_{each.name}") for each in metrics]
    return compiled(in_graph=True, metrics=metrics, weighted_metrics=weighted)


@pytest.fixture(scope="module")
def log_p(model):
    logits = keras.ops.convert_to_numpy(model(INPUTS)).astype("float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def weighted_mean(values, weights):
    return (values * weights).sum() / weights.sum()


def assert_same_weights(model, before):
    for weights, old in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weights, old)


def smoothed(log_p):
    q = 0.9 * np.eye(V)[LABELS] + 0.1 / V
    return -(q * log_p).sum(-1)


# The ways in which data come, each as called with (inputs, labels, weights)


def in_two(*arrays):
    """Two batches: rows 0 to 3 and 4 to 6."""
    for rows in (slice(0, 4), slice(4, None)):
        yield keras.tree.map_structure(lambda values, rows=rows: values[rows], arrays)


def dataset(*arrays):
    return tf.data.Dataset.from_tensor_slices(arrays).batch(4)


def unknown_sizes(*arrays):
    """A dataset whose graph knows no size, as that of a generator."""
    signature = keras.tree.map_structure(
        lambda values: tf.TensorSpec([None] * np.ndim(values), values.dtype), arrays
    )
    data = tf.data.Dataset.from_generator(
        lambda: in_two(*arrays), output_signature=signature
    )
    return data.apply(tf.data.experimental.assert_cardinality(2))


class TwoBatches(keras.utils.PyDataset):
    def __init__(self, *arrays, **settings):
        super().__init__(**settings)
        self._batches = list(in_two(*arrays))

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return self._batches[index]


def by_arrays(method):
    def call(model, inputs, labels, weights=None):
        given = {"sample_weight": weights, "batch_size": 4, "verbose": 0}
        if method == "fit":
            given["shuffle"] = False
        return getattr(model, method)(inputs, labels, **given)

    return call


def by_data(method, make):
    def call(model, *arrays):
        arrays = [each for each in arrays if each is not None]
        return getattr(model, method)(make(*arrays), verbose=0)

    return call


def by_validation(model, *arrays):
    arrays = tuple(each for each in arrays if each is not None)
    history = model.fit(INPUTS, LABELS, validation_data=arrays, verbose=0).history
    return [v[0] for name, v in history.items() if name.startswith("val_")]


WAYS = {
    "fit arrays": by_arrays("fit"),
    "evaluate arrays": by_arrays("evaluate"),
    "fit dataset": by_data("fit", dataset),
    "evaluate dataset": by_data("evaluate", dataset),
    "fit unknown sizes": by_data("fit", unknown_sizes),
    "fit generator": by_data("fit", in_two),
    "fit PyDataset": by_data("fit", TwoBatches),
    "validation": by_validation,
    "train_on_batch": lambda model, *arrays: model.train_on_batch(*arrays),
    "test_on_batch": lambda model, *arrays: model.test_on_batch(*arrays),
}
QUICK = ("fit arrays", "fit unknown sizes", "evaluate dataset", "train_on_batch")
ways = pytest.mark.parametrize(
    "way", [*QUICK, *in_full(*(way for way in WAYS if way not in QUICK))]
)


# Weights per pair


@pytest.mark.parametrize("shape", [(B,), (B, 1)])
def test_weight_per_pair_is_that_of_each_of_its_tokens(shape, model, log_p):
    shown = model.test_on_batch(
        INPUTS, LABELS, PER_PAIR.reshape(shape), return_dict=True
    )
    weights = PER_PAIR[:, None] * MASK
    nll = -np.take_along_axis(log_p, LABELS[..., None], -1)[..., 0]
    right = (log_p.argmax(-1) == LABELS).astype("float64")
    expected = {
        "loss": weighted_mean(smoothed(log_p), weights),
        "token_crossentropy": weighted_mean(nll, MASK),
        "token_accuracy": weighted_mean(right, MASK),
        "perplexity": np.exp(weighted_mean(nll, MASK)),
        "weighted_token_crossentropy": weighted_mean(nll, weights),
        "weighted_token_accuracy": weighted_mean(right, weights),
        "weighted_perplexity": np.exp(weighted_mean(nll, weights)),
    }
    for name, value in expected.items():
        assert float(shown[name]) == pytest.approx(value, rel=1e-5), name
    assert abs(expected["loss"] - weighted_mean(smoothed(log_p), MASK)) > 1e-3


@ways
def test_weights_per_pair_and_per_token_are_equal(way, model):
    per_token = PER_PAIR[:, None] * MASK
    received, expected = (
        WAYS[way](model, INPUTS, LABELS, weights) for weights in (PER_PAIR, per_token)
    )
    if isinstance(received, keras.callbacks.History):
        received, expected = (
            [values[0] for values in each.history.values()]
            for each in (received, expected)
        )
    np.testing.assert_allclose(np.ravel(received), np.ravel(expected), rtol=1e-6)


def of_keras():
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )


@pytest.mark.parametrize("micro_batches", [1, *in_full(3)])
def test_loss_of_keras_has_same_weights_per_pair_and_per_token(micro_batches):
    model, trained = compiled(of_keras(), micro_batches, rate=1.0), []
    before = model.get_weights()
    for weights in (PER_PAIR, PER_PAIR[:, None] * MASK, MASK):
        model.set_weights(before)
        shown = model.test_on_batch(INPUTS, LABELS, weights)
        model.train_on_batch(INPUTS, LABELS, weights)
        trained.append([*model.get_weights(), np.array(shown)])
    for one, other in zip(*trained[:2], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    pairs = zip(trained[0], trained[2], strict=True)
    assert max(np.abs(one - other).max() for one, other in pairs) > 1e-3


def test_weight_per_pair_counts_all_labels_but_those_of_pad_id():
    labels = np.where(MASK == 1, LABELS, -1)
    model = compiled(SmoothedCrossentropy(0.1, pad_id=-1))
    loss = model.train_on_batch(INPUTS, labels, PER_PAIR)
    expected = compiled().train_on_batch(INPUTS, LABELS, PER_PAIR)
    assert float(loss) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("method", ["fit", "evaluate"])
def test_dataset_may_have_none_for_weights(method, model):
    def loss(data):
        result = getattr(model, method)(data, verbose=0)
        return result.history["loss"] if method == "fit" else result[0]

    pairs = dataset(INPUTS, LABELS)
    assert loss(pairs.map(lambda x, y: (x, y, None))) == pytest.approx(loss(pairs))


@pytest.mark.parametrize("shape", [(B, T + 1), (B, T, 1)])
@ways
def test_weights_of_another_shape_are_refused(way, shape, model):
    message = r"^`sample_weight` must have the shape of the labels, .*, \(B,\)\. Rec.*$"
    with pytest.raises(ValueError, match=message) as error:
        WAYS[way](model, INPUTS, LABELS, np.ones(shape, "float32"))
    assert "\n" not in str(error.value)


def test_losses_and_metrics_alone_have_same_rule(log_p):
    logits = log_p.astype("float32")
    per_token = PER_PAIR[:, None] * MASK
    expected = weighted_mean(smoothed(log_p), per_token)
    for weights in (PER_PAIR, PER_PAIR[:, None], per_token):
        value = SmoothedCrossentropy(label_smoothing=0.1)(LABELS, logits, weights)
        assert float(value) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match=r"Received: shape \(8,\), and labels of"):
        SmoothedCrossentropy()(LABELS, logits, np.ones(8))
    for make in (TokenAccuracy, TokenCrossentropy, Perplexity):
        with pytest.raises(ValueError, match=r"Received: shape \(8,\), and labels of"):
            make().update_state(LABELS, logits, np.ones(8))


def test_class_weights_are_refused(model):
    for method in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match="`class_weight` .* give `sample_weight`"):
            method(INPUTS, LABELS, class_weight={3: 2.0})


# Ids and labels


def changed(array, value, place=(5, 1)):
    array = array.copy()
    array[place] = value
    return array


def wrong_data():
    source = INPUTS["source_ids"]
    long = changed(np.pad(source, [(0, 0), (0, 100)]), 5, (5, MAX_LENGTH + 1))
    yield "label -100", (INPUTS, changed(LABELS, -100)), "Labels must be .*: -100$"
    yield "label -1", (INPUTS, changed(LABELS, -1)), "Labels must be .*: -1$"
    yield "label V", (INPUTS, changed(LABELS, V)), f"Labels must be ids .* {V - 1} .*19"
    yield (
        "source -1",
        ({**INPUTS, "source_ids": changed(source, -1)}, LABELS),
        "Each source id must be .* vocabulary's size, 19. Received: -1$",
    )
    yield (
        "target V",
        ({**INPUTS, "target_ids": changed(INPUTS["target_ids"], V)}, LABELS),
        "Each target id must be .* vocabulary's size, 19. Received: 19$",
    )
    yield (
        "too long",
        ({**INPUTS, "source_ids": long}, LABELS),
        f"Each row of `source_ids` must have at most {MAX_LENGTH} tokens.*: 5$",
    )
    for number in (-1.0, np.inf, np.nan):
        yield (
            f"weight {number}",
            (INPUTS, LABELS, changed(MASK, number)),
            rf"Each number in `sample_weight` must be finite and .*: {number}$",
        )


WRONG = {name: (data, message) for name, data, message in wrong_data()}


IN_EVERY_WAY = ("label -1", "source -1", "weight inf")  # others are checked the same
EACH_WRONG = [
    *((name, "train_on_batch") for name in WRONG),
    *itertools.product(IN_EVERY_WAY, QUICK[:-1]),
    *in_full(
        *itertools.product(IN_EVERY_WAY, [way for way in WAYS if way not in QUICK])
    ),
]


@pytest.mark.parametrize(("name", "way"), EACH_WRONG)
def test_wrong_data_are_refused_in_one_sentence(name, way, model):
    data, message = WRONG[name]
    before = model.get_weights()
    with pytest.raises(ValueError, match=message) as error:
        WAYS[way](model, *data)
    assert "\n" not in str(error.value)
    assert_same_weights(model, before)


@pytest.fixture
def learning(model):
    """The same model, whose weights now would change."""
    model.optimizer.learning_rate = 1.0
    yield model
    model.optimizer.learning_rate = 0.0


@ways
def test_refused_batch_never_changes_weights(way, learning):
    if way == "validation":
        pytest.skip("its training data are right")
    before = learning.get_weights()
    with pytest.raises(ValueError, match="Labels must be ids"):
        WAYS[way](learning, INPUTS, changed(LABELS, -1, (0, 0)))  # in the first batch
    assert_same_weights(learning, before)


def test_padding_after_longest_row_is_no_token():
    model = compiled()
    wide = {side: np.pad(ids, [(0, 0), (0, 100)]) for side, ids in INPUTS.items()}
    labels = np.pad(LABELS, [(0, 0), (0, 100)])
    expected = model.test_on_batch(INPUTS, LABELS)
    assert model.test_on_batch(wide, labels) == pytest.approx(expected, rel=1e-5)


def test_model_checks_ids_without_labels(model):
    (data, _), _ = WRONG["too long"]
    for call in (model, model.predict, lambda data: model.encode(data["source_ids"])):
        with pytest.raises(
            ValueError, match="`source_ids` must have at most 97 tokens"
        ):
            call(data)
    assert model.predict(INPUTS, verbose=0).shape == (B, T, V)


def test_labels_that_do_not_count_may_be_anything(model):
    labels = np.where(MASK == 1, LABELS, -100)
    expected = model.train_on_batch(INPUTS, LABELS, MASK, return_dict=True)
    logs = model.train_on_batch(INPUTS, labels, MASK, return_dict=True)
    for name in ("loss", *(each for each in logs if each.startswith("weighted"))):
        np.testing.assert_allclose(logs[name], expected[name], err_msg=name)
    accuracy = TokenAccuracy(pad_id=-100)
    accuracy.update_state(labels, model(INPUTS))
    right = float(expected["token_accuracy"])
    assert float(accuracy.result()) == pytest.approx(right)
    ignoring = keras.losses.SparseCategoricalCrossentropy(True, ignore_class=-100)
    ignoring = compiled(ignoring)
    assert np.isfinite(ignoring.train_on_batch(INPUTS, labels))
    with pytest.raises(ValueError, match="give others `ignore_class`. Received: -1$"):
        ignoring.train_on_batch(INPUTS, changed(LABELS, -1))
    summed = compiled(
        lambda labels, logits: keras.ops.sum(labels) + 0 * logits[0, 0, 0]
    )
    assert summed.test_on_batch(INPUTS, -LABELS) == -LABELS.sum()
    minus_one = compiled(SmoothedCrossentropy(pad_id=-1))
    assert np.isfinite(minus_one.test_on_batch(INPUTS, changed(LABELS, -1)))


def test_data_are_unchanged():
    """The same batches, in the same form, by every kind of data that is checked."""
    check = CheckedData(compiled())
    for make in (dataset, unknown_sizes, in_two, TwoBatches):
        data = check.of_arguments({"x": make(INPUTS, LABELS, MASK)})["x"]
        if isinstance(data, tf.data.Dataset):
            assert data.cardinality() == 2
        batches = (data[i] for i in range(2)) if make is TwoBatches else iter(data)
        for received, expected in itertools.zip_longest(
            batches, in_two(INPUTS, LABELS, MASK)
        ):
            pairs = zip(
                keras.tree.flatten(received), keras.tree.flatten(expected), strict=True
            )
            for one, other in pairs:
                np.testing.assert_array_equal(one, other)


@pytest.mark.full
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_loader_of_pytorch_are_checked(workers):
    torch = pytest.importorskip("torch")
    rows = [
        ({name: ids[i] for name, ids in INPUTS.items()}, changed(LABELS, -100)[i])
        for i in range(B)
    ]
    loader = torch.utils.data.DataLoader(rows, batch_size=4, num_workers=workers)
    model, collate = compiled(), loader.collate_fn
    with pytest.raises(ValueError, match="^Labels must be ids .*Received: -100$"):
        model.fit(loader, verbose=0)
    assert loader.collate_fn is collate


# As for pytest's `-k`. Most data are refused on the host, the same by every backend:
# they come in one way, and one kind of wrong data in another.
ON_OTHER_BACKENDS = (
    "train_on_batch or (unknown and (label or never_changes)) or weight_per_pair or "
    "loss_of_keras or loader or losses_and_metrics or do_not_count or without_labels "
    "or (different_sizes and not graph) or (known_of_arrays and EncoderLayer)"
)
FILES = [
    __file__,
    *(
        Path(__file__).parents[1] / "layers" / name
        for name in ("test_refused_inputs.py", "test_output_spec.py")
    ),
]


@pytest.mark.full
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_are_equal(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    options = ["-q", "-p", "no:cacheprovider", "-k", ON_OTHER_BACKENDS]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, FILES)],
        env=environment(backend),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:]

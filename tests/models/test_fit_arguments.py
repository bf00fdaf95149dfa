"""What `Transformer.fit` and `evaluate` are given: taken as it is, or refused."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from micro_batch_worker import ONE_LAYER
from models import make_model
from word_reversal import dutch, english_sentences

from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import (
    ExactResume,
    SmoothedCrossentropy,
    transformer_optimizer,
)

V = 318


@pytest.fixture(scope="module")
def data():
    """Endless batches, two for an epoch."""
    sources = english_sentences(60, seed=0)
    targets = [dutch(source) for source in sources]
    tokenizer = Tokenizer.train([*sources, *targets], vocabulary_size=V)
    corpus = ParallelCorpus(sources[:5], targets[:5])
    return batches(corpus, tokenizer, 96, max_tokens=32, widths=[32])


@pytest.fixture(scope="module")
def one_model():
    return make_model(source_vocabulary_size=V, **ONE_LAYER)


@pytest.fixture
def compiled(one_model):
    """Compiles the model of this file with an optimizer."""

    def compile_with(optimizer="sgd"):
        one_model.compile(optimizer, SmoothedCrossentropy(), run_eagerly=True)
        return one_model

    return compile_with


def user_dataset():
    """Rows of a `tf.data` pipeline of the user's own, repeated without end."""
    ids = np.array([[5, 3, 0]])
    inputs = {"source_ids": ids, "target_ids": ids}
    return tf.data.Dataset.from_tensors((inputs, ids)).repeat()


@pytest.mark.full
def test_endless_batches_end_an_epoch_and_a_validation(data, compiled):
    model = compiled()
    assert data.endless and data.steps_per_epoch == 2
    model.fit(data, epochs=2, validation_data=data, verbose=0)
    assert int(model.optimizer.iterations) == 4
    for steps in (None, 1):
        assert np.isfinite(model.evaluate(data, steps=steps, verbose=0))


@pytest.mark.parametrize("of_user", [False, True])
def test_endless_dataset_without_steps_is_refused(of_user, data, compiled):
    model, dataset = compiled(), user_dataset() if of_user else data.dataset()
    for call, message in (
        (lambda: model.fit(dataset), "`x` is infinite: set `steps_per_epoch`"),
        (
            lambda: model.fit(data, validation_data=dataset),
            "`validation_data` is infinite: set `validation_steps`",
        ),
        (lambda: model.evaluate(dataset), "`x` is infinite: set `steps` to"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert int(model.optimizer.iterations) == 0


@pytest.mark.full
def test_endless_dataset_with_steps_trains(compiled):
    model = compiled()
    model.fit(user_dataset(), steps_per_epoch=3, verbose=0)
    assert int(model.optimizer.iterations) == 3
    model.evaluate(user_dataset(), steps=1, verbose=0)


def scheduler():
    return keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)


@pytest.mark.parametrize(
    "make", [keras.callbacks.ReduceLROnPlateau, scheduler], ids=["plateau", "scheduler"]
)
@pytest.mark.parametrize("inside", [False, True], ids=["of fit", "of ExactResume"])
def test_callback_cannot_set_rate_of_schedule(make, inside, data, tmp_path, compiled):
    callback = make()
    model = compiled(transformer_optimizer(10))
    message = f"{type(callback).__name__} sets the learning rate, which .*a schedule"
    with pytest.raises(ValueError, match=message):
        if inside:
            ExactResume(tmp_path / "run", [callback]).fit(model, data)
        else:
            model.fit(data, callbacks=[callback])
    assert int(model.optimizer.iterations) == 0 and not (tmp_path / "run").exists()


@pytest.mark.full
def test_callback_sets_constant_rate(data, compiled):
    model = compiled(keras.optimizers.SGD(0.5))
    model.fit(data, verbose=0, callbacks=[scheduler()])
    assert float(model.optimizer.learning_rate) == 0.25
    plateau = keras.callbacks.ReduceLROnPlateau("loss", 0.1, patience=1, min_delta=9)
    model.fit(data, epochs=2, verbose=0, callbacks=[plateau])
    assert float(model.optimizer.learning_rate) == np.float32(0.025)


@pytest.mark.parametrize("method", ["fit", "train_on_batch"])
def test_a_step_is_traced_once(method, monkeypatch):
    """With optimizers that create variables, also while a step is traced."""
    model = make_model(source_vocabulary_size=V, **ONE_LAYER)
    model.compile("adam", SmoothedCrossentropy(), jit_compile=False)
    traces, step = [], model.train_step
    monkeypatch.setattr(
        model, "train_step", lambda *data: traces.append(1) or step(*data)
    )
    ids = np.array([[5, 3, 0]])
    getattr(model, method)({"source_ids": ids, "target_ids": ids}, ids)
    assert len(traces) == 1 and int(model.optimizer.iterations) == 1


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        keras.losses.SparseCategoricalCrossentropy(),
        keras.losses.sparse_categorical_crossentropy,
    ],
)
def test_loss_of_probabilities_is_refused(loss, data, compiled):
    model = compiled()
    model.compile("sgd", loss)
    with pytest.raises(ValueError, match="returns logits, .* ignore_class=0.*Rec"):
        model.fit(data)

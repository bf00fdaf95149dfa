import keras
import pytest

from keras_vanilla import Transformer
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.training import compile_for_training, train_translator


@pytest.fixture(scope="module")
def model():
    return Transformer.from_preset("tiny", source_vocabulary_size=7)


def test_the_default_optimizer_is_plain_adam(model):
    compile_for_training(model)
    optimizer = model.optimizer
    assert type(optimizer) is keras.optimizers.Adam
    assert (optimizer.weight_decay, optimizer.global_clipnorm) == (None, None)


def test_clipping_and_weight_decay_reach_the_optimizer(model):
    compile_for_training(model, clip_norm=0.5, weight_decay=0.01)
    optimizer = model.optimizer
    assert (optimizer.weight_decay, optimizer.global_clipnorm) == (0.01, 0.5)


def test_a_learning_rate_is_constant_and_may_be_changed(model):
    compile_for_training(model, learning_rate=0.25)
    model.optimizer.learning_rate = float(model.optimizer.learning_rate) / 2
    assert float(model.optimizer.learning_rate) == 0.125


def test_warmup_steps_of_a_constant_rate_are_refused(model):
    with pytest.raises(ValueError, match="learning_rate=0.1, warmup_steps=9"):
        compile_for_training(model, warmup_steps=9, learning_rate=0.1)


@pytest.mark.parametrize(
    "settings", [{"clip_norm": 0.5}, {"weight_decay": 0.01}, {"learning_rate": 0.1}]
)
def test_numbers_of_adam_beside_another_optimizer_are_refused(
    model, settings, tmp_path
):
    ((name, value),) = settings.items()
    optimizer, corpus = keras.optimizers.SGD(), ParallelCorpus(["a"], ["b"])
    with pytest.raises(ValueError, match=f"its own learning .*: .*{name}={value}"):
        compile_for_training(model, optimizer=optimizer, **settings)
    with pytest.raises(ValueError, match=f"its own learning .*: .*{name}={value}"):
        train_translator(corpus, tmp_path / "out", optimizer=optimizer, **settings)
    assert not (tmp_path / "out").exists()


class Stop(Exception):
    """Ends a training once its model is compiled."""


@pytest.mark.full
def test_a_training_compiles_with_the_numbers_of_its_settings(
    trained_translator, tmp_path, monkeypatch
):
    compiled = []

    def compile_and_stop(model, **numbers):
        compile_for_training(model, **numbers)
        compiled.append((model.optimizer, model.loss))
        raise Stop

    monkeypatch.setattr(
        "keras_vanilla.training.run.compile_for_training", compile_and_stop
    )
    corpus, settings = ParallelCorpus(["one"], ["een"]), {"max_tokens": 9}
    numbers = {"clip_norm": 0.5, "weight_decay": 0.01, "label_smoothing": 0.2}
    for given in ({}, numbers):
        settings["translator"] = trained_translator.copy()
        with pytest.raises(Stop):
            train_translator(corpus, tmp_path / "out", **settings, **given)
    (plain, loss), (optimizer, smoother) = compiled
    assert (plain.global_clipnorm, plain.weight_decay) == (None, None)
    assert (optimizer.global_clipnorm, optimizer.weight_decay) == (0.5, 0.01)
    assert (loss.label_smoothing, smoother.label_smoothing) == (0.1, 0.2)

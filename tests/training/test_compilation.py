import pytest

from keras_vanilla import Transformer
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.training import (
    TrainingConfig,
    compile_for_training,
    train_translator,
)
from keras_vanilla.training.compilation import compile_with


@pytest.fixture(scope="module")
def model():
    return Transformer.from_preset("tiny", source_vocabulary_size=7)


def test_learning_rate_is_constant_and_may_be_changed(model):
    compile_for_training(model, learning_rate=0.25)
    model.optimizer.learning_rate = float(model.optimizer.learning_rate) / 2
    assert float(model.optimizer.learning_rate) == 0.125


def test_config_and_settings_compile_alike(model):
    numbers = {"clip_norm": 0.5, "weight_decay": 0.01, "label_smoothing": 0.2}
    compiled = []
    for arguments, settings in (
        ([], numbers),
        ([TrainingConfig(**numbers, epochs=3, preset="big")], {}),
        ([TrainingConfig(clip_norm=9)], numbers),
    ):
        compile_for_training(model, *arguments, **settings, micro_batches=2)
        optimizer, loss = model.optimizer.get_config(), model.loss.get_config()
        compiled.append((optimizer | {"name": ""}, loss, model.micro_batches))
    assert compiled[0] == compiled[1] == compiled[2]
    assert compiled[0][0]["global_clipnorm"] == 0.5 and compiled[0][2] == 2
    assert compiled[0][1]["label_smoothing"] == 0.2


class Stop(Exception):
    """Ends a training once its model is compiled."""


@pytest.mark.full
def test_training_compiles_with_the_numbers_of_its_settings(
    trained_translator, tmp_path, monkeypatch
):
    compiled = []

    def compile_and_stop(model, optimizer, config):
        compile_with(model, optimizer, config)
        compiled.append((model.optimizer, model.loss))
        raise Stop

    monkeypatch.setattr("keras_vanilla.training.run.compile_with", compile_and_stop)
    corpus, settings = ParallelCorpus(["one"], ["een"]), {"max_tokens": 9}
    numbers = {"clip_norm": 0.5, "weight_decay": 0.01, "label_smoothing": 0.2}
    for given in ({}, {"config": TrainingConfig(**numbers)}):
        settings["translator"] = trained_translator.copy()
        with pytest.raises(Stop):
            train_translator(corpus, tmp_path / "out", **settings, **given)
    (plain, loss), (optimizer, smoother) = compiled
    assert (plain.global_clipnorm, plain.weight_decay) == (None, None)
    assert (optimizer.global_clipnorm, optimizer.weight_decay) == (0.5, 0.01)
    assert (loss.label_smoothing, smoother.label_smoothing) == (0.1, 0.2)

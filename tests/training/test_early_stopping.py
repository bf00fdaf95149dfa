import csv
import importlib.util
import types

import keras
import pytest
from stopping import AfterBatches, Crash
from word_reversal import dutch, english_sentences

from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import new_translator, train_translator
from keras_vanilla.training.callbacks import early_stopping, logs_in
from keras_vanilla.training.config import TrainingConfig

RISING_LOSS = -0.03  # a learning rate


@pytest.mark.parametrize("installed", [True, False])
def test_tensorboard_has_a_log_where_it_is_installed(installed, tmp_path, monkeypatch):
    found = {"tensorboard": installed}
    monkeypatch.setattr(importlib.util, "find_spec", found.__getitem__)
    kinds = [type(each) for each in logs_in(tmp_path)]
    assert keras.callbacks.CSVLogger in kinds
    assert (keras.callbacks.TensorBoard in kinds) == installed


@pytest.mark.parametrize(
    ("has_validation", "settings", "watched"),
    [
        (True, {}, None),
        (False, {"patience": 3}, ("token_crossentropy", "min")),
        (True, {"patience": 3}, ("val_token_crossentropy", "min")),
        (True, {"patience": 3, "quantize": "int8"}, ("val_chrf", "max")),
        (False, {"patience": 3, "quantize": "int8"}, ("token_crossentropy", "min")),
    ],
)
def test_patience_watches_the_best_metric_there_is(has_validation, settings, watched):
    callbacks = early_stopping(TrainingConfig(**settings), has_validation)
    assert [(each.monitor, each.mode) for each in callbacks] == [watched] * bool(
        watched
    )
    for each in callbacks:
        assert each.patience == 3 and each.restore_best_weights is False


def test_training_does_not_end_before_its_cooldown():
    config = TrainingConfig(epochs=9, cooldown_epochs=4, patience=2)
    (callback,) = early_stopping(config, has_validation=False)
    callback.set_model(types.SimpleNamespace(stop_training=False))
    callback.on_train_begin()
    ended = []
    for epoch in range(9):  # which get worse
        callback.on_epoch_end(epoch, {"token_crossentropy": epoch})
        ended.append(callback.model.stop_training)
    assert ended.index(True) == 7


def epochs_of(folder):
    with open(folder / "history.csv", newline="") as file:
        return len(list(csv.DictReader(file)))


@pytest.mark.full
def test_resumed_training_that_gets_worse_ends_early(tmp_path):
    """A resumed one that forgot its epochs would end later."""
    sources = english_sentences(20, 3)
    pairs = ParallelCorpus(sources, map(dutch, sources))
    tokenizer = Tokenizer.train([*pairs.sources, *pairs.targets], vocabulary_size=300)

    def train(stop=0):
        layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
        train_translator(
            pairs,
            tmp_path / "run",
            translator=new_translator(
                pairs, tokenizer=tokenizer, preset="tiny", max_length=30, **layers
            ),
            tokens_per_batch=256,
            max_tokens=30,
            epochs=9,
            patience=2,
            optimizer=keras.optimizers.SGD(RISING_LOSS),
            callbacks=[AfterBatches(stop)],
        )

    steps = len(batches(pairs, tokenizer, tokens_per_batch=256, max_tokens=30))
    with pytest.raises(Crash):
        train(stop=2 * steps + 1)
    assert epochs_of(tmp_path / "run") == 2
    train()
    assert epochs_of(tmp_path / "run") == 3

import csv
import json

import keras
import numpy as np
import pytest
from stopping import Crash, crash
from word_reversal import corpus

from keras_vanilla import Translator
from keras_vanilla.data import batches
from keras_vanilla.training import (
    Diverged,
    Interrupted,
    TrainingConfig,
    new_translator,
    train_translator,
)

SMALL = {"tokens_per_batch": 512, "max_tokens": 30, "warmup_steps": 50}
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1, "max_length": 30}


def train(corpus, output, validation=None, **settings):
    """`train_translator` on a model with one layer on each side."""
    seed = settings.get("seed", 0)
    start = new_translator(
        corpus, preset="tiny", vocabulary_size=320, seed=seed, **ONE_LAYER
    )
    settings = {"translator": start, **SMALL, **settings}
    return train_translator(corpus, output, validation, **settings)


def before_any_step(action=crash):
    return keras.callbacks.LambdaCallback(on_epoch_begin=lambda *_: action())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit") / "new" / "folder"
    pairs = corpus(150, 0)
    translator = train(pairs, folder, corpus(12, 1), epochs=3, average_last=2)
    return folder, translator


def history(folder):
    with open(folder / "history.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_training_writes_its_files(trained):
    folder, translator = trained
    for name in ("translator.keras", "best.keras", "last.keras"):
        assert Translator.load(folder / name).tokenizer.vocabulary_size
    assert list((folder / "logs" / "train").glob("events.*"))
    saved = Translator.load(folder / "translator.keras").model.get_weights()
    for ours, theirs in zip(translator.model.get_weights(), saved, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    rows = history(folder)
    names = ("token_crossentropy", "val_token_crossentropy", "val_bleu")
    losses, scores, bleu = ([float(row[name]) for row in rows] for name in names)
    assert losses[0] > losses[1] > losses[2] and np.isfinite(bleu).all()
    results = json.loads((folder / "results.json").read_text())
    assert results["best_epoch"] == int(np.argmin(scores)) + 1
    assert results["best_val_bleu"] == bleu[results["best_epoch"] - 1]
    chosen = "average" if results["average_val_bleu"] >= results["best_val_bleu"] else 0
    assert results["chosen"] == (chosen or "best")


@pytest.mark.full
def test_ctrl_c_saves_translator(tmp_path, monkeypatch):
    so_far = []

    def press(self, batch, logs=None):
        if batch == 1:
            so_far.extend(self.model.get_weights())
            raise KeyboardInterrupt

    monkeypatch.setattr(keras.callbacks.CSVLogger, "on_train_batch_end", press)
    with pytest.raises(Interrupted, match="translator so far is in .*last.keras"):
        train(corpus(80, 3), tmp_path / "out", epochs=2)
    saved = Translator.load(tmp_path / "out" / "last.keras").model.get_weights()
    for one, other in zip(saved, so_far, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.full
def test_diverged_training_names_step_lines_and_snapshot(tmp_path):
    pairs = corpus(60, 3)
    with pytest.raises(Diverged, match="after step 2, whose batch is lines") as error:
        train(pairs, tmp_path / "out", epochs=1, optimizer=keras.optimizers.SGD(1e20))
    folder = tmp_path / "out" / "snapshots"
    assert error.value.snapshot == folder / "step-000000000000.npz"
    tokenizer = Translator.load(tmp_path / "out" / "last.keras").tokenizer
    data = batches(pairs, tokenizer, tokens_per_batch=512, max_tokens=30, first_step=1)
    _, labels, _ = next(iter(data))
    texts = tokenizer.decode([[id_ for id_ in row if id_] for row in labels.tolist()])
    lines = error.value.line_numbers
    assert sorted(texts) == sorted(pairs.targets[line - 1] for line in lines)
    assert not (tmp_path / "out" / "translator.keras").exists()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"preset": "tiny"}, False),
        ({"preset": "tiny", "normalize_first": True}, True),
        ({"preset": "phone-tiny"}, True),
        ({"preset": "phone-tiny", "normalize_first": False}, False),
    ],
    ids=str,
)
def test_preset_decides_pre_norm_unless_given(settings, expected):
    pairs = corpus(40, 3)
    translator = new_translator(pairs, vocabulary_size=320, **settings)
    assert translator.model.normalize_first is expected
    config = TrainingConfig(**settings).resolve(len(pairs))
    assert config.normalize_first is settings.get("normalize_first")


def constant():
    return {"learning_rate": 1e-3, "warmup_steps": None}


class Rates(keras.callbacks.Callback):
    """The learning rate of each step."""

    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


@pytest.mark.full
def test_rate_falls_in_last_epochs(tmp_path):
    seen = Rates()
    given = {"epochs": 3, "cooldown_epochs": 2, "callbacks": [seen], **constant()}
    train(corpus(60, 3), tmp_path / "out", **given)
    steps = len(seen.rates)
    falling = steps * 2 // 3
    expected = np.interp(range(steps), [steps - falling, steps], [1e-3, 0.0])
    assert seen.rates == pytest.approx(expected, rel=1e-5)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["chosen"] == "average"  # without validation
    assert results.keys() == {"chosen", "best_epoch", "config"}
    assert results["config"]["tokens_per_batch"] == 512


@pytest.mark.full
def test_frozen_parts_stay_and_are_trainable_afterwards(tmp_path):
    pairs, output = corpus(60, 3), tmp_path / "out"
    start = new_translator(pairs, preset="tiny", vocabulary_size=320, **ONE_LAYER)
    before = start.copy()
    given = {**constant(), "epochs": 1, "freeze": ["encoder", "embeddings"]}
    callbacks = [before_any_step()]
    with pytest.raises(Crash):
        train(pairs, output, translator=start, callbacks=callbacks, **given)
    assert all(weight.trainable for weight in start.model.weights)
    with pytest.raises(FileExistsError, match=r"freeze was \['embeddings', 'enc"):
        other = {**given, "freeze": ["encoder"]}
        train(pairs, output, translator=before.copy(), **other)  # before it trains
    given["callbacks"] = [before_any_step(lambda: None)]
    trained = train(pairs, output, translator=before.copy(), **given)
    names = {"last.keras", "best.keras", "translator.keras"}
    for translator in (trained, *(Translator.load(output / name) for name in names)):
        assert all(weight.trainable for weight in translator.model.weights)
        both = zip(before.model.weights, translator.model.weights, strict=True)
        changed = [new.path for old, new in both if not np.array_equal(old, new)]
        assert changed and all(path.startswith("decoder") for path in changed)


@pytest.mark.full
def test_other_optimizer_is_refused(tmp_path):
    pairs, settings = corpus(40, 3), {"epochs": 1, "callbacks": [before_any_step()]}
    with pytest.raises(Crash):
        train(pairs, tmp_path, optimizer=keras.optimizers.SGD(0.1), **settings)
    with pytest.raises(FileExistsError, match="settings: optimizer "):
        train(pairs, tmp_path, optimizer=keras.optimizers.SGD(0.2), **settings)

import csv
import json
import shutil
import types

import keras
import numpy as np
import pytest
from stopping import AfterBatches, Crash, crash
from word_reversal import dutch, english_sentences

from keras_vanilla import Translator
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.training import (
    Diverged,
    Interrupted,
    TrainingConfig,
    compile_for_training,
    new_translator,
    train_translator,
)


def corpus(count, seed):
    sources = english_sentences(count, seed)
    return ParallelCorpus(sources, map(dutch, sources))


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


def test_history_has_metrics_and_bleu_of_each_epoch(trained):
    rows = history(trained[0])
    assert len(rows) == 3
    for name in ("token_crossentropy", "val_token_crossentropy", "val_bleu"):
        assert all(np.isfinite(float(row[name])) for row in rows)
    losses = [float(row["token_crossentropy"]) for row in rows]
    assert losses[0] > losses[1] > losses[2]


def test_best_epoch_has_the_lowest_validation_crossentropy(trained):
    folder, _ = trained
    results = json.loads((folder / "results.json").read_text())
    scores = [float(row["val_token_crossentropy"]) for row in history(folder)]
    assert results["best_epoch"] == int(np.argmin(scores)) + 1


@pytest.mark.full
def test_updates_are_epochs_times_batches():
    pairs = corpus(60, 2)
    translator = new_translator(pairs, preset="tiny", vocabulary_size=320, **ONE_LAYER)
    data = batches(pairs, translator.tokenizer, tokens_per_batch=256)
    compile_for_training(translator.model)
    translator.model.fit(data, epochs=3, shuffle=False, verbose=0)
    assert int(translator.model.optimizer.iterations) == 3 * data.steps_per_epoch


@pytest.mark.full
def test_ctrl_c_saves_the_model(tmp_path, monkeypatch):
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


def test_folder_in_the_way_is_refused_untouched(tmp_path):
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(FileExistsError, match="exists already"):
        train(corpus(40, 3), tmp_path, epochs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.full
def test_previous_translator_is_kept_until_it_is_replaced(trained, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "run")
    before = (folder / "translator.keras").read_bytes()

    def press():
        assert not (folder / "results.json").exists()  # another file of that run
        raise KeyboardInterrupt

    callbacks = [before_any_step(press)]
    with pytest.raises(Interrupted):
        train(corpus(40, 3), folder, epochs=2, overwrite=True, callbacks=callbacks)
    assert (folder / "translator.keras").read_bytes() == before


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


class Steps(keras.callbacks.Callback):
    """Counts steps, and remembers them in snapshots."""

    count = 0

    def on_train_batch_end(self, batch, logs=None):
        self.count += 1

    def get_state(self):
        return {"count": self.count}

    def set_state(self, state):
        self.count = state["count"]


def of_the_user():
    return {"optimizer": keras.optimizers.SGD(0.1, momentum=0.5)}


def constant():
    return {"learning_rate": 1e-3, "warmup_steps": None}


def halving():
    """The rate is halved after each epoch but the first."""
    return keras.callbacks.ReduceLROnPlateau(
        "token_crossentropy", 0.5, patience=1, min_delta=1e9
    )


@pytest.mark.full
def test_callbacks_and_optimizer_of_the_user_resume_exactly(tmp_path, monkeypatch):
    pairs, validation = corpus(60, 3), corpus(9, 4)
    for module in ("callbacks", "run"):  # a search would take longer than the rest
        result = types.SimpleNamespace(bleu=1.0, chrf=2.0)
        name = f"keras_vanilla.training.{module}.score"
        monkeypatch.setattr(name, lambda *_, result=result: result)

    def run(folder, stop=0):
        steps = Steps()
        callbacks = [steps, halving(), AfterBatches(stop)]
        given = {**of_the_user(), "epochs": 3, "average_last": 2}
        given["callbacks"] = callbacks
        translator = train(pairs, tmp_path / folder, validation, **given)
        results = json.loads((tmp_path / folder / "results.json").read_text())
        return steps.count, results, translator.model.get_weights()

    count, results, whole = run("whole")
    with pytest.raises(Crash):
        run("stopped", stop=count - 1)
    again, resumed, weights = run("stopped")
    assert again == count > 3
    assert resumed == results and results["chosen"] in ("average", "best")
    assert {"best_epoch", "average_val_bleu", "best_val_bleu"} < results.keys()
    rates = [float(row["learning_rate"]) for row in history(tmp_path / "stopped")]
    assert rates == pytest.approx([rates[0], rates[0], rates[0] / 2])
    for one, other in zip(whole, weights, strict=True):
        np.testing.assert_array_equal(one, other)


class Rates(keras.callbacks.Callback):
    """The learning rate of each step."""

    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


@pytest.mark.full
def test_rate_falls_in_the_last_epochs(tmp_path):
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
def test_callback_sets_a_constant_rate_but_no_schedule(tmp_path):
    given = {"epochs": 1, "callbacks": [halving(), before_any_step()]}
    with pytest.raises(ValueError, match="ReduceLROnPlateau sets the learning rate"):
        train(corpus(40, 3), tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()
    with pytest.raises(Crash):
        train(corpus(40, 3), tmp_path / "out", **given, **constant())


@pytest.mark.full
def test_frozen_parts_stay_and_are_trained_again_after(tmp_path):
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
    with pytest.raises(FileExistsError, match="settings: optimizer.config.learning"):
        train(pairs, tmp_path, optimizer=keras.optimizers.SGD(0.2), **settings)

import csv
import json

import keras
import numpy as np
import pytest
from word_reversal import dutch, english_sentences

from keras_vanilla import Translator
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.training import Diverged, train_translator
from keras_vanilla.training.run import Interrupted, compile_for_training
from keras_vanilla.training.train import new_translator


def corpus(count, seed):
    sources = english_sentences(count, seed)
    return ParallelCorpus(sources, map(dutch, sources))


def train(corpus, output, valid=None, **settings):
    """`train_translator` on a model of one layer a side."""
    seed = settings.get("seed", 0)
    start = new_translator(
        corpus,
        "tiny",
        vocabulary_size=320,
        seed=seed,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_length=30,
    )
    recipe = {
        "translator": start,
        "tokens_per_batch": 512,
        "max_tokens": 30,
        "warmup_steps": 50,
    }
    return train_translator(corpus, output, valid, **{**recipe, **settings})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit") / "new" / "folder"
    pairs = corpus(150, 0)
    translator = train(pairs, folder, corpus(12, 1), epochs=3, average=2)
    return folder, translator


def history(folder):
    with open(folder / "history.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_it_writes_what_it_says(trained):
    folder, translator = trained
    for name in ("translator.keras", "best.keras", "last.keras"):
        assert Translator.load(folder / name).tokenizer.vocabulary_size
    assert list((folder / "logs" / "train").glob("events.*"))
    saved = Translator.load(folder / "translator.keras").model.get_weights()
    for ours, theirs in zip(translator.model.get_weights(), saved, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_history_has_the_metrics_and_bleu_of_each_epoch(trained):
    rows = history(trained[0])
    assert len(rows) == 3
    for name in ("token_crossentropy", "val_token_crossentropy", "val_bleu"):
        assert all(np.isfinite(float(row[name])) for row in rows)
    losses = [float(row["token_crossentropy"]) for row in rows]
    assert losses[0] > losses[1] > losses[2]


def test_the_best_epoch_has_the_lowest_validation_crossentropy(trained):
    folder, _ = trained
    results = json.loads((folder / "results.json").read_text())
    scores = [float(row["val_token_crossentropy"]) for row in history(folder)]
    assert results["best_epoch"] == int(np.argmin(scores)) + 1


def test_fewer_updates_or_more_than_epochs_times_batches_would_show():
    pairs = corpus(60, 2)
    translator = new_translator(
        pairs, "tiny", vocabulary_size=320, num_encoder_layers=1, num_decoder_layers=1
    )
    data = batches(pairs, translator.tokenizer, tokens_per_batch=256)
    compile_for_training(translator.model)
    translator.model.fit(
        data, steps_per_epoch=data.steps_per_epoch, epochs=3, shuffle=False, verbose=0
    )
    assert int(translator.model.optimizer.iterations) == 3 * data.steps_per_epoch


def test_the_same_seed_gives_the_same_weights(tmp_path):
    runs = [train(corpus(40, 3), tmp_path / str(i), epochs=2, seed=5) for i in range(2)]
    weights = [run.model.get_weights() for run in runs]
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_without_validation_the_average_is_chosen(tmp_path):
    train(corpus(40, 3), tmp_path / "out", epochs=1)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    recipe = results.pop("recipe")
    assert results == {"chosen": "average", "best_epoch": 1}
    assert recipe["warmup_steps"] == 50 and recipe["tokens_per_batch"] == 512


def test_ctrl_c_saves_the_model_so_far(tmp_path, monkeypatch):
    def press(self, batch, logs=None):
        if batch == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(keras.callbacks.CSVLogger, "on_train_batch_end", press)
    with pytest.raises(Interrupted, match="translator so far is in .*last.keras"):
        train(corpus(80, 3), tmp_path / "out", epochs=2)
    translator = Translator.load(tmp_path / "out" / "last.keras")
    monkeypatch.undo()
    again = train(corpus(40, 3), tmp_path / "on", translator=translator, epochs=1)
    assert again.tokenizer.source_model == translator.tokenizer.source_model


def test_a_folder_in_the_way_is_refused_untouched(tmp_path):
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(FileExistsError, match="exists already"):
        train(corpus(40, 3), tmp_path, epochs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_is_overwritten_stays_until_there_is_another(tmp_path, monkeypatch):
    (tmp_path / "translator.keras").write_text("the one that `--from` named")

    def press(self, batch, logs=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(keras.callbacks.CSVLogger, "on_train_batch_end", press)
    with pytest.raises(Interrupted):
        train(corpus(40, 3), tmp_path, epochs=1, overwrite=True)
    assert (tmp_path / "translator.keras").read_text() == "the one that `--from` named"


def test_a_training_that_diverges_names_step_lines_and_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "keras_vanilla.training.run.adam", lambda *_: keras.optimizers.SGD(1e20)
    )
    pairs = corpus(60, 3)
    with pytest.raises(Diverged, match="after step 2, whose batch is lines") as error:
        train(pairs, tmp_path / "out", epochs=1)
    folder = tmp_path / "out" / "snapshots"
    assert error.value.snapshot == folder / "step-000000000000.npz"
    tokenizer = Translator.load(tmp_path / "out" / "last.keras").tokenizer
    data = batches(pairs, tokenizer, tokens_per_batch=512, max_tokens=30)
    *_, labels, _ = next(iter(data.skip(1).as_numpy_iterator()))
    texts = tokenizer.decode([[id_ for id_ in row if id_] for row in labels.tolist()])
    lines = error.value.line_numbers
    assert sorted(texts) == sorted(pairs.targets[line - 1] for line in lines)
    assert not (tmp_path / "out" / "translator.keras").exists()


def test_what_a_translator_brings_is_not_said_again(tmp_path):
    with pytest.raises(ValueError, match="has its own vocabulary_size"):
        train(corpus(40, 3), tmp_path / "out", vocabulary_size=400)


def test_an_unknown_preset_names_the_choices(tmp_path):
    with pytest.raises(
        ValueError, match="'huge'. Choose one of: tiny, small, base, big"
    ):
        train_translator(corpus(40, 3), tmp_path / "out", preset="huge")
    assert not (tmp_path / "out").exists()

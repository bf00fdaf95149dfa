"""Trainings with the roundings of a `.tflite` file in them."""

import csv
import json
import random
import types

import keras
import numpy as np
import pytest
from stopping import AfterBatches, Crash
from word_reversal import corpus

from keras_vanilla import Translator
from keras_vanilla.models import fake_quantize
from keras_vanilla.training import (
    callbacks,
    new_translator,
    run,
    train_translator,
)
from keras_vanilla.training.compilation import compile_with
from keras_vanilla.translation import score

pytestmark = pytest.mark.full
SIZES = {"num_encoder_layers": 1, "num_decoder_layers": 1, "max_length": 30}
NUMBERS = {"tokens_per_batch": 512, "max_tokens": 30, "learning_rate": 1e-3}


PAIRS, VALIDATION = corpus(60, 0), corpus(9, 1)


@pytest.fixture(scope="module")
def start():
    return new_translator(PAIRS, preset="tiny", vocabulary_size=320, **SIZES)


def train(start, output, **settings):
    random.seed()  # a copy draws the seeds of its dropouts
    settings = {"translator": start.copy(), "epochs": 2, **NUMBERS, **settings}
    return train_translator(PAIRS, output, VALIDATION, **settings)


@pytest.fixture(scope="module")
def trained(start, tmp_path_factory):
    output = tmp_path_factory.mktemp("int4") / "run"
    return output, train(start, output, quantize="int4")


def test_scores_are_those_of_the_rounded_model(trained):
    output, translator = trained
    results = json.loads((output / "results.json").read_text())
    assert translator.model.fake_quantization is None
    fake_quantize(translator.model, "int4")
    rounded = score(translator, VALIDATION)
    fake_quantize(translator.model, None)
    chosen = results["chosen"]
    assert results[f"{chosen}_val_chrf"] == rounded.chrf
    assert results[f"{chosen}_val_bleu"] == rounded.bleu


def test_best_epoch_has_the_highest_chrf(trained):
    output, _ = trained
    results = json.loads((output / "results.json").read_text())
    with open(output / "history.csv", newline="") as file:
        scores = [float(row["val_chrf"]) for row in csv.DictReader(file)]
    assert results["best_epoch"] == 1 + scores.index(max(scores))
    assert results["best_val_chrf"] == max(scores)


def test_interrupted_training_ends_with_the_same_weights(
    start, trained, tmp_path, monkeypatch
):
    for module in (callbacks, run):  # a search would take longer than the rest
        result = types.SimpleNamespace(bleu=1.0, chrf=2.0)
        monkeypatch.setattr(module, "score", lambda *_, result=result: result)
    translator, modes = start.copy(), []

    def crash():
        modes.append(translator.model.fake_quantization)
        raise Crash

    given = {"quantize": "int4", "callbacks": [AfterBatches(5, crash)]}
    with pytest.raises(Crash):
        train(start, tmp_path / "run", **given, translator=translator)
    assert [*modes, translator.model.fake_quantization] == ["int4", None]
    with pytest.raises(FileExistsError, match="quantize was 'int4' and is 'int8'"):
        train(start, tmp_path / "run", quantize="int8")
    given["callbacks"] = [AfterBatches(0)]
    train(start, tmp_path / "run", **given)
    resumed, whole = (
        Translator.load(folder / "last.keras").model.get_weights()
        for folder in (tmp_path / "run", trained[0])
    )
    for one, other in zip(resumed, whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_training_is_in_float32_with_the_rate_of_an_optimizer(
    start, tmp_path, monkeypatch
):
    def compile_and_stop(*arguments):
        model = arguments[0]
        compile_with(*arguments)
        assert (model.compute_dtype, model.fake_quantization) == ("float32", "int8")
        raise Crash

    monkeypatch.setattr(run, "compile_with", compile_and_stop)
    half = Translator(start.tokenizer, start.model.copy(dtype="mixed_bfloat16"))
    optimizer = keras.optimizers.SGD(0.25)
    settings = {"learning_rate": None, "optimizer": optimizer, "quantize": "int8"}
    with pytest.raises(Crash):
        train(start, tmp_path / "run", translator=half, **settings)
    assert float(optimizer.learning_rate) == 0.25
    assert half.model.fake_quantization is None

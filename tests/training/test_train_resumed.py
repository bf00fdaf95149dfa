"""`train_translator`, stopped and started again."""

import json
import os
import random
import re
import shutil
import signal
import types

import keras
import numpy as np
import pytest
from stopping import Crash
from word_reversal import corpus

from keras_vanilla import Translator
from keras_vanilla.data import batches
from keras_vanilla.models.presets import PRESETS
from keras_vanilla.training import (
    Interrupted,
    callbacks,
    run,
    train_translator,
)
from keras_vanilla.training.resume import identity
from keras_vanilla.training.resume.snapshots import Snapshots

pytestmark = pytest.mark.full
EPOCHS = 3


PAIRS, VALIDATION = corpus(40, 0), corpus(8, 1)


class Stop(keras.callbacks.Callback):
    """Ends a training in the first batch of an epoch, or before any step."""

    def __init__(self, epoch=None, before_steps=False):
        super().__init__()
        self._stops, self._before_steps = epoch, before_steps

    def get_state(self):
        return {}

    def set_state(self, state):
        pass

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        if self._before_steps:
            raise Crash

    def on_train_batch_end(self, batch, logs=None):
        if self._epoch == self._stops:
            raise Crash


def train(folder, validation=VALIDATION, **settings):
    numbers = {"tokens_per_batch": 512, "max_tokens": 30, "warmup_steps": 50}
    sizes = {"preset": "tiny", "vocabulary_size": 330, "epochs": EPOCHS}
    settings = {**sizes, **numbers, "callbacks": [Stop()], **settings}
    return train_translator(PAIRS, folder, validation, **settings)


def stop(folder, **settings):
    """Trains until the first batch of the last epoch."""
    with pytest.raises(Crash):
        train(folder, callbacks=[Stop(EPOCHS - 1)], **settings)


def quickly():
    """Settings with which TensorFlow traces less."""
    return {"validation": None, "optimizer": keras.optimizers.SGD(0.1)}


@pytest.fixture(scope="module", autouse=True)
def cheap_training():
    """One layer, and no search, which takes longer than all the rest."""
    one = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", {**PRESETS["tiny"], **one})
        for module in (callbacks, run):
            result = types.SimpleNamespace(bleu=1.0, chrf=2.0)
            patch.setattr(module, "score", lambda *_, result=result: result)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return train(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped") / "run"
    stop(folder)
    return folder


def assert_same_weights(one, other):
    weights = one.model.get_weights(), other.model.get_weights()
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_resumed_further_training_is_exact(whole, tmp_path):
    whole.save(tmp_path / "from.keras")

    def further(name, train=train, **more):
        random.seed()  # a model that is loaded draws the seeds of its dropouts
        translator = Translator.load(tmp_path / "from.keras")
        of_its_own = {"preset": None, "vocabulary_size": None, "translator": translator}
        return train(tmp_path / name, **of_its_own, **quickly(), **more)

    expected = further("whole")
    further("stopped", stop)
    assert_same_weights(further("stopped"), expected)
    with pytest.raises(AssertionError):
        assert_same_weights(further("other", seed=1), expected)


def test_truncated_files_do_not_change_result(whole, stopped, tmp_path, recwarn):
    folder = shutil.copytree(stopped, tmp_path / "run")
    for pattern in ("last.keras", "snapshots/step-*.npz"):
        newest = max(folder.glob(pattern))
        os.truncate(newest, newest.stat().st_size // 2)
    recwarn.clear()
    assert_same_weights(train(folder), whole)
    texts = " ".join(str(each.message) for each in recwarn)
    assert re.search("continues without it: .*last.keras", texts)
    assert re.search(r"step-\d+.npz is damaged", texts)
    assert not (folder / "snapshots").exists()


def test_average_is_chosen_if_best_epoch_is_lost(tmp_path, monkeypatch):
    class Truncate(Stop):
        def on_train_end(self, logs=None):
            os.truncate(tmp_path / "run" / "best.keras", 1000)

    low = types.SimpleNamespace(bleu=-1.0, chrf=-1.0)
    monkeypatch.setattr(run, "score", lambda *_: low)
    with pytest.warns(UserWarning, match="continues without it: .*best.keras"):
        train(tmp_path / "run", epochs=1, callbacks=[Truncate()])
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["chosen"] == "average"
    Translator.load(tmp_path / "run" / "translator.keras")


def test_ctrl_c_while_bleu_is_computed_waits_for_the_epoch(whole, tmp_path):
    def press(*_):
        os.kill(os.getpid(), signal.SIGINT)
        return types.SimpleNamespace(bleu=1.0, chrf=2.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks, "score", press)
        with pytest.raises(Interrupted, match="translator so far is in .*last.keras"):
            train(tmp_path / "run")
    assert Snapshots(tmp_path / "run" / "snapshots").last_step() > 0
    assert_same_weights(train(tmp_path / "run"), whole)


def test_more_epochs_are_allowed_by_name(tmp_path):
    folder, cooldown = tmp_path / "run", {"cooldown_epochs": 1, "validation": None}
    stop(folder, **cooldown)
    # The snapshot is of 2 epochs, in which the rate had not fallen yet.
    more = {"epochs": EPOCHS + 1, **cooldown}
    message = r"epochs was 3 and is 4. .*allow_changed=\['epochs'\]"
    with pytest.raises(FileExistsError, match=message):
        train(folder, **more)
    longer = train(folder, allow_changed=["epochs"], **more)
    assert_same_weights(longer, train(tmp_path / "whole", **more))
    record = json.loads((folder / "run.json").read_text())
    assert record["finished"] and record["settings"]["epochs"] == 4
    with pytest.raises(FileExistsError, match="start from its translator.keras"):
        train(folder, **more)


OPEN_WARMUP = {"warmup_steps": None, "tokens_per_batch": 64, "validation": None}
LONG_WARMUP = {**OPEN_WARMUP, "warmup_steps": 1000}


@pytest.fixture(scope="module")
def stopped_with_open_warmup(tmp_path_factory):
    folder = tmp_path_factory.mktemp("open") / "run"
    stop(folder, **OPEN_WARMUP)
    return folder


def steps_per_epoch(folder):
    tokenizer = Translator.load(folder / "last.keras").tokenizer
    return batches(PAIRS, tokenizer, OPEN_WARMUP["tokens_per_batch"]).steps_per_epoch


def warmup_of(optimizer):
    return optimizer.get_config()["learning_rate"]["config"]["warmup_steps"]


def warmup_before_any_step(folder, **settings):
    """That of a training which begins or resumes, and ends there."""
    callback = Stop(before_steps=True)
    with pytest.raises(Crash):
        train(folder, callbacks=[callback], **settings)
    return warmup_of(callback.model.optimizer)


def test_short_warmup_is_a_fifth_and_resumes_exactly(
    stopped_with_open_warmup, tmp_path, recwarn
):
    shutil.copytree(stopped_with_open_warmup, tmp_path / "run")
    resumed = train(tmp_path / "run", **OPEN_WARMUP)
    assert_same_weights(resumed, train(tmp_path / "whole", **OPEN_WARMUP))
    for folder in (tmp_path / "run", tmp_path / "whole"):
        results = json.loads((folder / "results.json").read_text())
        warmup_steps = results["config"]["warmup_steps"]
        assert warmup_steps == EPOCHS * steps_per_epoch(folder) // 5 > 1
        record = json.loads((folder / "run.json").read_text())["settings"]
        assert record["short_warmup_steps"] == warmup_steps
        assert record["warmup_steps"] == 1000  # the recipe's
    assert not any("warm-up" in str(each.message) for each in recwarn)


def test_more_epochs_keep_the_short_warmup(stopped_with_open_warmup, tmp_path):
    folder = shutil.copytree(stopped_with_open_warmup, tmp_path / "run")
    more = {"epochs": EPOCHS + 2, **OPEN_WARMUP, "allow_changed": ["epochs"]}
    warmup_steps = warmup_before_any_step(folder, **more)
    steps = steps_per_epoch(folder)
    assert warmup_steps == steps * EPOCHS // 5 < steps * (EPOCHS + 2) // 5


def test_other_warmup_is_refused(stopped_with_open_warmup, tmp_path):
    folder = shutil.copytree(stopped_with_open_warmup, tmp_path / "run")
    message = r"optimizer has changed.*allow_changed=\['optimizer'\]"
    with pytest.raises(ValueError, match=message):
        train(folder, **LONG_WARMUP)
    allowed = {**LONG_WARMUP, "allow_changed": ["optimizer"]}
    assert warmup_before_any_step(folder, **allowed) == 1000


@pytest.fixture
def optimizers(monkeypatch):
    """What each training of a test would be compiled with; there they end."""
    optimizers = []

    def stop(model, optimizer, config):
        optimizers.append(optimizer)
        raise Crash

    monkeypatch.setattr(run, "compile_with", stop)
    return optimizers


@pytest.mark.parametrize(
    ("settings", "warmup_steps"),
    [
        ({"warmup_steps": 9999}, 9999),
        ({"recipe": "paper"}, 4000),
        ({**LONG_WARMUP, "optimizer": keras.optimizers.Adam(1e-3)}, None),
    ],
)
def test_long_warmup_is_reported_and_kept(
    tmp_path, optimizers, recwarn, settings, warmup_steps
):
    with pytest.raises(Crash):
        train(tmp_path / "run", **{**OPEN_WARMUP, **settings})
    texts = [str(each.message) for each in recwarn if "warm-up" in str(each.message)]
    if warmup_steps is None:
        assert optimizers == [settings["optimizer"]] and not texts
    else:
        assert warmup_of(optimizers[0]) == warmup_steps
        start = rf"The warm-up of {warmup_steps:,} steps is longer than .*"
        assert re.match(start, *texts)


def test_refused_settings_are_not_recorded(stopped, tmp_path, monkeypatch):
    folder = shutil.copytree(stopped, tmp_path / "run")
    record = (folder / "run.json").read_bytes()
    monkeypatch.setattr(identity, "__version__", "0")
    message = r"versions.*allow_changed=\['epochs', 'versions'\]"
    with pytest.raises(ValueError, match=message):
        train(folder, allow_changed=["epochs"], epochs=EPOCHS + 1)
    assert (folder / "run.json").read_bytes() == record

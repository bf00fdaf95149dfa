"""`train_translator`, stopped and started again."""

import json
import os
import re
import shutil
import signal
import types

import keras
import numpy as np
import pytest
from stopping import Crash
from word_reversal import dutch, english_sentences

from keras_vanilla import Translator
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.models.presets import PRESETS
from keras_vanilla.training import Interrupted, callbacks, run, train_translator
from keras_vanilla.training.resume import identity
from keras_vanilla.training.resume.snapshots import Snapshots

pytestmark = pytest.mark.full
EPOCHS = 3


def corpus(count, seed):
    sources = english_sentences(count, seed)
    return ParallelCorpus(sources, map(dutch, sources))


class Stop(keras.callbacks.Callback):
    """Ends a training in the first batch of its last epoch."""

    active = False

    def get_state(self):
        return {}

    def set_state(self, state):
        pass

    def on_epoch_begin(self, epoch, logs=None):
        self._last = epoch == EPOCHS - 1

    def on_train_batch_end(self, batch, logs=None):
        if self.active and self._last:
            raise Crash


def train(folder, stop=False, **settings):
    callback = Stop()
    callback.active = stop
    numbers = {"tokens_per_batch": 512, "max_tokens": 30, "warmup_steps": 50}
    sizes = {"preset": "tiny", "vocabulary_size": 330, "epochs": EPOCHS}
    settings = {**sizes, **numbers, "callbacks": [callback], **settings}
    return train_translator(corpus(40, 0), folder, corpus(8, 1), **settings)


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
    with pytest.raises(Crash):
        train(folder, stop=True)
    return folder


def assert_same_weights(one, other):
    weights = one.model.get_weights(), other.model.get_weights()
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("settings", [{}, {"quantize": "int8"}], ids=str)
def test_training_further_has_one_result_also_when_it_resumes(
    whole, tmp_path, settings
):
    whole.save(tmp_path / "from.keras")

    def further(name, **more):
        translator = Translator.load(tmp_path / "from.keras")
        numbers = {"preset": None, "vocabulary_size": None, **settings}
        return train(tmp_path / name, translator=translator, **numbers, **more)

    expected = further("first")
    assert_same_weights(further("again"), expected)
    with pytest.raises(Crash):
        further("stopped", stop=True)
    assert_same_weights(further("stopped"), expected)
    with pytest.raises(AssertionError):
        assert_same_weights(further("other", seed=1), expected)


TRUNCATED = {
    "last": (["last.keras"], "continues without it: .*last.keras"),
    "both": (["last.keras", "best.keras"], "continues without it: .*best.keras"),
    "history": (["history.csv"], "history.csv has lost lines"),
    "snapshot": (["snapshots/step-*.npz"], "step-.*npz cannot be read"),
    "weights": (["snapshots/weights-*.npz"], r"cannot be read \(weights-"),
}


@pytest.mark.parametrize("name", TRUNCATED)
def test_no_truncated_file_keeps_a_training_from_its_end(
    whole, stopped, tmp_path, name, recwarn
):
    patterns, warning = TRUNCATED[name]
    folder = shutil.copytree(stopped, tmp_path / "run")
    for pattern in patterns:
        newest = max(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns)
        os.truncate(newest, newest.stat().st_size // 2)
    recwarn.clear()
    assert_same_weights(train(folder), whole)
    texts = [str(each.message) for each in recwarn]
    assert any(re.search(warning, text) for text in texts), texts
    assert not (folder / "snapshots").exists()


def test_without_the_best_epoch_the_average_is_chosen(tmp_path, monkeypatch):
    class Truncate(Stop):
        def on_train_end(self, logs=None):
            os.truncate(tmp_path / "run" / "best.keras", 1000)

    monkeypatch.setattr(f"{__name__}.Stop", Truncate)
    low = types.SimpleNamespace(bleu=-1.0, chrf=-1.0)
    monkeypatch.setattr(run, "score", lambda *_: low)
    with pytest.warns(UserWarning, match="continues without it: .*best.keras"):
        train(tmp_path / "run")
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["chosen"] == "average"
    Translator.load(tmp_path / "run" / "translator.keras")


def test_ctrl_c_while_bleu_is_computed_loses_nothing(whole, tmp_path):
    def press(*_):
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("It waits.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks, "score", press)
        with pytest.raises(Interrupted, match="translator so far is in .*last.keras"):
            train(tmp_path / "run")
    assert Snapshots(tmp_path / "run" / "snapshots").last_step() > 0
    assert_same_weights(train(tmp_path / "run"), whole)


def test_more_epochs_of_an_unfinished_training_are_allowed_by_name(stopped, tmp_path):
    folder = shutil.copytree(stopped, tmp_path / "run")
    more = {"epochs": EPOCHS + 1}
    message = r"epochs was 3 and is 4. .*allow_changed=\['epochs'\]"
    with pytest.raises(FileExistsError, match=message):
        train_more(folder, **more)
    longer = train_more(folder, allow_changed=["epochs"], **more)
    assert_same_weights(longer, train_more(tmp_path / "whole", **more))
    record = json.loads((folder / "run.json").read_text())
    assert record["finished"] and record["settings"]["epochs"] == 4
    with pytest.raises(FileExistsError, match="start from its translator.keras"):
        train_more(folder, **more)


def test_a_cooldown_moves_with_the_epochs_that_are_allowed(tmp_path):
    folder, cooldown = tmp_path / "run", {"cooldown_epochs": 1}
    with pytest.raises(Crash):
        train(folder, stop=True, **cooldown)
    # The snapshot is of 2 epochs, in which the rate had not fallen yet.
    more = {"epochs": EPOCHS + 1, **cooldown}
    longer = train_more(folder, allow_changed=["epochs"], **more)
    assert_same_weights(longer, train_more(tmp_path / "whole", **more))


OPEN_WARMUP = {"warmup_steps": None, "tokens_per_batch": 64}


def steps_of(folder):
    """Its warm-up steps, and those of the whole training."""
    results = json.loads((folder / "results.json").read_text())
    rows = (folder / "history.csv").read_text().splitlines()[1:]
    data = batches(corpus(40, 0), Translator.load(folder / "last.keras").tokenizer, 64)
    return results["config"]["warmup_steps"], len(rows) * data.steps_per_epoch


def test_the_recipes_warmup_of_a_short_training_is_a_fifth_and_resumes_exactly(
    tmp_path, recwarn
):
    with pytest.raises(Crash):
        train(tmp_path / "run", stop=True, **OPEN_WARMUP)
    resumed = train(tmp_path / "run", **OPEN_WARMUP)
    assert_same_weights(resumed, train(tmp_path / "whole", **OPEN_WARMUP))
    for folder in (tmp_path / "run", tmp_path / "whole"):
        warmup_steps, all_steps = steps_of(folder)
        assert warmup_steps == all_steps // 5 > 1
        record = json.loads((folder / "run.json").read_text())["settings"]
        assert record["short_warmup_steps"] == warmup_steps
        assert record["warmup_steps"] == 1000  # the recipe's
    assert not any("warm-up" in str(each.message) for each in recwarn)


def test_a_training_keeps_its_short_warmup_with_more_epochs(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Crash):
        train(folder, stop=True, **OPEN_WARMUP)
    more = {"epochs": EPOCHS + 2, **OPEN_WARMUP, "allow_changed": ["epochs"]}
    train_more(folder, **more)
    warmup_steps, all_steps = steps_of(folder)
    assert warmup_steps == all_steps * EPOCHS // (EPOCHS + 2) // 5 < all_steps // 5


def test_a_training_of_an_earlier_version_keeps_its_long_warmup(tmp_path):
    folder, long = tmp_path / "run", {**OPEN_WARMUP, "warmup_steps": 1000}
    with pytest.raises(Crash):
        train(folder, stop=True, **long)  # as they recorded it
    resumed = train(folder, **OPEN_WARMUP)
    assert_same_weights(resumed, train(tmp_path / "whole", **long))
    assert steps_of(folder)[0] == 1000


def test_another_warmup_than_that_of_the_snapshots_is_refused(tmp_path):
    with pytest.raises(Crash):
        train(tmp_path / "run", stop=True, **OPEN_WARMUP)
    message = r"warmup_steps was \d+ and is 1000.*allow_changed=\['optimizer'\]"
    long = {**OPEN_WARMUP, "warmup_steps": 1000}
    with pytest.raises(ValueError, match=message):
        train(tmp_path / "run", **long)
    train(tmp_path / "run", **long, allow_changed=["optimizer"])
    assert steps_of(tmp_path / "run")[0] == 1000


@pytest.mark.parametrize("settings", [{"warmup_steps": 9999}, {"recipe": "paper"}])
def test_a_warmup_that_is_longer_than_the_training_is_reported(tmp_path, settings):
    given = {**OPEN_WARMUP, **settings}
    warmup = f"{settings.get('warmup_steps', 4000):,}"
    message = rf"The warm-up of {warmup} steps is longer than .*, of [\d,]+ steps: its "
    with pytest.warns(UserWarning, match=message):
        train(tmp_path / "run", **given)
    assert f"{steps_of(tmp_path / 'run')[0]:,}" == warmup  # and it is not changed


def test_an_optimizer_of_ones_own_has_no_warmup_to_report(tmp_path, recwarn):
    train(tmp_path / "run", **OPEN_WARMUP, optimizer=keras.optimizers.Adam(1e-3))
    assert not any("warm-up" in str(each.message) for each in recwarn)


def test_what_the_snapshots_refuse_is_not_recorded(stopped, tmp_path, monkeypatch):
    folder = shutil.copytree(stopped, tmp_path / "run")
    record = (folder / "run.json").read_bytes()
    monkeypatch.setattr(identity, "__version__", "0")
    message = r"versions.*allow_changed=\['epochs', 'versions'\]"
    with pytest.raises(ValueError, match=message):
        train_more(folder, allow_changed=["epochs"], epochs=EPOCHS + 1)
    assert (folder / "run.json").read_bytes() == record


@pytest.mark.parametrize(
    ("sampled", "message"),
    [
        ({"sampling": 0.3}, "sampling was 0.3 and is None"),
        ({"robust": True}, "robust was True and is False"),
        ({"r_drop": 2.0}, "r_drop was 2 and is 0"),
    ],
)
def test_a_training_with_drawn_texts_resumes_exactly(whole, tmp_path, sampled, message):
    with pytest.raises(Crash):
        train(tmp_path / "run", stop=True, **sampled)
    with pytest.raises(FileExistsError, match=message):
        train(tmp_path / "run")
    resumed = train(tmp_path / "run", **sampled)
    assert_same_weights(resumed, train(tmp_path / "whole", **sampled))
    with pytest.raises(AssertionError):
        assert_same_weights(resumed, whole)


def test_a_training_with_a_teacher_resumes_exactly(whole, tmp_path):
    taught = {"teacher": whole, "word_level": 0.5, "vocabulary_size": None}
    with pytest.raises(Crash):
        train(tmp_path / "run", stop=True, **taught)
    weights = [0.9 * weight for weight in whole.model.get_weights()]
    other = {**taught, "teacher": whole.copy(weights)}
    with pytest.raises(FileExistsError, match="teacher was"):
        train(tmp_path / "run", **other)
    resumed = train(tmp_path / "run", **taught)
    assert_same_weights(resumed, train(tmp_path / "whole", **taught))
    assert resumed.tokenizer.digest == whole.tokenizer.digest
    with pytest.raises(AssertionError):
        assert_same_weights(resumed, train(tmp_path / "other", **other))


def train_more(folder, epochs, **settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.EPOCHS", epochs)
        return train(folder, **settings)


def test_a_folder_that_is_renamed_meanwhile_is_named_and_not_made_again(
    whole, tmp_path, monkeypatch
):
    path, other = tmp_path / "run", tmp_path / "other"

    class Rename(Stop):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                path.rename(other)

    Rename.__name__ = Stop.__name__  # a resumed training has the same callbacks
    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.Stop", Rename)
        with pytest.raises(FileNotFoundError, match=r"run is gone: .* Rename it back"):
            train(path)
    assert not path.exists()
    other.rename(path)
    assert_same_weights(train(path), whole)

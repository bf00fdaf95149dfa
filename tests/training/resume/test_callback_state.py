"""Every callback of Keras is resumed, or refused."""

import inspect

import keras
import pytest
from small_fit import compiled, fit
from stopping import Crash

from keras_vanilla.training import ExactResume
from keras_vanilla.training.resume import callback_state


def test_every_callback_of_keras_is_known():
    known = {
        keras.callbacks.Callback,
        *callback_state._STATE,
        *callback_state._STATELESS,
        *callback_state._REFUSED,
    }
    of_keras = inspect.getmembers(keras.callbacks, inspect.isclass)
    assert known == {kind for _, kind in of_keras}


def test_backup_and_restore_is_refused(tmp_path):
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    with pytest.raises(ValueError, match="cannot resume a BackupAndRestore: `Exact"):
        ExactResume(tmp_path, [backup])


@pytest.mark.parametrize(
    ("callback", "message"),
    [
        (
            keras.callbacks.ModelCheckpoint("x.keras", save_freq=5),
            "a ModelCheckpoint unless `save_freq` is 'epoch'. Received: save_freq=5",
        ),
        (
            keras.callbacks.TensorBoard("x", update_freq="batch"),
            "TensorBoard unless `update_freq` is 'epoch'. Received: update_freq=1",
        ),
        (keras.callbacks.SwapEMAWeights(), "SwapEMAWeights: use `AverageCheckpoints`"),
    ],
    ids=["checkpoint", "board", "averages"],
)
def test_what_a_callback_remembers_in_private_is_refused(tmp_path, callback, message):
    with pytest.raises(ValueError, match=message):
        ExactResume(tmp_path, [callback])
    settings = {"monitor": "loss", "save_best_only": True}
    checkpoint = keras.callbacks.ModelCheckpoint("x.keras", **settings)
    ExactResume(tmp_path, [checkpoint, keras.callbacks.TensorBoard("x")])


def test_a_log_that_is_removed_does_not_stop_the_training(tmp_path):
    log = tmp_path / "log.csv"

    class Remove(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                log.unlink()

    callbacks = [keras.callbacks.CSVLogger(log), Remove()]
    with pytest.warns(UserWarning, match="log.csv is not part of the snapshot: .*No s"):
        history = fit(compiled(), tmp_path / "run", callbacks)
    assert len(history.epoch) == 4
    fit(compiled(), tmp_path / "run", [keras.callbacks.CSVLogger(log), Remove()])


@pytest.mark.parametrize("steps", [2, 3])
def test_calls_of_several_steps_resume_exactly_or_are_refused(
    tmp_path, weights_of, steps
):
    if steps == 3:
        with pytest.raises(ValueError, match="steps_per_execution=3, 4 batches"):
            fit(compiled(steps=steps), tmp_path / "run")
        return
    whole, again = (compiled(seed=seed, steps=steps) for seed in (1, 2))
    expected = fit(whole, tmp_path / "whole").history
    with pytest.raises(Crash):
        fit(compiled(steps=steps), tmp_path / "run", crash=3)  # calls
    assert fit(again, tmp_path / "run").history == expected
    assert weights_of(again) == weights_of(whole)

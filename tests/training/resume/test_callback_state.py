"""Every callback of Keras is resumed, or refused."""

import inspect

import keras
import pytest
from small_fit import compiled, data, fit
from stopping import Crash

from keras_vanilla.training import AverageCheckpoints, ExactResume
from keras_vanilla.training.resume import callback_state


def weights_of(model):
    return [value.tobytes() for value in model.get_weights()]


def test_every_callback_of_keras_is_known():
    known = {
        kind if isinstance(kind, str) else kind.__name__
        for kinds in (
            callback_state._OF_KERAS,
            callback_state._STATELESS,
            callback_state._REFUSED,
        )
        for kind in kinds
    }
    of_keras = inspect.getmembers(keras.callbacks, inspect.isclass)
    assert known | {"Callback"} == {name for name, _ in of_keras}


def test_backup_and_restore_is_refused(tmp_path):
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    with pytest.raises(ValueError, match="cannot resume a BackupAndRestore: `Exact"):
        ExactResume(tmp_path, data(), [backup])


def test_a_keras_without_a_callback_refuses_the_others(tmp_path, monkeypatch):
    monkeypatch.delattr(keras.callbacks, "OrbaxCheckpoint")  # as Keras 3.13
    callback_state.refuse_unsupported([keras.callbacks.History()])
    with pytest.raises(ValueError, match="cannot resume a CallbackList"):
        callback_state.refuse_unsupported([keras.callbacks.CallbackList()])


def test_an_exact_resume_in_another_is_refused(tmp_path):
    inner = ExactResume(tmp_path, data())
    with pytest.raises(ValueError, match="cannot resume a ExactResume: give the call"):
        ExactResume(tmp_path, data(), [inner])


def averaging(seed=1):
    """A model whose optimizer averages its weights."""
    return compiled(seed=seed, use_ema=True)


ALSO = [(on, at) for on in (False, True) for at in (3, 4, 16)] + [(False, 6)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("on_epoch", "crash"),
    [
        (True, 6),
        *(pytest.param(*each, marks=pytest.mark.full) for each in ALSO),
    ],
)
def test_swapped_averages_resume_exactly(tmp_path, on_epoch, crash):
    def callbacks():
        return [keras.callbacks.SwapEMAWeights(on_epoch), AverageCheckpoints(2)]

    whole, again = averaging(), averaging(seed=2)
    last, others = callbacks(), callbacks()
    settings = {"validation_data": data(), "every": 1}
    expected = fit(whole, tmp_path / "whole", last, **settings).history
    with pytest.raises(Crash):
        fit(averaging(), tmp_path / "run", callbacks(), crash, **settings)
    assert fit(again, tmp_path / "run", others, **settings).history == expected
    assert weights_of(again) == weights_of(whole)
    averages = [[v.tobytes() for v in each[1].weights()] for each in (last, others)]
    assert averages[0] == averages[1]


@pytest.mark.full
def test_more_epochs_after_the_last_swap_are_refused(tmp_path):
    def train(epochs):
        swap = [keras.callbacks.SwapEMAWeights(swap_on_epoch=True)]
        fit(averaging(), tmp_path, swap, epochs=epochs, allow_changed=["epochs"])

    train(1)
    with pytest.raises(ValueError, match="cannot train more epochs exactly: SwapEMA"):
        train(2)


@pytest.mark.full
def test_tensorboard_counts_on(tmp_path):
    counts = []
    for crash in (6, None):
        board = keras.callbacks.TensorBoard(tmp_path / "logs", write_graph=False)
        try:
            fit(compiled(), tmp_path / "run", [board], crash, every=1)
        except Crash:
            pass
        counts.append(board._global_train_batch)
    assert counts == [6, 16]


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
def test_calls_of_several_steps_resume_exactly_or_are_refused(tmp_path, steps):
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

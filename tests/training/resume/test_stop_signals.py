"""Ctrl-C and SIGTERM take effect after a snapshot."""

import os
import signal
import threading

import keras
import pytest
from small_fit import compiled, fit, validation
from stopping import Crash, crash
from tiers import in_full

from keras_vanilla.training.resume.snapshots import Snapshots

# A snapshot only when it has to be: before the first step, after epochs, and on a stop.
RARELY = {"every": 10**9, "validation_data": validation()}


@pytest.fixture
def ends_by_crash():
    """SIGTERM raises `Crash`, so that a test outlives it."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: crash())
    yield
    signal.signal(signal.SIGTERM, before)


def send(number):
    os.kill(os.getpid(), number)


class When(keras.callbacks.Callback):
    """Sends a signal at the n-th call of a method."""

    def __init__(self, method, count, number=signal.SIGTERM):
        super().__init__()
        self._left = count
        setattr(self, method, lambda *_, **__: self._count(number))

    def _count(self, number):
        self._left -= 1
        if not self._left:
            send(number)


def beside():
    """A callback that changes before and after the validation."""
    return [keras.callbacks.EarlyStopping("val_loss", patience=2)]


# After how many steps the snapshot is, in epochs of four.
PLACES = {
    "in a batch": ("on_train_batch_begin", 7, 7),
    "at a batch's end": ("on_train_batch_end", 6, 6),
    "at an epoch's begin": ("on_epoch_begin", 2, 4),
    "in the last batch": ("on_train_batch_begin", 8, 8),
    "in the validation": ("on_test_batch_end", 6, 8),
    "at an epoch's end": ("on_epoch_end", 2, 8),
}


@pytest.mark.filterwarnings("ignore:What When remembers")
@pytest.mark.parametrize(
    "place",
    ["in a batch", *in_full(*(each for each in PLACES if each != "in a batch"))],
)
def test_training_stopped_by_sigterm_resumes_exactly(
    tmp_path, whole, weights_of, ends_by_crash, place
):
    method, count, step = PLACES[place]
    again = compiled(seed=2)
    inside = [*beside(), When(method, count)]
    with pytest.raises(Crash):
        fit(compiled(), tmp_path / "run", inside, **RARELY)
    assert Snapshots(tmp_path / "run").last_step() == step
    inside = [*beside(), When(method, 0)]
    history = fit(again, tmp_path / "run", inside, **RARELY).history
    assert (history, weights_of(again)) == whole


def test_ctrl_c_raises_after_a_snapshot(tmp_path):
    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning):
        inside = [When("on_train_batch_begin", 3, signal.SIGINT)]
        fit(compiled(), tmp_path, inside, **RARELY)
    assert Snapshots(tmp_path).last_step() == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.filterwarnings("ignore:What Twice")
def test_second_ctrl_c_does_not_wait_for_batch(tmp_path):
    class Twice(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if batch == 2:
                send(signal.SIGINT)
                send(signal.SIGINT)
                raise AssertionError("It waits.")

    with pytest.raises(KeyboardInterrupt):
        fit(compiled(), tmp_path, [Twice()], **RARELY)
    assert Snapshots(tmp_path).last_step() == 0


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:What When")
@pytest.mark.parametrize("ignored", [False, True])
def test_handler_that_returns_continues_training(tmp_path, ignored):
    arrived = []
    handler = signal.SIG_IGN if ignored else lambda number, frame: arrived.append(1)
    before = signal.signal(signal.SIGTERM, handler)
    try:
        inside = [When("on_train_batch_end", 3), When("on_train_batch_end", 7)]
        history = fit(compiled(), tmp_path, inside, **RARELY)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(arrived) == (0 if ignored else 2) and len(history.epoch) == 4


def test_signal_after_an_error_acts_at_once(tmp_path):
    of_sigterm = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Crash):
        fit(compiled(), tmp_path, crash=2, **RARELY)
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) == of_sigterm
    assert Snapshots(tmp_path).last_step() == 0


@pytest.mark.full
def test_other_threads_leave_signals_alone(tmp_path):
    seen = []
    before = signal.getsignal(signal.SIGTERM)
    look = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda *_: seen.append(signal.getsignal(signal.SIGTERM))
    )
    thread = threading.Thread(
        target=fit, args=(compiled(), tmp_path, [look]), kwargs={"epochs": 1}
    )
    thread.start()
    thread.join()
    assert seen == [before] and Snapshots(tmp_path).last_step() == 4

"""State of callbacks, for resuming training in another process."""

import copy
import os
import warnings
from pathlib import Path
from typing import Protocol, runtime_checkable

import keras

from keras_vanilla._atomic_write import sync_file

# Public attributes in which Keras's callbacks keep state between epochs.
_STATE = {
    keras.callbacks.EarlyStopping: (
        "wait",
        "best",
        "best_epoch",
        "best_weights",
        "stopped_epoch",
    ),
    keras.callbacks.ModelCheckpoint: ("best",),
    keras.callbacks.ReduceLROnPlateau: ("wait", "best", "cooldown_counter"),
}

# Callbacks that need no state from previous epochs.
_STATELESS = (
    keras.callbacks.CSVLogger,  # see `get_state`
    keras.callbacks.History,
    keras.callbacks.LambdaCallback,
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ProgbarLogger,
    keras.callbacks.RemoteMonitor,
    keras.callbacks.TensorBoard,
    keras.callbacks.TerminateOnNaN,
)

# Callbacks that cannot be resumed exactly, and what to do instead.
_REFUSED = {
    keras.callbacks.BackupAndRestore: "`ExactResume` does its work",
    keras.callbacks.OrbaxCheckpoint: "use `ModelCheckpoint`",
    keras.callbacks.SwapEMAWeights: "use `AverageCheckpoints`",
    keras.callbacks.CallbackList: "give the callbacks in it",
}
# Settings with which they count batches in private, unless they are "epoch".
_FREQUENCIES = {
    keras.callbacks.ModelCheckpoint: "save_freq",
    keras.callbacks.TensorBoard: "update_freq",
}


@runtime_checkable
class Stateful(Protocol):
    """A callback that brings its own state."""

    def get_state(self) -> dict:
        """Returns the state, which is saved in snapshots."""

    def set_state(self, state: dict) -> None:
        """Restores what `get_state` returned."""


def check_callbacks(callbacks: list[keras.callbacks.Callback]) -> None:
    """Refuses callbacks that cannot be resumed, and warns about unreadable state.

    Raises:
        ValueError: if Keras has such a callback.
    """
    plain, unreadable = vars(keras.callbacks.Callback()).keys(), []
    for each in callbacks:
        kind = type(each)
        for refused, remedy in _REFUSED.items():
            if isinstance(each, refused):
                raise ValueError(
                    f"`ExactResume` cannot resume a {kind.__name__}: {remedy}."
                )
        name = _FREQUENCIES.get(kind)
        if name and (value := getattr(each, name)) != "epoch":
            raise ValueError(
                f"`ExactResume` cannot resume a {kind.__name__} unless `{name}` is "
                f"'epoch'. Received: {name}={value!r}"
            )
        is_known = isinstance(each, (Stateful, *_STATE, *_STATELESS))
        if not is_known and vars(each).keys() - plain:
            unreadable.append(kind.__name__)
    if unreadable:
        warnings.warn(
            f"What {', '.join(unreadable)} remembers is not in the snapshots: give it "
            "the methods `get_state()` and `set_state(state)` if a resumed training "
            "needs it; if there is nothing to remember, let `get_state` return {}.",
            stacklevel=3,
        )


def get_state(callback: keras.callbacks.Callback) -> dict:
    """Returns a copy of the state of a callback.

    This is the result of its method `get_state`, the known attributes of a Keras
    callback, or the file size of a `CSVLogger`; for other callbacks it is empty.
    """
    if isinstance(callback, Stateful):
        return copy.deepcopy(callback.get_state())
    if isinstance(callback, keras.callbacks.CSVLogger):
        try:
            sync_file(callback.filename)
            return {"size": os.path.getsize(callback.filename)}
        except OSError as error:
            warnings.warn(
                f"{callback.filename} is not part of the snapshot: {error}. The "
                "training continues.",
                stacklevel=2,
            )
            return {"size": None}
    return {
        name: copy.deepcopy(getattr(callback, name))
        for kind, names in _STATE.items()
        if isinstance(callback, kind)
        for name in names
    }


def set_state(callback: keras.callbacks.Callback, state: dict) -> None:
    """Restores the state of a callback, after its `on_train_begin`."""
    if isinstance(callback, Stateful):
        callback.set_state(state)
    elif not isinstance(callback, keras.callbacks.CSVLogger):
        vars(callback).update(state)


def rewind(callback: keras.callbacks.Callback, state: dict) -> None:
    """Truncates a log to its size at the snapshot, before `on_train_begin` opens it."""
    if not isinstance(callback, keras.callbacks.CSVLogger):
        return
    callback.append = True
    if state["size"] is None:
        return
    path = Path(callback.filename)
    size = path.stat().st_size if path.exists() else 0
    if size > state["size"]:
        os.truncate(path, state["size"])
    elif size < state["size"]:
        warnings.warn(
            f"{path} has lost lines since the last snapshot: it had "
            f"{state['size']} bytes and has {size}.",
            stacklevel=2,
        )

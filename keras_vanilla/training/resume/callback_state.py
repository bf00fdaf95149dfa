"""State of callbacks, for resuming training in another process."""

import copy
import os
import warnings
from typing import Any, Protocol, runtime_checkable

import keras

from keras_vanilla._atomic_write import sync_file
from keras_vanilla._checks import check_list

# Public attributes in which Keras's callbacks keep state between epochs; those that are
# neither here nor refused need none. A `CSVLogger` has the size of its file.
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
_REFUSED = (
    keras.callbacks.BackupAndRestore,
    keras.callbacks.OrbaxCheckpoint,
    keras.callbacks.SwapEMAWeights,
    keras.callbacks.CallbackList,
)
# Callbacks that count batches in private, unless this setting is "epoch".
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
        """Restores what `get_state` returned, once or twice before the first batch."""


def checked_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    """Returns callbacks that can be resumed; warns about those of unknown state.

    Args:
        callbacks: list or tuple of callbacks.
    Raises:
        TypeError: if it is not one, or has something else in it.
        ValueError: if Keras has such a callback, and it cannot be resumed.
    """
    callbacks = check_list("callbacks", callbacks, "Keras callbacks")
    for each in callbacks:
        name = type(each).__name__
        if not isinstance(each, keras.callbacks.Callback):
            raise TypeError(
                "`callbacks` must be a list of Keras callbacks. Received: "
                f"{each!r:.80} in it"
            )
        if isinstance(each, _REFUSED):
            raise ValueError(
                f"`ExactResume` cannot resume a {name}, whose state is private."
            )
        if isinstance(each, Stateful):
            continue
        for counting, setting in _FREQUENCIES.items():
            value = getattr(each, setting, "epoch")
            if isinstance(each, counting) and value != "epoch":
                raise ValueError(
                    f"`ExactResume` cannot resume a {name} unless `{setting}` is "
                    f"'epoch'. Received: {setting}={value!r}"
                )
        if not type(each).__module__.startswith("keras."):
            warnings.warn(
                f"What {name} remembers is not in the snapshots: give it the methods "
                "`get_state()`, which may return {}, and `set_state(state)`.",
                stacklevel=3,
            )
    return callbacks


def get_state(callback: keras.callbacks.Callback) -> dict:
    """The state of a callback: its own, and that of its base class in Keras."""
    is_log = isinstance(callback, keras.callbacks.CSVLogger)
    return {
        "own": callback.get_state() if isinstance(callback, Stateful) else None,
        "size": _synced_size(callback.filename) if is_log else None,
        "attributes": {
            name: getattr(callback, name)
            for kind, names in _STATE.items()
            if isinstance(callback, kind)
            for name in names
        },
    }


def set_state(callback: keras.callbacks.Callback, state: dict) -> None:
    """Restores the result of `get_state`, after `on_train_begin`."""
    state = copy.deepcopy(state)
    vars(callback).update(state["attributes"])
    if isinstance(callback, Stateful):
        callback.set_state(state["own"])


def rewind(callback: keras.callbacks.Callback, state: dict) -> None:
    """Truncates a log to its size at the snapshot, before `on_train_begin` opens it."""
    if not isinstance(callback, keras.callbacks.CSVLogger):
        return
    callback.append = True
    size, path = state["size"], callback.filename
    if size is not None and os.path.exists(path) and os.path.getsize(path) > size:
        os.truncate(path, size)


def _synced_size(log):
    """The size of a log that is on the disk; None if it was removed."""
    if not os.path.exists(log):
        return None
    sync_file(log)
    return os.path.getsize(log)

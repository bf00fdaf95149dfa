"""State of callbacks, for resuming training in another process."""

import copy
import os
import warnings
from pathlib import Path

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

# Callbacks that cannot be resumed exactly, and what to do instead; by name, because not
# every version of Keras has all of them.
_REFUSED = {
    "BackupAndRestore": "`ExactResume` does its work",
    "OrbaxCheckpoint": "use `ModelCheckpoint`",
    "SwapEMAWeights": "use `AverageCheckpoints`",
    "CallbackList": "give the callbacks in it",
}


def refuse_unsupported(callbacks: list[keras.callbacks.Callback]) -> None:
    """Refuses Keras callbacks that cannot be resumed.

    Raises:
        ValueError: if there is such a callback.
    """
    for each in callbacks:
        for name, remedy in _REFUSED.items():
            if isinstance(each, getattr(keras.callbacks, name, ())):
                raise ValueError(
                    f"`ExactResume` cannot resume a {type(each).__name__}: {remedy}."
                )
        for name in ("save_freq", "update_freq"):  # these use private batch counters
            if getattr(each, name, "epoch") != "epoch" and type(each) in _COUNTING:
                raise ValueError(
                    f"`ExactResume` cannot resume a {type(each).__name__} unless "
                    f"`{name}` is 'epoch'. Received: {name}={getattr(each, name)!r}"
                )


_COUNTING = (keras.callbacks.ModelCheckpoint, keras.callbacks.TensorBoard)


def warn_of_unreadable(callbacks: list[keras.callbacks.Callback]) -> None:
    """Warns about custom callbacks with state that `get_state` cannot read."""
    plain = set(vars(keras.callbacks.Callback()))
    names = [
        type(each).__name__
        for each in callbacks
        if not hasattr(each, "get_state")
        and not isinstance(each, (*_STATE, *_STATELESS))
        and set(vars(each)) - plain
    ]
    if names:
        warnings.warn(
            f"What {', '.join(names)} remembers is not in the snapshots: give it the "
            "methods `get_state()` and `set_state(state)` if a resumed training needs "
            "it; if there is nothing to remember, let `get_state` return {}.",
            stacklevel=3,
        )


def get_state(callback: keras.callbacks.Callback) -> dict:
    """Returns a copy of the state of a callback.

    This is the result of its method `get_state`, the known attributes of a Keras
    callback, or the file size of a `CSVLogger`; for other callbacks it is empty.
    """
    if hasattr(callback, "get_state"):
        return copy.deepcopy(callback.get_state())
    if isinstance(callback, keras.callbacks.CSVLogger):
        return {"size": _size_on_disk(callback)}
    return {
        name: copy.deepcopy(getattr(callback, name))
        for kind, names in _STATE.items()
        if isinstance(callback, kind)
        for name in names
    }


def _size_on_disk(logger):
    """The size of a log after writing it to disk; None if it is unknown."""
    try:
        sync_file(logger.filename)
        return os.path.getsize(logger.filename)
    except OSError as error:
        warnings.warn(
            f"{logger.filename} is not part of the snapshot: {error}. The training "
            "continues.",
            stacklevel=2,
        )
        return None


def set_state(callback: keras.callbacks.Callback, state: dict) -> None:
    """Restores the state of a callback, after its `on_train_begin`."""
    if hasattr(callback, "set_state"):
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

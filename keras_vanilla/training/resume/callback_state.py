"""What a callback has to remember when a training is resumed in another process."""

import copy
import os
import warnings
from pathlib import Path

import keras

from keras_vanilla._atomic_write import sync_file

# What Keras's callbacks keep in public attributes from one epoch to the next.
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

# Those that need nothing from the epochs before.
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

# Those that cannot be part of an exact resume, and what to do instead; by name, because
# not every version of Keras has all of them.
_REFUSED = {
    "BackupAndRestore": "`ExactResume` does its work",
    "OrbaxCheckpoint": "use `ModelCheckpoint`",
    "SwapEMAWeights": "use `AverageCheckpoints`",
    "CallbackList": "give the callbacks in it",
}


def refuse_unsupported(callbacks: list[keras.callbacks.Callback]) -> None:
    """Refuses callbacks of Keras that cannot continue where they were.

    Raises:
        ValueError: if there is one.
    """
    for each in callbacks:
        for name, remedy in _REFUSED.items():
            if isinstance(each, getattr(keras.callbacks, name, ())):
                raise ValueError(
                    f"`ExactResume` cannot resume a {type(each).__name__}: {remedy}."
                )
        for name in ("save_freq", "update_freq"):  # they count batches in private
            if getattr(each, name, "epoch") != "epoch" and type(each) in _COUNTING:
                raise ValueError(
                    f"`ExactResume` cannot resume a {type(each).__name__} unless "
                    f"`{name}` is 'epoch'. Received: {name}={getattr(each, name)!r}"
                )


_COUNTING = (keras.callbacks.ModelCheckpoint, keras.callbacks.TensorBoard)


def warn_of_unreadable(callbacks: list[keras.callbacks.Callback]) -> None:
    """Warns of callbacks with values of their own that `get_state` cannot read."""
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
    """What the callback's own `get_state` returns, or what is known of Keras's.

    It is a copy. Of a `CSVLogger` it is the size of its file. Of any other callback:
    nothing.
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
    """The size of a log whose bytes are on disk; None if that cannot be told."""
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
    """Gives the callback its state back, after its `on_train_begin`."""
    if hasattr(callback, "set_state"):
        callback.set_state(state)
    elif not isinstance(callback, keras.callbacks.CSVLogger):
        vars(callback).update(state)


def rewind(callback: keras.callbacks.Callback, state: dict) -> None:
    """Cuts a log to its length at the snapshot, before `on_train_begin` opens it."""
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

"""What a callback has to remember when a training is resumed in another process."""

import os
import warnings
from pathlib import Path

import keras

from keras_vanilla._atomic_write import sync_file
from keras_vanilla.distribution import keras_internals

# What Keras's own callbacks keep from one epoch to the next.
_OF_KERAS = {
    keras.callbacks.EarlyStopping: (
        "wait",
        "best",
        "best_epoch",
        "best_weights",
        "stopped_epoch",
    ),
    keras.callbacks.ModelCheckpoint: keras_internals.STATE_OF_MODEL_CHECKPOINT,
    keras.callbacks.ReduceLROnPlateau: ("wait", "best", "cooldown_counter"),
}

# Keras's callbacks that need nothing from the epochs before.
_STATELESS = (
    keras.callbacks.CSVLogger,  # see `get_state`
    keras.callbacks.History,
    keras.callbacks.LambdaCallback,
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ProgbarLogger,
    keras.callbacks.TensorBoard,
    keras.callbacks.TerminateOnNaN,
)


def warn_of_unreadable(callbacks: list[keras.callbacks.Callback]) -> None:
    """Warns of callbacks with values of their own that `get_state` cannot read."""
    plain = set(vars(keras.callbacks.Callback()))
    names = [
        type(each).__name__
        for each in callbacks
        if not hasattr(each, "get_state")
        and not isinstance(each, (*_OF_KERAS, *_STATELESS))
        and set(vars(each)) - plain
    ]
    if names:
        warnings.warn(
            f"What {', '.join(names)} remembers is not in the snapshots: give it the "
            "methods `get_state()` and `set_state(state)` if a resumed training needs "
            "it.",
            stacklevel=3,
        )


def get_state(callback: keras.callbacks.Callback) -> dict:
    """What the callback's own `get_state` returns, or what is known of Keras's.

    Of a `CSVLogger` that is the size of its file. Of any other callback: nothing.
    """
    if hasattr(callback, "get_state"):
        return callback.get_state()
    if isinstance(callback, keras.callbacks.CSVLogger):
        sync_file(callback.filename)
        return {"size": os.path.getsize(callback.filename)}
    return {
        name: getattr(callback, name)
        for kind, names in _OF_KERAS.items()
        if isinstance(callback, kind)
        for name in names
    }


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

"""State of callbacks, for resuming training in another process."""

import copy
import dis
import inspect
import itertools
import os
import warnings
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import keras

from keras_vanilla._atomic_write import sync_file
from keras_vanilla._checks import check_list
from keras_vanilla.training.resume.snapshots import pack, unpack

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
        """Restores what `get_state` returned, once or twice before the first batch."""


def checked_callbacks(callbacks: Any) -> list[keras.callbacks.Callback]:
    """Returns callbacks that can be resumed; warns about unreadable state.

    Args:
        callbacks: list or tuple of callbacks.
    Raises:
        TypeError: if it is not one, or has something else in it.
        ValueError: if Keras has such a callback, and it cannot be resumed.
    """
    callbacks = check_list("callbacks", callbacks, "Keras callbacks")
    unreadable = []
    for each in callbacks:
        kind = type(each)
        for refused, remedy in _REFUSED.items():
            if isinstance(each, refused):
                raise ValueError(
                    f"`ExactResume` cannot resume a {kind.__name__}: {remedy}."
                )
        if not isinstance(each, keras.callbacks.Callback):
            raise TypeError(
                "`callbacks` must be a list of Keras callbacks. Received: "
                f"{each!r:.80} in it"
            )
        if isinstance(each, Stateful):
            continue
        for counting, name in _FREQUENCIES.items():
            if isinstance(each, counting) and (value := getattr(each, name)) != "epoch":
                raise ValueError(
                    f"`ExactResume` cannot resume a {kind.__name__} unless `{name}` is "
                    f"'epoch'. Received: {name}={value!r}"
                )
        is_known = isinstance(each, tuple(_STATE)) or _is_of_keras(kind)
        if not is_known and vars(each).keys() - _attributes_set_by_keras(kind):
            unreadable.append(kind.__name__)
    if unreadable:
        warnings.warn(
            f"What {', '.join(unreadable)} remembers is not in the snapshots: give it "
            "the methods `get_state()` and `set_state(state)` if a resumed training "
            "needs it; if there is nothing to remember, let `get_state` return {}.",
            stacklevel=3,
        )
    return callbacks


def _is_of_keras(kind):
    return kind.__module__.startswith("keras.")


def _attributes_set_by_keras(kind):
    """Names of the attributes that a subclass has from its base classes in Keras."""
    methods = [
        method
        for base in filter(_is_of_keras, kind.__mro__)
        for method in vars(base).values()
        if inspect.isfunction(method)
    ]
    instructions = itertools.chain(*map(dis.get_instructions, methods))
    return {each.argval for each in instructions if each.opname == "STORE_ATTR"}


def get_state(callback: keras.callbacks.Callback) -> list:
    """Returns a packed copy of the state of a callback.

    This is the result of its method `get_state`, the known attributes of a Keras
    callback, or the file size of a `CSVLogger`; for other callbacks it is empty.

    Raises:
        TypeError: if a snapshot cannot hold it.
    """
    if isinstance(callback, Stateful):
        state = callback.get_state()
    elif isinstance(callback, keras.callbacks.CSVLogger):
        state = {"size": _synced_size(callback.filename)}
    else:
        state = {
            name: getattr(callback, name)
            for kind, names in _STATE.items()
            if isinstance(callback, kind)
            for name in names
        }
    try:
        return pack(state)
    except TypeError as error:
        raise TypeError(
            f"Each value in the state of {type(callback).__name__} must be a {error}"
        ) from None


def set_state(callback: keras.callbacks.Callback, packed: list) -> None:
    """Restores the result of `get_state`, after `on_train_begin`."""
    if isinstance(callback, Stateful):
        callback.set_state(copy.deepcopy(unpack(packed)))
    elif not isinstance(callback, keras.callbacks.CSVLogger):
        vars(callback).update(copy.deepcopy(unpack(packed)))


def rewind(callback: keras.callbacks.Callback, packed: list) -> None:
    """Truncates a log to its size at the snapshot, before `on_train_begin` opens it."""
    if not isinstance(callback, keras.callbacks.CSVLogger):
        return
    callback.append = True
    before, path = unpack(packed)["size"], Path(callback.filename)
    if before is None:
        return
    size = path.stat().st_size if path.exists() else 0
    if size > before:
        os.truncate(path, before)
    elif size < before:
        warnings.warn(
            f"{path} has lost lines since the last snapshot: it had {before} bytes and "
            f"has {size}.",
            stacklevel=2,
        )


def _synced_size(log):
    """The size of a log that is on the disk; None, with a warning, if it is gone."""
    try:
        sync_file(log)
        return os.path.getsize(log)
    except OSError as error:
        warnings.warn(
            f"{log} is not part of the snapshot: {error}. The training continues.",
            stacklevel=3,
        )
        return None

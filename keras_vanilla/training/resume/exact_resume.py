"""Resuming a training that was killed, bit for bit."""

import time
import warnings
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from keras_vanilla._checks import check_integer
from keras_vanilla._types import PathLike
from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.agreement import mean_over_processes
from keras_vanilla.training.resume import callback_state, model_state
from keras_vanilla.training.resume.diverged import Diverged
from keras_vanilla.training.resume.rewindable_data import RewindableData
from keras_vanilla.training.resume.skipped_batches import SkippedBatches
from keras_vanilla.training.resume.snapshots import Snapshots

SECONDS_BETWEEN = 300
STEPS_BETWEEN = 500  # of several processes, whose clocks do not agree


class ExactResume(keras.callbacks.CallbackList):
    """Takes snapshots of a training, and resumes it from the last one.

    A run that was killed at any instant and is started again with the same code ends
    with the same weights, logs and history, bit for bit, as a run that was not killed.
    A snapshot holds the weights, the optimizer, the seeds of dropout, the metrics, the
    history, the position in the data and the state of `callbacks`. One is taken before
    the first step, then at intervals, and after each epoch. Batches of an epoch that
    were trained on before are passed over.

    `batches` and their `map` give the same batches again; other data must have one
    order for every epoch, and are refused if their first batch changes. Give `fit`
    `shuffle=False`. On TensorFlow, `fit` makes all operations of the process
    deterministic from then on. If several processes train one model, the first one
    writes, into a folder that all of them can read. On another number of devices a
    training is resumed too, but its result is equal only up to rounding. A training
    that a callback has stopped early stays stopped. While `fit` runs, no other process
    can write into the folder.

    Args:
        folder: path of the snapshots.
        data: what `fit` is given: `Batches`, or data that give the same batches in each
            epoch.
        callbacks: those to resume too: Keras's `CSVLogger`, `EarlyStopping`,
            `ModelCheckpoint` and `ReduceLROnPlateau`, `AverageCheckpoints`, and any
            that has the methods `get_state()` and `set_state(state)`; a warning names
            others that remember something. They are called from here, before a snapshot
            is taken: do not give them to `fit` as well.
        every: int. Steps between snapshots; None means five minutes, and 500 steps
            where several processes train one model.
    Raises:
        ValueError: if `every` is below 1, or the data cannot be rewound; in `fit`, if
            it is not in a list, `fit` has other `Batches`, an epoch is not one pass
            over the data, the snapshots are of another model, optimizer, data,
            callbacks or version, none of them can be read, or processes see different
            ones.
        FolderInUse: in `fit`, if another process writes into the folder.
        Diverged: in `fit`, if the loss or a weight is not a number.
        OSError: in `fit`, if the first snapshot cannot be written. A later one that
            cannot be is reported in a warning, and the training continues.
    Example:
        resume = ExactResume("run", train, callbacks=[AverageCheckpoints()])
        model.fit(train, epochs=10, callbacks=[resume], shuffle=False)
    """

    def __init__(
        self,
        folder: PathLike,
        data: Any,
        callbacks: Iterable[keras.callbacks.Callback] = (),
        every: int | None = None,
    ):
        super().__init__(list(callbacks))
        self._every = None if every is None else check_integer("every", every, 1)
        self._snapshots = Snapshots(folder)
        self._data = RewindableData(data)
        callback_state.warn_of_unreadable(self.callbacks)

    def refuse_other_batches(self, data: Any) -> None:
        """Refuses other `Batches` than this one resumes; `Transformer.fit` calls it.

        Args:
            data: what `fit` is given.
        Raises:
            ValueError: if both are `Batches`, and not the same object.
        """
        self._data.refuse_other_batches(data)

    def on_train_begin(self, logs=None):
        if keras_internals.model_of(self) is None:
            raise ValueError("`fit` takes a list of callbacks: callbacks=[resume].")
        _make_operations_deterministic()
        self._data.check_epoch(self.params["steps"])
        keras_internals.build_metrics_and_optimizer(self.model, self._data.batches())
        keras_internals.set_initial_epoch(self.model, None)  # of a stopped `fit`
        self._replicas = model_state.replicas_of(self.model)
        self._identity = self._identify()
        if self._replicas.first == 0:
            self._snapshots.hold()
        self._snapshot = self._newest_snapshot()
        self._step, self._skipped, self._last_saved = 0, SkippedBatches(), None
        self._history = {"epoch": [], "values": {}}
        if self._snapshot:
            for callback, state in self._states():
                callback_state.rewind(callback, state)
        super().on_train_begin(logs)
        if self._snapshot:
            self._restore()

    def on_epoch_begin(self, epoch, logs=None):
        keras_internals.set_initial_epoch(self.model, None)  # Keras has read it
        if self._snapshot:
            self._restore_within_epoch()
            self._snapshot = None
        elif self._last_saved is None:
            self._offset = self._data.first_step() - self._place(epoch, 0, offset=0)
            self._save(epoch, 0)
        self._epoch = epoch
        super().on_epoch_begin(epoch, logs)

    def on_train_batch_begin(self, batch, logs=None):
        if not self._skipped:
            super().on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        if self._skipped:
            self._skipped.count_call()
            return
        self._step += self.model.steps_per_execution
        super().on_train_batch_end(batch, logs)
        if not np.isfinite(logs["loss"]):
            raise self._diverged("The loss", self._epoch, batch)
        if self._is_time():
            self._save(self._epoch, batch + 1, logs)

    def on_epoch_end(self, epoch, logs=None):
        for callback in self.callbacks:  # Keras's list would give each one a copy
            callback.on_epoch_end(epoch, logs)
        self._history["epoch"].append(epoch)
        for name, value in logs.items():
            self._history["values"].setdefault(name, []).append(value)
        self._save(epoch + 1, 0)

    def on_train_end(self, logs=None):
        if self._snapshot:  # there was nothing left to train
            self._set_history()
        super().on_train_end(logs)
        self._snapshots.release()

    def _is_time(self):
        if self._every is None and not self._replicas.in_other_processes:
            return time.monotonic() - self._last_saved > SECONDS_BETWEEN
        return self._step % (self._every or STEPS_BETWEEN) == 0

    def _save(self, epoch, batch, logs=None):
        """Takes a snapshot: `batch` batches of `epoch` are trained on."""
        values = model_state.values(self.model)
        for value in values:
            if value.dtype.kind not in "iub" and not np.isfinite(value).all():
                raise self._diverged("A weight", epoch, batch - 1)
        if self._replicas.first == 0:
            snapshot = {
                **self._identity,
                "variables": values,
                "epoch": epoch,
                "batch": batch,
                "step": self._step,
                "random": model_state.random_state(),
                "offset": self._offset,
                "logs": logs,
                "stopped": self.model.stop_training,
                "history": self._history,
                "states": [callback_state.get_state(each) for each in self.callbacks],
            }
            self._write(snapshot)
        self._last_saved = time.monotonic()

    def _write(self, snapshot):
        try:
            self._snapshots.save(self._step, snapshot)
        except OSError as error:
            if self._last_saved is None:
                raise
            warnings.warn(
                f"No snapshot after step {self._step:,}: {error}. The training "
                "continues; if it is killed, it resumes from the last snapshot.",
                stacklevel=2,
            )

    def _identify(self) -> dict[str, Any]:
        """What must be the same when the training is resumed."""
        return {
            "callbacks": [type(each).__name__ for each in self.callbacks],
            "steps": self.params["steps"],
            "data": self._data.digest,
            "optimizer": model_state.unchanging_settings(self.model.optimizer),
        }

    def _newest_snapshot(self):
        """The state to resume from, or None; every process must find the same."""
        snapshot = self._snapshots.newest()
        step = snapshot["step"] if snapshot else -1
        if self._replicas.in_other_processes:
            if mean_over_processes(self.model, step) != step:
                raise ValueError(
                    f"This process would resume after step {step}, others after "
                    f"another: {self._snapshots.folder} must be a folder that all of "
                    "them can read."
                )
        if snapshot:
            self._refuse_other_training(snapshot)
        return snapshot

    def _refuse_other_training(self, snapshot):
        if not self._identity.keys() <= snapshot.keys():
            raise ValueError(
                f"The snapshots in {self._snapshots.folder} were taken by an earlier "
                "version of keras_vanilla: delete the folder to start again."
            )
        shapes = model_state.shapes(self.model)
        if shapes != [value.shape for value in snapshot["variables"]]:
            raise ValueError(
                f"The snapshots in {self._snapshots.folder} are of another model: its "
                f"{len(snapshot['variables'])} variables have other shapes than the "
                f"{len(shapes)} of this one."
            )
        for name, value in self._identity.items():
            if snapshot[name] != value:
                raise ValueError(
                    f"The snapshots in {self._snapshots.folder} were taken with "
                    f"{name}={snapshot[name]}. Received: {value}"
                )

    def _states(self):
        return zip(self.callbacks, self._snapshot["states"], strict=True)

    def _restore(self):
        """Everything but what Keras resets when an epoch begins."""
        snapshot = self._snapshot
        model_state.restore(self.model, snapshot["variables"])
        for callback, state in self._states():
            callback_state.set_state(callback, state)
        self._step, self._history = snapshot["step"], snapshot["history"]
        self._offset = snapshot["offset"]
        self._last_saved = time.monotonic()
        stopped = snapshot["stopped"]  # by `EarlyStopping`, and stays so
        epoch = self.params["epochs"] if stopped else snapshot["epoch"]
        keras_internals.set_initial_epoch(self.model, epoch)
        self._skipped = SkippedBatches(
            snapshot["batch"], self.model.steps_per_execution, snapshot["random"]
        )
        read = not self._data.seekable
        self._skipped.skip_in(self.model, snapshot["logs"], read)
        # PyTorch's `fit` has read a batch before it is passed over.
        batch = 0 if keras.backend.backend() == "torch" else snapshot["batch"]
        self._data.start_at(self._place(snapshot["epoch"], batch, self._offset))

    def _restore_within_epoch(self):
        self._set_history()
        if not self._snapshot["batch"]:
            model_state.restore_random_state(self._snapshot["random"])
            return  # metrics in the snapshot are of the epoch before
        model_state.restore_metrics(self.model, self._snapshot["variables"])

    def _set_history(self):
        """Keras's own `History` begins anew with every `fit`."""
        history = self.model.history
        history.epoch = list(self._history["epoch"])
        history.history = {
            name: list(values) for name, values in self._history["values"].items()
        }

    def _place(self, epoch, batch, offset):
        """The step of the data, which may have begun anywhere."""
        return offset + epoch * (self.params["steps"] or 0) + batch

    def _diverged(self, what, epoch, batch):
        place = self._place(epoch, batch, self._offset)
        lines = self._data.line_numbers(place) if batch >= 0 else []
        paths = self._snapshots.paths()
        return Diverged(what, self._step, lines, paths[-1] if paths else None)


def _make_operations_deterministic():
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()

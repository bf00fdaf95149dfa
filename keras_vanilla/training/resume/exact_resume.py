"""Resuming a training that was killed, bit for bit."""

import contextlib
import copy
import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import keras
import numpy as np

from keras_vanilla._checks import check_integer
from keras_vanilla._types import PathLike
from keras_vanilla.distribution import keras_internals
from keras_vanilla.training.resume import (
    callback_state,
    last_snapshot,
    model_state,
)
from keras_vanilla.training.resume.diverged import Diverged
from keras_vanilla.training.resume.identity import (
    check_changeable,
    identity_of,
    learning_rates,
)
from keras_vanilla.training.resume.rewindable_data import RewindableData
from keras_vanilla.training.resume.running_fit import RunningFit
from keras_vanilla.training.resume.skipped_batches import SkippedBatches
from keras_vanilla.training.resume.snapshot_writer import SnapshotWriter
from keras_vanilla.training.resume.snapshots import Snapshots
from keras_vanilla.training.resume.stop_signals import StopSignals


class ExactResume(keras.callbacks.CallbackList):
    """Takes snapshots of a training, and resumes it from the last one.

    A run that was killed at any instant and is started again with the same code ends
    with the same weights, logs and history, bit for bit, as a run that was not killed.
    A snapshot holds the weights, the optimizer, the seeds of dropout, the metrics, the
    history, the position in the data and the state of `callbacks`. One is taken before
    the first step, then at intervals, after each epoch, and on Ctrl-C or SIGTERM before
    they end the training. Batches of an epoch that were trained on before are passed
    over. What is resumed is printed in one line, unless `fit` has `verbose=0`.

    `batches` and their `map` give the same batches again; other data must have one
    order for every epoch, and are refused if their first batch changes. Give `fit`
    `shuffle=False`. If several processes train one model, the first one writes, into a
    folder that all of them can read, and signals have their usual effect. On another
    number of devices a training is resumed too, but its result is equal only up to
    rounding.

    Snapshots of a training with anything else than this one's are refused by the name
    of what differs. A finished training is restored, and nothing is trained; more
    `epochs` continue it if `allow_changed` has them, and `SwapEMAWeights` has not
    replaced its last weights. One that a callback has stopped early stays stopped, as
    it would have been with more epochs from the beginning.

    While `fit` runs, no other process can write into the folder, and TensorFlow's
    operations are deterministic. When it ends, all is as before, and the data begin
    where they began; of an error of which Keras tells no callback, and of a model that
    is not a `Transformer`, when the next `fit` begins.

    Args:
        folder: path of the snapshots.
        data: what `fit` is given: `Batches`, or data that give the same batches in each
            epoch.
        callbacks: those to resume too: all of Keras's but `BackupAndRestore` and
            `OrbaxCheckpoint`, `AverageCheckpoints`, and any that has the methods
            `get_state()` and `set_state(state)`; a warning names others that remember
            something. They are called from here, before a snapshot is taken: do not
            give them to `fit` as well.
        every: int. Steps between snapshots; None means five minutes, and 500 steps
            where several processes train one model.
        allow_changed: names of what may differ from the snapshots, from which the
            training then continues with the new: "epochs", "loss", "metrics" (those of
            the running epoch begin anew), "micro_batches", "model", "optimizer" (also
            its learning rate), "versions".
    Raises:
        ValueError: if `every` is below 1, `allow_changed` has another name, a callback
            cannot be resumed, or the data cannot be rewound; in `fit`, if it is not in
            a list, `fit` has other `Batches`, an epoch is not one pass over the data in
            whole calls of `steps_per_execution`, the snapshots are of another training,
            none of them can be read, or processes see different ones.
        FolderInUse: in `fit`, if another process writes into the folder.
        Diverged: in `fit`, if the loss or a weight is not a number.
        RuntimeError: in `fit`, if Keras does not begin at the snapshot's epoch.
        OSError: in `fit`, if a snapshot cannot be read, or the first one cannot be
            written. A later one that cannot be is reported in a warning, and the
            training continues.
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
        allow_changed: Collection[str] = (),
    ):
        super().__init__(list(callbacks))
        self._every = None if every is None else check_integer("every", every, 1)
        self._allowed = check_changeable(allow_changed)
        callback_state.refuse_unsupported(self.callbacks)
        self._snapshots = Snapshots(folder)
        self._data = RewindableData(data)
        self._fit = None
        callback_state.warn_of_unreadable(self.callbacks)

    @contextlib.contextmanager
    def during_fit(self, data: Any) -> Iterator[None]:
        """Ends what a `fit` has changed however it ends; `Transformer.fit` calls it.

        Args:
            data: what `fit` is given.
        Raises:
            ValueError: if these are `Batches`, and not those that this one resumes.
        """
        self._data.refuse_other_batches(data)
        try:
            yield
        finally:
            self._end()

    def on_train_begin(self, logs=None):
        if keras_internals.model_of(self) is None:
            raise ValueError("`fit` takes a list of callbacks: callbacks=[resume].")
        self._fit = RunningFit(self.model, sys._getframe())
        with self._ended_by_errors():
            self._prepare(self._fit.undo)
            if self._snapshot:
                for callback, state in self._states():
                    callback_state.rewind(callback, state)
            super().on_train_begin(logs)
            if self._snapshot:
                self._restore()
            if not self._replicas.in_other_processes:
                self._fit.undo.callback(self._signals.remove)
                self._signals.install()

    def on_epoch_begin(self, epoch, logs=None):
        keras_internals.set_initial_epoch(self.model, None)  # Keras has read it
        with self._ended_by_errors():
            self._signals.delayed = True
            if self._snapshot:
                self._check_epoch(epoch)
                self._restore_within_epoch()
                self._snapshot = None
            elif self._writer.last_step is None:
                self._offset = self._data.first_step() - self._place(epoch, 0, offset=0)
                self._save(epoch, 0)
            self._epoch = epoch
            super().on_epoch_begin(epoch, logs)
            self._signals.let_through()

    def on_train_batch_begin(self, batch, logs=None):
        if not self._skipped:
            super().on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        if self._skipped:
            self._skipped.count_call()
            return
        with self._ended_by_errors():
            self._signals.delayed = True
            self._step += self.model.steps_per_execution
            super().on_train_batch_end(batch, logs)
            if not np.isfinite(logs["loss"]):
                raise self._diverged("The loss", self._epoch, batch)
            if self._writer.is_time(self._step) or self._signals.arrived:
                self._save(self._epoch, batch + 1, logs)
            elif batch + 1 == self.params["steps"] and self._signals.installed:
                # For a stop in the validation, which changes metrics and callbacks.
                self._writer.keep(self._state(self._epoch, batch + 1, logs))
            if self._writer.has(self._step):
                self._signals.let_through()

    def on_epoch_end(self, epoch, logs=None):
        with self._ended_by_errors():
            for callback in self.callbacks:  # Keras's list would give each one a copy
                callback.on_epoch_end(epoch, logs)
            self._signals.delayed = True
            self._history["epochs"].append(epoch)
            for name, value in logs.items():
                self._history["values"].setdefault(name, []).append(value)
            self._save(epoch + 1, 0)
            self._signals.let_through()

    def on_train_end(self, logs=None):
        with self._ended_by_errors():
            if self._snapshot:  # there was nothing left to train
                model_state.set_history(self.model, **self._history)
            elif self.model.stop_training and not self._stopped:  # since the snapshot
                self._save(self._epoch + 1, 0)
            self._signals.delayed = True
            self._writer.finish()
            self._signals.let_through()
            super().on_train_end(logs)
        self._end()

    def _prepare(self, undo):
        """Everything before the first callback; `undo` gets how to undo it."""
        undo.enter_context(keras_internals.deterministic_operations())
        undo.callback(self._data.start_at, self._data.first_step())
        undo.callback(keras_internals.set_initial_epoch, self.model, None)
        keras_internals.set_initial_epoch(self.model, None)  # of a stopped `fit`
        self._data.check_epoch(self.params["steps"], self.model.steps_per_execution)
        model_state.build(self.model, self._data.batches())
        self._replicas = model_state.replicas_of(self.model)
        in_other_processes = self._replicas.in_other_processes
        self._writer = SnapshotWriter(self._snapshots, self._every, in_other_processes)
        self._signals = StopSignals(self._writer.finish, self._fit)
        if self._replicas.first == 0:
            self._snapshots.hold()
            undo.callback(self._snapshots.release)
            undo.callback(self._writer.wait)
        self._identity = identity_of(
            self.model, self._data, self.callbacks, self.params
        )
        self._snapshot = self._snapshot_to_resume()
        self._step, self._skipped = 0, SkippedBatches()
        self._stopped, self._history = False, {"epochs": [], "values": {}}

    def _snapshot_to_resume(self):
        snapshots = self._snapshots
        snapshot = last_snapshot.agreed_snapshot(snapshots, self.model, self._replicas)
        if snapshot:
            path = snapshots.path(snapshot["step"])
            last_snapshot.refuse_unfit(
                snapshot,
                path,
                self.model,
                self.callbacks,
                self._identity,
                self._allowed,
            )
            if self.params.get("verbose") and self._replicas.first == 0:
                epochs = self.params["epochs"]
                print(last_snapshot.description(snapshot, path, epochs), flush=True)
        return snapshot

    def _save(self, epoch, batch, logs=None):
        """Takes a snapshot: `batch` batches of `epoch` are trained on."""
        snapshot = self._state(epoch, batch, logs)
        self._writer.write(self._step, snapshot if self._replicas.first == 0 else None)
        self._stopped = self.model.stop_training

    def _state(self, epoch, batch, logs):
        """All that a resumed training needs, copied."""
        values = model_state.values(self.model)
        for value in values:
            if value.dtype.kind not in "iub" and not np.isfinite(value).all():
                raise self._diverged("A weight", epoch, batch - 1)
        return {
            "identity": self._identity,
            "learning_rate": learning_rates(self.model.optimizer),
            "variables": values,
            "metrics": model_state.metric_values(self.model),
            "epoch": epoch,
            "batch": batch,
            "step": self._step,
            "random": model_state.random_state(),
            "offset": self._offset,
            "logs": logs,
            "stopped": self.model.stop_training,
            "history": copy.deepcopy(self._history),
            "states": [callback_state.get_state(each) for each in self.callbacks],
        }

    def _states(self):
        return zip(self.callbacks, self._snapshot["states"], strict=True)

    def _restore(self):
        """Everything but what Keras resets when an epoch begins."""
        snapshot = self._snapshot
        self._restore_variables(snapshot)
        for callback, state in self._states():
            callback_state.set_state(callback, state)
        self._step, self._history = snapshot["step"], snapshot["history"]
        self._offset, self._stopped = snapshot["offset"], snapshot["stopped"]
        self._writer.continue_after(self._step)
        # A training that `EarlyStopping` has stopped stays so.
        ended = self._stopped and not snapshot["batch"]
        epoch = self.params["epochs"] if ended else snapshot["epoch"]
        keras_internals.set_initial_epoch(self.model, epoch)
        self._skipped = SkippedBatches(
            snapshot["batch"], self.model.steps_per_execution, snapshot["random"]
        )
        read = not self._data.seekable
        self._skipped.skip_in(self.model, snapshot["logs"], read)
        # PyTorch's `fit` has read a batch before it is passed over.
        batch = 0 if keras.backend.backend() == "torch" else snapshot["batch"]
        self._data.start_at(self._place(snapshot["epoch"], batch, self._offset))

    def _restore_variables(self, snapshot):
        rate = self.model.optimizer.learning_rate
        rate = float(rate) if self._identity["learning_rate"] else None
        model_state.restore(self.model, snapshot["variables"])
        before = snapshot["identity"]["learning_rate"]
        if self._identity["learning_rate"] != before:  # a new one, which was allowed
            self.model.optimizer.learning_rate = rate

    def _check_epoch(self, epoch):
        expected = self._snapshot["epoch"]
        if epoch != expected:
            raise RuntimeError(
                f"Keras {keras.__version__} cannot begin in the middle of a training: "
                f"`fit` is in epoch {epoch + 1} and the snapshot is of epoch "
                f"{expected + 1}. Resume with the version of Keras that trained before."
            )

    def _restore_within_epoch(self):
        model_state.set_history(self.model, **self._history)
        if not self._snapshot["batch"]:
            model_state.restore_random_state(self._snapshot["random"])
            return  # metrics in the snapshot are of the epoch before
        if self._snapshot["identity"]["metrics"] == self._identity["metrics"]:
            model_state.restore_metrics(self.model, self._snapshot["metrics"])
        self.model.stop_training = self._stopped  # in the middle of the epoch

    def _place(self, epoch, batch, offset):
        """The step of the data, which may have begun anywhere."""
        return offset + epoch * (self.params["steps"] or 0) + batch

    def _diverged(self, what, epoch, batch):
        place = self._place(epoch, batch, self._offset)
        lines = self._data.line_numbers(place) if batch >= 0 else []
        paths = self._snapshots.paths()
        return Diverged(what, self._step, lines, paths[-1] if paths else None)

    @contextlib.contextmanager
    def _ended_by_errors(self):
        try:
            yield
        except BaseException:
            self._end()
            raise

    def _end(self):
        if self._fit:
            self._fit.end()

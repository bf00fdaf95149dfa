"""Going on with a training that was killed, bit for bit."""

import time
import warnings

import keras
import numpy as np

from keras_vanilla._checks import some_of
from keras_vanilla.distribution.agreement import mean_over_processes
from keras_vanilla.training.resume import callback_state, model_state
from keras_vanilla.training.resume.snapshots import Snapshots

SECONDS_BETWEEN = 300
STEPS_BETWEEN = 500  # of several processes, whose clocks do not agree


class Diverged(ValueError):
    """The loss or a weight is not a number.

    Args:
        what: str. What is not.
        step: int. The step, counted from 1, after which it is not.
        line_numbers: list of int. The lines of that step's batch; empty if not known.
        snapshot: path of the last good one.
    """

    def __init__(self, what, step, line_numbers, snapshot):
        numbers = some_of(line_numbers, 20)
        batch = f", whose batch is lines {numbers} of the corpus" if numbers else ""
        super().__init__(
            f"{what} is not a number after step {step:,}{batch}. The last good "
            f"snapshot is {snapshot}; more warm-up steps lower the learning rate."
        )
        self.step, self.line_numbers, self.snapshot = step, line_numbers, snapshot


class ExactResume(keras.callbacks.CallbackList):
    """Takes snapshots of a training, and goes on from the last one.

    A run that was killed at any instant and is started again with the same code ends
    with the very weights, logs and history of a run that was not: a snapshot holds the
    weights, the optimizer, the seeds of dropout, the metrics, the history, the place
    in the data and the state of `callbacks`. One is taken before the first step, then
    every so often, and after each epoch. Batches of an epoch that were trained on
    before are passed over.

    The data must be the same again: those of `batches` are, and those of a
    `tf.data.Dataset` with one order for every epoch. On TensorFlow the operations are
    made deterministic for the whole process. Of several processes that train one model
    the first one writes, into a folder that all of them see. On another number of
    devices a training goes on as well, but equal up to rounding alone. One that a
    callback has stopped early stays so.

    Args:
        folder: path of the snapshots.
        data: what `fit` is given: a dataset of `batches`, or one that gives the same
            batches in each epoch.
        callbacks: those that go on too: Keras's `CSVLogger`, `EarlyStopping`,
            `ModelCheckpoint` and `ReduceLROnPlateau`, `AverageCheckpoints`, and any
            that has the methods `get_state()` and `set_state(state)`. They are called
            from here, before a snapshot is taken: do not give them to `fit` as well.
        every: int. Steps between snapshots; None means five minutes, and 500 steps
            where several processes train one model.
    Raises:
        ValueError: if `every` is below 1; in `fit`, if it is not in a list, the
            snapshots are of another model, data or callbacks, none of them can be
            read, or processes see different ones.
        Diverged: in `fit`, if the loss or a weight is not a number.
        OSError: in `fit`, if the first snapshot cannot be written. A later one that
            cannot be is reported in a warning, and the training goes on.
    Example:
        resume = ExactResume("run", train, callbacks=[AverageCheckpoints()])
        model.fit(
            train,
            steps_per_epoch=train.steps_per_epoch,
            epochs=10,
            callbacks=[resume],
        )
    """

    def __init__(self, folder, data, callbacks=(), every=None):
        super().__init__(list(callbacks))
        if every is not None and every < 1:
            raise ValueError(f"`every` must be at least 1. Received: {every}")
        self._snapshots = Snapshots(folder)
        self._data, self._every = data, every
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            tf.config.experimental.enable_op_determinism()

    def on_train_begin(self, logs=None):
        if getattr(self, "_model", None) is None:
            raise ValueError("`fit` takes a list of callbacks: callbacks=[resume].")
        model_state.build(self.model, self._data)
        self.model._initial_epoch = None  # of a `fit` that was stopped
        self._replicas = model_state.replicas_of(self.model)
        self._found = found = self._snapshots.newest()
        self._refuse_other_snapshots_elsewhere(found)
        self._step, self._skip, self._last_saved = 0, 0, None
        self._history = {"epoch": [], "values": {}}
        if found:
            self._check(found)
            for callback, state in self._states(found):
                callback_state.rewind(callback, state)
        super().on_train_begin(logs)
        if found:
            self._go_back_to(found)

    def on_epoch_begin(self, epoch, logs=None):
        self.model._initial_epoch = None  # Keras has read it
        if self._found:
            self._go_back_into_epoch(self._found)
            self._found = None
        elif self._last_saved is None:
            self._offset = _first_step(self._data) - epoch * (self.params["steps"] or 0)
            self._save(epoch, 0)
        self._epoch = epoch
        super().on_epoch_begin(epoch, logs)

    def on_train_batch_begin(self, batch, logs=None):
        if not self._skip:
            super().on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        if self._skip:
            self._skip -= 1
            if not self._skip:
                model_state.restore_random_state(self._random)
            return
        self._step += self.model.steps_per_execution
        super().on_train_batch_end(batch, logs)
        if not np.isfinite(logs["loss"]):
            raise self._diverged("The loss", self._epoch, batch)
        if self._is_time():
            self._save(self._epoch, batch + 1, logs)

    def on_epoch_end(self, epoch, logs=None):
        for callback in self.callbacks:  # Keras's list would hand each call a copy
            callback.on_epoch_end(epoch, logs)
        self._history["epoch"].append(epoch)
        for name, value in logs.items():
            self._history["values"].setdefault(name, []).append(value)
        self._save(epoch + 1, 0)

    def on_train_end(self, logs=None):
        if self._found:  # there was nothing left to train
            self._set_history()
        super().on_train_end(logs)

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
            self._write(
                {
                    "variables": values,
                    "epoch": epoch,
                    "batch": batch,
                    "step": self._step,
                    "random": model_state.random_state(),
                    "offset": self._offset,
                    "steps": self.params["steps"],
                    "logs": logs,
                    "stopped": self.model.stop_training,
                    "history": self._history,
                    "callbacks": self._names(),
                    "states": [
                        callback_state.get_state(each) for each in self.callbacks
                    ],
                }
            )
        self._last_saved = time.monotonic()

    def _write(self, state):
        try:
            self._snapshots.save(self._step, state)
        except OSError as error:
            if self._last_saved is None:
                raise
            warnings.warn(
                f"No snapshot after step {self._step:,}: {error}. The training goes "
                "on; if it is killed, it goes back to the last snapshot.",
                stacklevel=2,
            )

    def _check(self, found):
        shapes = model_state.shapes(self.model)
        if shapes != [value.shape for value in found["variables"]]:
            raise ValueError(
                f"The snapshots in {self._snapshots.folder} are of another model: its "
                f"{len(found['variables'])} variables have other shapes than the "
                f"{len(shapes)} of this one."
            )
        now = {"callbacks": self._names(), "steps": self.params["steps"]}
        for name, received in now.items():
            if found[name] != received:
                raise ValueError(
                    f"The snapshots in {self._snapshots.folder} were taken with "
                    f"{name}={found[name]}. Received: {received}"
                )

    def _refuse_other_snapshots_elsewhere(self, found):
        step = found["step"] if found else -1
        if self._replicas.in_other_processes:
            mean = mean_over_processes(self.model, step)
            if mean != step:
                raise ValueError(
                    f"This process would go on after step {step}, others after "
                    f"another: {self._snapshots.folder} must be a folder that all of "
                    "them see."
                )

    def _names(self):
        return [type(each).__name__ for each in self.callbacks]

    def _states(self, found):
        return zip(self.callbacks, found["states"], strict=True)

    def _go_back_to(self, found):
        """Everything but what Keras resets when an epoch begins."""
        model_state.restore(self.model, found["variables"])
        for callback, state in self._states(found):
            callback_state.set_state(callback, state)
        self._step, self._history = found["step"], found["history"]
        self._offset, self._random = found["offset"], found["random"]
        self._last_saved = time.monotonic()
        stopped = found["stopped"]  # by `EarlyStopping`, and stays so
        self.model._initial_epoch = self.params["epochs"] if stopped else found["epoch"]
        self._pass_over(found["batch"], found["logs"])
        if getattr(self._data, "endless", False):
            # PyTorch's `fit` has taken a batch before it is passed over.
            passed = 0 if keras.backend.backend() == "torch" else found["batch"]
            self._data.start_at(self._place(found["epoch"], passed))

    def _go_back_into_epoch(self, found):
        self._set_history()
        if not found["batch"]:
            model_state.restore_random_state(self._random)
            return  # metrics in the snapshot are of the epoch before
        model_state.restore_metrics(self.model, found["variables"])

    def _set_history(self):
        """Keras's own `History` begins anew with every `fit`."""
        history = self.model.history
        history.epoch = list(self._history["epoch"])
        history.history = {
            name: list(values) for name, values in self._history["values"].items()
        }

    def _pass_over(self, batches, logs):
        """Lets `fit` pass over batches that were trained on before.

        Data that cannot start at any step are asked for them.
        """
        model, each = self.model, self.model.steps_per_execution
        train, this_fit = model.train_function, model.history
        self._skip = batches // each
        endless = getattr(self._data, "endless", False)
        asks = not endless and keras.backend.backend() != "torch"

        def pass_over(*arguments):  # iterator; on JAX: state, iterator
            if not self._skip or model.history is not this_fit:
                model.train_function = train
                return train(*arguments)
            for _ in range(each if asks else 0):
                next(arguments[-1])
            return (logs, *arguments[:-1]) if arguments[:-1] else logs

        if batches:
            model.train_function = pass_over

    def _place(self, epoch, batch):
        """The step of the stream of `batches`: it may have begun anywhere."""
        return self._offset + epoch * (self.params["steps"] or 0) + batch

    def _diverged(self, what, epoch, batch):
        lines = []
        if batch >= 0 and hasattr(self._data, "line_numbers"):
            lines = sorted(self._data.line_numbers(self._place(epoch, batch)))
        snapshots = self._snapshots.paths()
        good = snapshots[-1] if snapshots else "not there yet"
        return Diverged(what, self._step, lines, good)


def _first_step(data):
    """The step at which an iterator of `batches` begins; 0 for other data."""
    return data.first_step() if hasattr(data, "first_step") else 0

"""Resumes an interrupted training run bit for bit."""

import contextlib
import copy
import itertools
import signal
import threading
import time
import warnings
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_vanilla._checks import check_integer, some_of
from keras_vanilla._types import PathLike
from keras_vanilla.data.batching import Batches
from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.replicas import mean_over_processes, replicas_of
from keras_vanilla.models.fit_arguments import refuse_fixed_learning_rate
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.training.resume import callback_state
from keras_vanilla.training.resume.identity import (
    check_changeable,
    identity_of,
    optimizer_settings,
    unlike,
)
from keras_vanilla.training.resume.snapshots import (
    Snapshots,
    pack,
    unchanging,
    unpack,
)

SECONDS_BETWEEN = 300
STEPS_BETWEEN = 500  # for several processes, whose clocks may differ


class Diverged(ValueError):
    """The loss or a weight is not a finite number.

    Args:
        what: str. The name of the value that is not finite.
        step: int. The step, counted from 1, after which it is not finite.
        line_numbers: list of int. The lines of that step's batch; empty if unknown.
        snapshot: path of the last good snapshot; None if there is none.
    """

    def __init__(
        self, what: str, step: int, line_numbers: list[int], snapshot: Path | None
    ):
        numbers = some_of(line_numbers, 20)
        batch = f", whose batch is lines {numbers} of the corpus" if numbers else ""
        super().__init__(
            f"{what} is not a number after step {step:,}{batch}. The last good "
            f"snapshot is {snapshot or 'not there yet'}; more warm-up steps lower the "
            "learning rate."
        )
        self.step, self.line_numbers, self.snapshot = step, line_numbers, snapshot


class ExactResume:
    """Trains a model with snapshots, and resumes from the last one.

    A run that is killed at any time and started again with the same code ends with the
    same weights, logs and history, bit for bit, as an uninterrupted run. A snapshot
    holds the weights, the optimizer, the seeds of dropout, the metrics, the history,
    the position in the data and the state of `callbacks`. Snapshots are taken before
    the first step, then at intervals, after each epoch, and on Ctrl-C or SIGTERM, which
    wait for the end of the batch, or of the epoch if it is validated.

    Snapshots of a different training run are refused with an error that names the
    difference. A finished run is restored without further training; it is continued if
    `epochs` is larger and `allow_changed` includes "epochs". A run that a callback has
    stopped early remains stopped, as if it had had more epochs from the start.

    If several processes train one model, only the first one writes, to a folder that
    all of them can read, and signals have their usual effect. A run can be resumed on a
    different number of devices, but its result is then equal only up to rounding.

    Args:
        folder: path of the snapshots.
        callbacks: callbacks of the run. Supported are Keras's callbacks except those
            with private state, such as `BackupAndRestore` and `SwapEMAWeights`;
            `AverageCheckpoints`; and those with the methods `get_state()` and
            `set_state(state)`. A warning names the others.
        every: int. Steps between snapshots; None means five minutes, or 500 steps if
            several processes train one model.
        allow_changed: names of settings that may differ from the snapshots; training
            continues with the new ones: "epochs", "loss", "metrics" (which are reset
            within the current epoch), "micro_batches", "model", "optimizer" (including
            its learning rate), "versions".
    Raises:
        TypeError: if `callbacks` is not a list or tuple of callbacks.
        ValueError: if `every` is below 1, `allow_changed` has an unknown name, or a
            callback cannot be resumed.
    Example:
        resume = ExactResume("run", callbacks=[AverageCheckpoints()])
        resume.fit(model, batches(corpus, tokenizer), epochs=10)
    """

    def __init__(
        self,
        folder: PathLike,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        every: int | None = None,
        allow_changed: Collection[str] = (),
    ):
        self.folder = Path(folder)
        self.callbacks = callback_state.checked_callbacks(callbacks)
        self.every = None if every is None else check_integer("every", every, 1)
        self.allow_changed = check_changeable(allow_changed)

    def fit(
        self,
        model: keras.Model,
        data: Batches,
        epochs: int = 1,
        validation_data: Any = None,
        verbose: str | int = "auto",
    ) -> keras.callbacks.History:
        """Trains a model, from the beginning or from the last snapshot.

        Meanwhile, no other process can write to the folder, and TensorFlow's operations
        are deterministic. On resuming, one line describes the run, unless `verbose` is
        0.

        Args:
            model: compiled keras.Model.
            data: shuffled `Batches`; a function in `Batches.map` must depend only on
                the batch.
            epochs: int. Number of epochs, including those before the snapshot.
            validation_data: as for `model.fit`.
            verbose: as for `model.fit`.
        Returns:
            The history of all epochs, including those before the snapshot.
        Raises:
            FolderInUse: if another process writes to the folder.
            Diverged: if the loss or a weight is not a number.
            OSError: if a snapshot cannot be read, or the first one cannot be written.
                If a later one cannot be written, there is a warning and training
                continues.
            TypeError: if `data` is not a `Batches` object.
            ValueError: if the data are not shuffled, `map` is random,
                `steps_per_execution` does not divide an epoch, the snapshots are of
                another run, all are damaged, or processes see different ones.
        """
        batch = _checked_batch(data, model.steps_per_execution)
        refuse_fixed_learning_rate(self.callbacks, model.optimizer)
        training = _Training(self, model, data, epochs, validation_data, verbose)
        snapshots, is_writer = Snapshots(self.folder), replicas_of(model).first == 0
        with (
            keras_internals.deterministic_operations(),
            snapshots.writing() if is_writer else contextlib.nullcontext(),
        ):
            return training.run(batch)


class _Training(keras.callbacks.Callback):
    """One training run; the only callback that Keras calls, which calls the others."""

    def __init__(self, resume, model, data, epochs, validation_data, verbose):
        super().__init__()
        self.set_model(model)
        self._snapshots, self._replicas = Snapshots(resume.folder), replicas_of(model)
        self._is_one_of_several = self._replicas.in_other_processes
        self._allow_changed, self._every = resume.allow_changed, resume.every
        if self._every is None and self._is_one_of_several:
            self._every = STEPS_BETWEEN
        self._data, self._steps = data, data.steps_per_epoch
        self._epochs, self._verbose = epochs, verbose
        self._validation_data = validation_data
        self._callbacks = keras.callbacks.CallbackList(
            resume.callbacks,
            model=model,
            epochs=epochs,
            steps=self._steps,
            verbose=0 if verbose == "auto" else verbose,
        )
        # A TensorBoard has no state, and whether it is there may change.
        self._with_state = [
            each
            for each in self._callbacks.callbacks
            if not isinstance(each, keras.callbacks.TensorBoard)
        ]
        self._signals = _StopSignals()
        self._state = None  # what the next call of Keras's `fit` begins with
        self._begun = False  # whether `on_train_begin` of the callbacks was called
        self._step = self._trained_before = 0  # of all epochs; of the first one
        self._history, self._logs = keras.callbacks.History(), None
        self._history.set_model(model)
        self._history.on_train_begin()
        self._offset = data.first_step()
        self._random = None  # random state of the next step, if not the current one
        self._saved_step = self._saved_at = self._writing = None

    def run(self, batch):
        """Calls Keras's `fit` for the rest of an epoch, then for all others."""
        _build(self.model, batch, self._replicas)
        self._identity = identity_of(
            self.model, self._data, self._with_state, self._epochs
        )
        self._state = state = self._state_to_resume()
        epoch, ended = (state["epoch"], state["stopped"]) if state else (0, False)
        no_signals = contextlib.nullcontext()
        with (
            no_signals if self._is_one_of_several else self._signals,
            ThreadPoolExecutor(1, "snapshot") as self._thread,
        ):
            if state and state["batch"]:
                self._trained_before = state["batch"]
                self._fit(epoch, epoch + 1)
                epoch, ended = epoch + 1, self.model.stop_training
                self._trained_before = 0
            # If no epochs remain, Keras restores the weights and finalises averages.
            self._fit(self._epochs if ended else epoch, self._epochs)
            self._finish_writing()
        self._callbacks.on_train_end(self._logs)
        self.model.history = self._history
        return self._history

    def _fit(self, epoch, epochs):
        data = copy.copy(self._data)
        data.start_at(self._data_step(epoch, self._trained_before))
        is_ours = isinstance(self.model, Transformer)
        self.model.fit(
            data if is_ours else data.dataset(),
            initial_epoch=epoch,
            epochs=epochs,
            steps_per_epoch=self._steps - self._trained_before,
            validation_data=self._validation_data,
            shuffle=False,
            callbacks=[self],
            verbose=self._verbose,
        )

    def on_train_begin(self, logs=None):
        if not self._begun:
            for callback, state in self._callbacks_and_states():
                callback_state.rewind(callback, state)
            self._callbacks.on_train_begin(logs)  # which may change the model
        if self._state:
            self._restore(with_callbacks=not self._begun)
        self._begun = True

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        if self._saved_step is None:
            self._write(self._state_of(epoch, 0))
        self._callbacks.on_epoch_begin(epoch, logs)
        if self._trained_before:  # the snapshot has what they have changed here
            self._restore()
            before = self._state["identity"]
            if before["metrics"] == self._identity["metrics"]:
                _assign(self.model.metrics_variables, self._state["metrics"])
        self._state = None
        self._let_signal_through()

    def on_train_batch_begin(self, batch, logs=None):
        if self._random is not None:
            _set_random_state(self._random)
            self._random = None
        self._callbacks.on_train_batch_begin(self._trained_before + batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self._step += self.model.steps_per_execution
        batch += self._trained_before
        self._callbacks.on_train_batch_end(batch, logs)
        if not np.isfinite(logs["loss"]):
            raise self._diverged("The loss", self._epoch, batch)
        if batch + 1 == self._steps:  # the next snapshot is that of `on_epoch_end`
            self._random = _random_state()  # validation may draw random numbers
        elif self.model.stop_training:
            return  # the epoch ends here
        elif self._is_time() or self._signals.arrived:
            self._write(self._state_of(self._epoch, batch + 1))
            self._let_signal_through()

    def on_epoch_end(self, epoch, logs=None):
        for callback in self._callbacks.callbacks:  # these may add to the logs
            callback.on_epoch_end(epoch, logs)
        self._history.on_epoch_end(epoch, logs)
        self._logs = logs
        packed = self._state_of(epoch + 1, 0)
        self._write(packed)
        # Keras ends each `fit` with `finalize_variable_values`, which may change them.
        self._state = unpack(packed) if self._trained_before else None
        self._let_signal_through()

    def on_test_begin(self, logs=None):
        self._callbacks.on_test_begin(logs)

    def on_test_batch_begin(self, batch, logs=None):
        self._callbacks.on_test_batch_begin(batch, logs)

    def on_test_batch_end(self, batch, logs=None):
        self._callbacks.on_test_batch_end(batch, logs)

    def on_test_end(self, logs=None):
        self._callbacks.on_test_end(logs)

    def _state_to_resume(self):
        """The state of the newest snapshot, the same in every process; None to start.

        Raises:
            ValueError: if it is of another training.
        """
        if self._is_one_of_several:  # the first may still be deleting those of before
            mean_over_processes(self.model, 0)
        state = self._snapshots.newest()
        step = state["step"] if state else -1
        if self._is_one_of_several and mean_over_processes(self.model, step) != step:
            raise ValueError(
                f"This process would resume after step {step}, others after another: "
                f"{self._snapshots.folder} must be a folder that all of them can read."
            )
        if state is None:
            return None
        path, before, now = (
            self._snapshots.path(step),
            state["identity"],
            self._identity,
        )
        if now["optimizer"] == state["optimizer"]:  # a callback has set its rate
            now |= {name: before[name] for name in ("optimizer", "learning_rate")}
        if differing := unlike(before, now, self._allow_changed):
            raise ValueError(f"{path} belongs to another training: {differing}")
        epoch = state["epoch"]
        if self._epochs < epoch + bool(state["batch"]):
            raise ValueError(
                f"{path} has trained more epochs than that, {epoch}. "
                f"Received: epochs={self._epochs}"
            )
        if self._verbose and self._replicas.first == 0:
            stopped = " and stopped by a callback" if state["stopped"] else ""
            print(
                f"Resumed from {path}: {epoch} of {self._epochs} epochs are finished"
                f"{stopped}, step {step:,}.",
                flush=True,
            )
        self._step, self._offset = step, state["offset"]
        self._history.epoch, self._history.history = state["history"]
        self._saved_step, self._saved_at = step, time.monotonic()
        return state

    def _restore(self, with_callbacks=True):
        """Restores everything except metrics, which Keras resets in each epoch."""
        _assign(_variables(self.model), self._state["variables"])
        rates = self._identity["learning_rate"]
        if rates != self._state["identity"]["learning_rate"]:  # a new rate is allowed
            self.model.optimizer.learning_rate = rates[0]
        self._random = self._state["random"]
        for callback, state in self._callbacks_and_states() if with_callbacks else ():
            callback_state.set_state(callback, state)

    def _callbacks_and_states(self):
        states = self._state["callbacks"] if self._state else []
        return list(zip(self._with_state, states, strict=False))

    def _write(self, packed):
        """Writes a snapshot in the background, but waits for the first one."""
        self._finish_writing()
        if self._replicas.first == 0:
            save = self._snapshots.save
            self._writing = self._thread.submit(save, self._step, packed)
            if self._saved_step is None:
                self._writing.result()
        self._saved_step, self._saved_at = self._step, time.monotonic()

    def _finish_writing(self):
        writing, self._writing = self._writing, None
        try:
            if writing:
                writing.result()
        except OSError as error:
            warnings.warn(
                f"No snapshot after step {self._saved_step:,} in "
                f"{self._snapshots.folder}: {error}. The training continues; if it is "
                "killed, it resumes from the last snapshot.",
                stacklevel=2,
            )

    def _let_signal_through(self):
        if self._signals.arrived:
            self._finish_writing()
            self._signals.let_through()

    def _is_time(self):
        if self._every is None:
            return time.monotonic() - self._saved_at > SECONDS_BETWEEN
        return self._step % self._every == 0

    def _state_of(self, epoch, batch):
        """A packed copy of all that a resumed run needs."""
        variables = _values(self.model, _variables(self.model))
        for value in variables:
            if value.dtype.kind not in "iub" and not np.isfinite(value).all():
                raise self._diverged("A weight", epoch, batch - 1)
        return pack(
            {
                "identity": self._identity,
                "optimizer": optimizer_settings(self.model.optimizer),
                "variables": variables,
                "metrics": _values(self.model, self.model.metrics_variables),
                "epoch": epoch,
                "batch": batch,
                "step": self._step,
                "random": _random_state() if self._random is None else self._random,
                "offset": self._offset,
                "stopped": self.model.stop_training,
                "history": [self._history.epoch, self._history.history],
                "callbacks": list(map(callback_state.get_state, self._with_state)),
            }
        )

    def _data_step(self, epoch, batch):
        """The step within the data, which may have started at any step."""
        return self._offset + epoch * self._steps + batch

    def _diverged(self, what, epoch, batch):
        lines = []
        if batch >= 0:
            lines = sorted(self._data.line_numbers(self._data_step(epoch, batch)))
        self._finish_writing()
        return Diverged(what, self._step, lines, self._snapshots.last_path())


class _StopSignals:
    """Context manager in which SIGINT and SIGTERM wait for `let_through`.

    Then the previous handler is called: by default, SIGINT raises KeyboardInterrupt and
    SIGTERM ends the process. If it returns, training continues. A second signal does
    not wait. Signals that were ignored remain ignored. Outside the main thread, where
    Python allows no handlers, nothing changes.
    """

    def __init__(self):
        self._previous, self.arrived = {}, None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGINT, signal.SIGTERM):
                previous = signal.getsignal(signum)
                if previous not in (signal.SIG_IGN, None):  # None: not set by Python
                    self._previous[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(self, *error):
        for signum, previous in self._previous.items():
            signal.signal(signum, previous)
        if self.arrived:
            signal.raise_signal(self.arrived)

    def _handle(self, signum, frame):
        if self.arrived:
            self.let_through()
        else:
            self.arrived = signum

    def let_through(self):
        """Calls the previous handler of the signal that waits."""
        signum, self.arrived = self.arrived, None
        signal.signal(signum, self._previous[signum])
        signal.raise_signal(signum)
        signal.signal(signum, self._handle)


def _checked_batch(data, steps_per_execution):
    """The first batch of data that can repeat their batches from any step."""
    if not isinstance(data, Batches):
        raise TypeError(
            "`ExactResume` needs `Batches`, which can be read again from any step on: "
            f"use `batches(...)` and its `map`. Received: a {type(data).__name__}"
        )
    if not data.endless:
        raise ValueError(
            "`ExactResume` needs shuffled `Batches`, which begin at any step. "
            "Received: batches(..., shuffle=False)"
        )
    if data.steps_per_epoch % steps_per_execution:
        raise ValueError(
            "`ExactResume` needs `steps_per_execution` that divides the number of "
            f"batches of an epoch. Received: steps_per_execution={steps_per_execution},"
            f" {data.steps_per_epoch} batches"
        )
    first, in_order = itertools.islice(data, 2)
    second = copy.copy(data)
    second.start_at(data.first_step() + 1)
    alone = next(iter(second))
    same = map(np.array_equal, keras.tree.flatten(in_order), keras.tree.flatten(alone))
    if not all(same):
        raise ValueError(
            "The function given to `Batches.map` changes the same batch in another "
            "way each time: see `tf.random.stateless_uniform`."
        )
    return first


def _build(model, batch, replicas):
    """Creates the variables that TensorFlow creates in the first step on one device.

    These are the variables of the optimizer, the metrics and the losses per output.
    """
    if keras.backend.backend() != "tensorflow" or replicas.count > 1:
        return  # there Keras creates them before the first step
    # Custom metrics may not be Keras metrics.
    built = [getattr(metric, "built", True) for metric in model.metrics]
    if model.optimizer.built and all(built):
        return
    batch = keras.tree.map_structure(ops.convert_to_tensor, batch)
    inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(batch)
    outputs = model(inputs, training=False)
    model.compute_loss(inputs, labels, outputs, weights, training=False)
    model.compute_metrics(inputs, labels, outputs, weights)
    model.reset_metrics()
    model.optimizer.build(model.trainable_variables)


def _variables(model):
    """All variables except those of metrics: weights, seeds and optimizer."""
    return [*model.variables, *model.optimizer.variables]


def _values(model, variables):
    """Copies of the values; every process must call this, as values may be sharded."""
    if keras.backend.backend() == "jax":
        model.jax_state_sync()  # during a step the values are not in the variables
    return [unchanging(ops.convert_to_numpy(each)) for each in variables]


def _assign(variables, values):
    if len(variables) != len(values):
        raise ValueError(
            f"The snapshot is of another model or optimizer: it has {len(values)} "
            f"variables, and this one {len(variables)}."
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _random_state():
    """The state of PyTorch's generators, which dropout uses; None on other backends."""
    if keras.backend.backend() != "torch":
        return None
    import torch

    states = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    return [state.cpu().numpy() for state in states]


def _set_random_state(states):
    import torch

    first, *of_gpus = (torch.from_numpy(state.copy()) for state in states)
    torch.set_rng_state(first)
    torch.cuda.set_rng_state_all(of_gpus)

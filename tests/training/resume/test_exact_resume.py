"""A training that is stopped anywhere ends as one that is not, bit for bit."""

import functools
import importlib.util
import inspect
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
from child_process import environment
from small_fit import compiled, data, fit, validation
from stopping import AfterBatches, Crash
from tiers import in_full

from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla.distribution.replicas import Replicas
from keras_vanilla.training import AverageCheckpoints, Diverged, ExactResume
from keras_vanilla.training.resume import callback_state, exact_resume
from keras_vanilla.training.resume.snapshots import Snapshots, pack

PROGRAM = Path(__file__).with_name("killed_training.py")


class Counter(keras.callbacks.Callback):
    """Counts the calls of each method, in a state of many types; changes the rate."""

    def __init__(self):
        super().__init__()
        self.counts, self.seen = {}, ()

    def _count(self, method):
        self.counts[method] = self.counts.get(method, 0) + 1
        self.seen = (self.seen[-5:], method, np.float32(0.1), {7: None})

    def get_state(self):
        return {"counts": self.counts, "seen": self.seen}

    def set_state(self, state):
        self.counts, self.seen = state["counts"], state["seen"]

    def on_epoch_begin(self, epoch, logs=None):
        self._count("epoch")
        rate = self.model.optimizer.learning_rate
        rate.assign(rate * 0.9)

    def on_train_batch_begin(self, batch, logs=None):
        self._count(("batch", batch))

    def on_epoch_end(self, epoch, logs=None):
        self._count("end")


class Warm(keras.callbacks.Callback):
    """Doubles the rate that it finds at the beginning, and halves it in each epoch."""

    def on_train_begin(self, logs=None):
        rate = self.model.optimizer.learning_rate
        rate.assign(rate * 2)

    def on_epoch_begin(self, epoch, logs=None):
        weights = self.model.get_weights()
        self.model.set_weights([value * 0.5 for value in weights])


def scheduler():
    return keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.7)


def plateau():
    return keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=1e9)


def stopping():
    return keras.callbacks.EarlyStopping("loss", patience=2, min_delta=1e9)


# What is compiled, which callbacks there are, and after how many batches of each
# process the training is stopped; an epoch has four.
RUNS = {
    "own callback": ({}, [Counter, scheduler], [5, 1, 2]),
    "end of an epoch": ({}, [Counter], [4, 4]),
    "no metrics": ({"metrics": ()}, [], [6]),
    "last batch": ({}, [], [16]),
    "changes at the beginning": ({}, [Warm], [2, 1, 6]),
    "plateau": ({}, [plateau, AverageCheckpoints], [3, 9]),
    "early stopping": ({}, [stopping], [3, 5]),
    "moving averages": ({"use_ema": True, "ema_overwrite_frequency": 3}, [], [3, 6]),
    "accumulated gradients": ({"gradient_accumulation_steps": 3}, [scheduler], [4, 1]),
    "several steps per call": ({"steps": 2}, [scheduler], [1, 3]),
    "XLA": ({"jit": True}, [], [3]),
    "penalty": ({"penalty": True}, [], [3, 3]),
}


def result(folder, settings, kinds, crash=0, seed=1):
    callbacks = [kind() for kind in kinds]
    model = compiled(seed=seed, **settings)
    given = {"validation_data": validation(), "crash": crash}
    history = fit(model, folder, callbacks, **given)
    variables = [*model.variables, *model.optimizer.variables]
    return {
        "epochs": history.epoch,
        "history": history.history,
        "variables": [np.array(each).tobytes() for each in variables],
        "callbacks": [pack(callback_state.get_state(each))[0] for each in callbacks],
    }


@pytest.mark.filterwarnings("ignore:What Warm remembers")
@pytest.mark.parametrize(
    "name", ["own callback", *in_full(*(name for name in RUNS if name[:3] != "own"))]
)
def test_stopped_training_ends_as_uninterrupted_one(tmp_path, name):
    settings, kinds, stops = RUNS[name]
    whole = result(tmp_path / "whole", settings, kinds)
    for stop in stops:
        with pytest.raises(Crash):
            result(tmp_path / "run", settings, kinds, stop)
    assert result(tmp_path / "run", settings, kinds, seed=2) == whole


def test_fit_after_a_crash_begins_at_the_first_epoch(tmp_path):
    model = compiled()
    for crash in (6, 1):
        with pytest.raises(Crash):
            fit(model, tmp_path / "run", crash=crash)
    history = model.fit(validation(), epochs=2, verbose=0)
    assert history.epoch == [0, 1]
    iterations = int(model.optimizer.iterations)
    model.fit(validation(), verbose=0)
    assert int(model.optimizer.iterations) == iterations + 4


def test_training_resumes_without_tensorboard_of_before(tmp_path):
    board = functools.partial(keras.callbacks.TensorBoard, str(tmp_path / "logs"))
    with pytest.raises(Crash):
        result(tmp_path / "run", {}, [Counter, board, scheduler], crash=6)
    resumed = result(tmp_path / "run", {}, [Counter, scheduler])
    assert resumed == result(tmp_path / "whole", {}, [Counter, scheduler])


def test_data_resume_at_the_step_they_began_with(tmp_path, weights_of):
    def train(folder, crash=0, first_step=7):
        model, begins = compiled(seed=1), data(first_step=first_step)
        fit(model, tmp_path / folder, batches=begins, crash=crash, epochs=2)
        assert begins.first_step() == first_step
        return weights_of(model)

    whole = train("whole")
    with pytest.raises(Crash):
        train("run", crash=3)
    assert train("run") == whole
    assert train("other", first_step=0)[0] != whole[0]


@pytest.mark.parametrize(
    ("every", "steps"), [(3, [0, 3, 4, 6, 8]), (None, [0, 3, 4, 7, 8])]
)
def test_snapshots_are_taken_at_intervals_and_after_epochs(
    tmp_path, monkeypatch, every, steps
):
    """The clock goes on by 110 seconds whenever it is read; None is five minutes."""
    saved, clock = [], iter(range(0, 100_000, 110))
    monkeypatch.setattr(Snapshots, "save", lambda self, step, state: saved.append(step))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    fit(compiled(), tmp_path, epochs=2, every=every)
    assert saved == steps


def test_diverged_loss_names_step_and_last_good_snapshot(tmp_path):
    with pytest.raises(
        Diverged, match="The loss is not a number after step 2"
    ) as error:
        fit(compiled(rate=1e30), tmp_path)
    assert error.value.step == 2
    assert error.value.snapshot == Snapshots(tmp_path).path(1)
    state = Snapshots(tmp_path).newest()
    arrays = state["variables"] + state["metrics"]
    assert all(np.isfinite(value).all() for value in arrays)


def test_diverged_weight_is_not_saved(tmp_path):
    class Spoil(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                weights = self.model.get_weights()
                self.model.set_weights([weights[0] * np.nan, weights[1]])

    with pytest.raises(Diverged, match="A weight is not a number after step 3"):
        fit(compiled(), tmp_path, [Spoil()])
    assert Snapshots(tmp_path).last_step() == 2


def test_full_disk_is_reported_and_training_continues(
    tmp_path, monkeypatch, whole, weights_of
):
    save = Snapshots.save

    def full(self, step, state):
        if step > 3:
            raise OSError(28, "No space left on device")
        save(self, step, state)

    monkeypatch.setattr(Snapshots, "save", full)
    again = compiled()
    with pytest.warns(UserWarning, match="No snapshot after step 4 in .*run: .*No sp"):
        fit(again, tmp_path / "run")
    assert weights_of(again) == whole[1]
    assert Snapshots(tmp_path / "run").last_step() == 3


def test_unwritable_folder_stops_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("kept")
    model = compiled()
    with pytest.raises(OSError, match="file"):
        fit(model, tmp_path / "file")
    assert int(model.optimizer.iterations) == 0


def test_folder_is_locked_while_fit_runs(tmp_path):
    def refused():
        with pytest.raises(FolderInUse), folder_lock(tmp_path):
            pass
        raise Crash

    for _ in range(2):
        with pytest.raises(Crash), pytest.warns(UserWarning, match="AfterBatches"):
            fit(compiled(), tmp_path, [AfterBatches(2, refused)])
        with folder_lock(tmp_path):
            pass


# Logs, and callbacks without a state that can be read


class CountingLog(keras.callbacks.CSVLogger):
    """A log with a state of its own."""

    rows = 0

    def on_epoch_end(self, epoch, logs=None):
        self.rows += 1
        super().on_epoch_end(epoch, {**logs, "rows": self.rows})

    def get_state(self):
        return {"rows": self.rows}

    def set_state(self, state):
        self.rows = state["rows"]


@pytest.mark.parametrize("kind", [keras.callbacks.CSVLogger, CountingLog])
def test_log_of_stopped_training_is_that_of_whole_one(tmp_path, kind):
    def logged(name, crash=0):
        log = tmp_path / f"{name}.csv"
        fit(compiled(), tmp_path / name, [kind(log)], crash=crash, every=3)
        return log.read_text()

    with pytest.raises(Crash):
        logged("run", crash=10)
    (tmp_path / "run.csv").open("a").write("1,2")  # written after the snapshot
    assert logged("run") == logged("whole")


def test_removed_log_does_not_stop_training(tmp_path):
    log = tmp_path / "log.csv"
    remove = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: log.unlink(True))
    for _ in range(2):
        callbacks = [keras.callbacks.CSVLogger(log), remove]
        assert len(fit(compiled(), tmp_path / "run", callbacks).epoch) == 4


def test_callbacks_of_unknown_state_are_reported(tmp_path, recwarn):
    class Remembers(keras.callbacks.ModelCheckpoint):
        pass

    known = [
        keras.callbacks.LambdaCallback(),
        keras.callbacks.ModelCheckpoint("x.keras", save_best_only=True),
        AverageCheckpoints(),
    ]
    ExactResume(tmp_path, known)
    assert not recwarn
    with pytest.warns(UserWarning, match="What Remembers remembers is not in the sn"):
        ExactResume(tmp_path, [*known, Remembers("x.keras")])


def test_processes_meet_before_they_look_for_snapshots(tmp_path, monkeypatch):
    """Meanwhile, the first one deletes those of the run that it overwrites."""
    fit(compiled(), tmp_path / "run", epochs=1)

    def meet(model, number):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return number

    monkeypatch.setattr(exact_resume, "mean_over_processes", meet)
    monkeypatch.setattr(exact_resume, "replicas_of", lambda model: Replicas(2, 1, 1))
    history = fit(compiled(), tmp_path / "run", epochs=2)
    assert history.epoch == [0, 1]


# Killed processes


def program(backend, *words):
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, words)],
        capture_output=True,
        text=True,
        env=environment(backend),
        timeout=900,
    )


def assert_kills_change_nothing(folder, kind, instants, backend="tensorflow"):
    """Kills trainings in one folder at some instants; one to its end is the same."""

    def ends(name):
        done = program(backend, folder / name, kind)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    whole = ends("whole")
    for where, number in instants(whole) if callable(instants) else instants:
        done = program(backend, folder / "killed", kind, where, number)
        expected = signal.SIGTERM if where == "stop" else signal.SIGKILL
        assert done.returncode == -expected, done.stderr
    assert ends("killed") == whole
    return whole


@pytest.mark.full
@pytest.mark.parametrize(
    ("backend", "instants"),
    [
        ("tensorflow", [("bytes", 6), ("stop", 11), ("write", 4)]),
        ("jax", [("step", 8), ("stop", 14)]),
        ("torch", [("step", 8), ("stop", 14)]),
    ],
)
def test_killed_fit_ends_as_uninterrupted_one(tmp_path, backend, instants):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs {backend}")
    whole = assert_kills_change_nothing(tmp_path, "plain", instants, backend)
    assert whole["steps"] == 18 and whole["epochs"] == [0, 1, 2]


@pytest.mark.slow
def test_training_killed_25_times_ends_as_uninterrupted_one(tmp_path):
    """At random steps of its first nine tenths, one in each part."""
    seed = int(time.time())
    draw = random.Random(seed)
    print(f"seed {seed}")
    wheres = 5 * ["step", "later", "bytes", "step", "step"]

    def instants(whole):
        for number, where in enumerate(wheres):
            share = (number + draw.random()) / len(wheres)
            yield where, 1 + int(0.9 * whole["steps"] * share)

    assert_kills_change_nothing(tmp_path, "whole", instants)


def test_fit_leaves_operations_as_deterministic_as_before(tmp_path):
    from tensorflow.python.framework import config

    seen, train = [], data(first_step=2)
    look = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda *_: seen.append(config.is_op_determinism_enabled())
    )
    ExactResume(tmp_path / "new")
    assert not config.is_op_determinism_enabled() and not list(tmp_path.iterdir())
    for crash in (3, 1, 0):  # 1: it is resumed, and reads from the sixth step on
        try:
            fit(compiled(), tmp_path / "run", [look], batches=train, crash=crash)
        except Crash:
            pass
        assert train.first_step() == 2 and not config.is_op_determinism_enabled()
    config.enable_op_determinism()
    fit(compiled(), tmp_path / "other", [look], epochs=1)
    assert config.is_op_determinism_enabled() and set(seen) == {True}


def test_every_callback_of_keras_has_known_state():
    """A new one must be looked at: does it keep state between epochs?"""
    stateless = (
        "Callback CSVLogger History LambdaCallback LearningRateScheduler ProgbarLogger "
        "RemoteMonitor TensorBoard TerminateOnNaN"
    )
    known = {*callback_state._STATE, *callback_state._REFUSED}
    known |= {getattr(keras.callbacks, name) for name in stateless.split()}
    of_keras = inspect.getmembers(keras.callbacks, inspect.isclass)
    assert known == {kind for _, kind in of_keras}

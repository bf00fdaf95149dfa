import importlib.util
import json
import random
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from child_process import environment, run
from small_fit import compiled, data, features, fit, validation
from stopping import AfterBatches, Crash
from tiers import in_full

from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla.training import (
    AverageCheckpoints,
    Diverged,
    ExactResume,
)
from keras_vanilla.training.resume.snapshots import Snapshots

PROGRAM = Path(__file__).with_name("killed_training.py")


def program(*words):
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, words)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=900,
    )


def ends(*words):
    done = program(*words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.full
def test_a_training_killed_three_times_ends_as_one_that_was_not(tmp_path):
    train = runpy.run_path(str(PROGRAM))["train"]
    whole = train(tmp_path / "whole")
    killed = tmp_path / "killed"
    for where, step, lasts in (
        # On a busy disk the last may not have been written yet.
        ("bytes", 6, [None, 3]),
        ("step", 11, [3, 6, 9]),
        ("replace", 15, [9, 12]),
    ):
        assert program(killed, "plain", where, step).returncode == -signal.SIGKILL
        assert Snapshots(killed / "snapshots").last_step() in lasts
    assert train(killed) == whole
    assert whole["steps"] == 18 and whole["epochs"] == [0, 1, 2]


INSTANTS = ("step", "later", "bytes", "step", "replace")


@pytest.mark.slow
def test_a_training_killed_25_times_ends_as_one_that_was_not(tmp_path, capsys):
    kill_all_along(tmp_path, capsys, kills=25)


def kill_all_along(folder, capsys, kills):
    """Kills a training at random steps of its first nine tenths, one in each part."""
    whole, seed = ends(folder / "whole", "whole"), int(time.time())
    draw, last = random.Random(seed), 0.9 * whole["steps"]
    for number in range(kills):
        where = INSTANTS[number % len(INSTANTS)]
        step = 1 + int(last * (number + draw.random()) / kills)
        done = program(folder / "killed", "whole", where, step)
        assert done.returncode == -signal.SIGKILL, done.stderr
        with capsys.disabled():
            snapshot = Snapshots(folder / "killed" / "snapshots").last_step()
            print(
                f"kill {number + 1}: {where} {step} of {whole['steps']}, "
                f"snapshot of step {snapshot}"
            )
    assert ends(folder / "killed", "whole") == whole, f"seed {seed}"


# In one process, on a model that trains in no time


@pytest.mark.parametrize(
    ("crash", "metrics"),
    [(3, ("mae",)), *in_full((6, ()), *((n, ("mae",)) for n in (1, 4, 5, 8, 16)))],
)
def test_it_resumes_exactly_wherever_it_stopped(
    tmp_path, whole_of, weights_of, crash, metrics
):
    again = compiled(seed=2, metrics=metrics)
    with pytest.raises(Crash):
        start = compiled(metrics=metrics)
        fit(start, tmp_path / "run", crash=crash, validation_data=validation())
    history = fit(again, tmp_path / "run", validation_data=validation())
    assert history.epoch == [0, 1, 2, 3]
    assert (history.history, weights_of(again)) == whole_of(metrics)


@pytest.mark.full
def test_it_would_not_without_the_seeds_of_dropout(tmp_path, whole, weights_of):
    """The check must see what `BackupAndRestore` loses."""
    again = compiled(seed=2)
    with pytest.raises(Crash):
        fit(compiled(), tmp_path / "run", crash=6)
    snapshots = Snapshots(tmp_path / "run")
    state = snapshots.newest()
    values = state["variables"]
    (seed,) = (
        i for i, v in enumerate(values) if v.shape == (2,) and v.dtype.kind != "f"
    )
    values[seed] += 1
    snapshots.save(snapshots.last_step(), state)
    fit(again, tmp_path / "run")
    assert weights_of(again)[0] != whole[1][0]


def test_several_stops_in_one_epoch_lose_nothing(tmp_path, whole, weights_of):
    again = compiled()
    for crash in (6, 1, 2):
        with pytest.raises(Crash):
            fit(again, tmp_path / "run", crash=crash)
    fit(again, tmp_path / "run")
    assert int(again.optimizer.iterations) == 16
    assert weights_of(again) == whole[1]


def test_another_fit_after_a_crash_begins_at_the_beginning(tmp_path):
    model = compiled()
    for crash in (6, 1):
        with pytest.raises(Crash):
            fit(model, tmp_path / "run", crash=crash)
    history = model.fit(validation(), epochs=2, verbose=0)
    assert history.epoch == [0, 1]
    iterations = int(model.optimizer.iterations)
    model.fit(validation(), verbose=0)
    assert int(model.optimizer.iterations) == iterations + 4


def test_batches_resume_wherever_they_began(tmp_path, weights_of):
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


@pytest.mark.full
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_resume_exactly(backend, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs {backend}")
    run(PROGRAM.with_name("resumed_on_a_backend.py"), tmp_path, backend=backend)


@pytest.mark.full
def test_averages_logs_and_keras_callbacks_continue(tmp_path):
    def callbacks(folder):
        folder.mkdir(exist_ok=True)
        return [
            AverageCheckpoints(last=3),
            keras.callbacks.CSVLogger(folder / "log.csv"),
            keras.callbacks.EarlyStopping("loss", patience=2, min_delta=1e9),
            keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=1e9),
        ]

    ends = []
    for name, crashes in (("whole", []), ("run", [3, 5, 2])):
        folder = tmp_path / name
        for crash in crashes:
            with pytest.raises(Crash):
                fit(compiled(), folder / "s", callbacks(folder), crash, epochs=9)
        last = callbacks(folder)
        history = fit(compiled(), folder / "s", last, epochs=9)
        average = [value.tobytes() for value in last[0].weights()]
        ends.append((history.history, average, (folder / "log.csv").read_text()))
    assert ends[0] == ends[1]
    assert len(ends[0][0]["loss"]) == 3  # stopped early, by epochs of both processes
    stopped = fit(compiled(), tmp_path / "run" / "s", callbacks(tmp_path), epochs=9)
    assert stopped.history == ends[0][0]


@pytest.mark.full
def test_callbacks_do_not_see_a_batch_twice(tmp_path):
    seen = []
    record = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(batch)
    )
    with pytest.raises(Crash):
        fit(compiled(), tmp_path, [record], crash=6)
    fit(compiled(), tmp_path, [record])
    assert seen == [0, 1, 2, 3] * 4


def test_a_snapshot_after_every_so_many_steps_and_each_epoch(tmp_path, monkeypatch):
    steps = []
    monkeypatch.setattr(Snapshots, "save", lambda self, step, state: steps.append(step))
    fit(compiled(), tmp_path, epochs=2, every=3)
    assert steps == [0, 3, 4, 6, 8]


def test_a_snapshot_when_five_minutes_have_passed(tmp_path, monkeypatch):
    steps, clock = [], iter(range(0, 100_000, 110))
    monkeypatch.setattr(Snapshots, "save", lambda self, step, state: steps.append(step))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    fit(compiled(), tmp_path, epochs=2, every=None)
    assert steps == [0, 3, 4, 7, 8]


def test_a_loss_that_is_not_a_number_names_step_and_snapshot(tmp_path):
    model = compiled(rate=1e30)
    with pytest.raises(
        Diverged, match="The loss is not a number after step 2"
    ) as error:
        fit(model, tmp_path)
    assert error.value.step == 2
    assert error.value.snapshot == Snapshots(tmp_path).path(1)
    state = Snapshots(tmp_path).newest()
    arrays = state["variables"] + state["metrics"]
    assert all(np.isfinite(value).all() for value in arrays)


def test_a_weight_that_is_not_a_number_is_not_saved(tmp_path):
    class Spoil(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                weights = self.model.get_weights()
                self.model.set_weights([weights[0] * np.nan, weights[1]])

    with pytest.raises(Diverged, match="A weight is not a number after step 3"):
        fit(compiled(), tmp_path, [Spoil()])
    assert Snapshots(tmp_path).last_step() == 2


@pytest.mark.full
def test_a_damaged_last_snapshot_costs_the_steps_since_the_one_before(
    tmp_path, whole, weights_of
):
    again = compiled(seed=2)
    with pytest.raises(Crash):
        fit(compiled(), tmp_path / "run", crash=7)
    last = Snapshots(tmp_path / "run").paths()[-1]
    last.write_bytes(last.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=f"{last.name} cannot be read"):
        fit(again, tmp_path / "run")
    assert weights_of(again) == whole[1]


def test_a_full_disk_is_reported_and_the_training_continues(
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


def test_a_folder_that_cannot_be_written_stops_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("kept")
    model = compiled()
    with pytest.raises(OSError, match="file"):
        fit(model, tmp_path / "file")
    assert int(model.optimizer.iterations) == 0


def test_snapshots_of_another_model_are_refused(tmp_path):
    fit(compiled(), tmp_path, epochs=1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"another training: .*model\.layers was"):
        fit(model, tmp_path, epochs=1)
    with pytest.raises(ValueError, match="another model or optimizer: its .* variab"):
        allowed = ["metrics", "model", "optimizer"]
        fit(model, tmp_path, epochs=1, allow_changed=allowed)


def test_a_log_that_is_shorter_than_it_was_is_reported(tmp_path):
    def logged():
        return [keras.callbacks.CSVLogger(tmp_path / "log.csv")]

    fit(compiled(), tmp_path / "run", logged(), epochs=2)
    (tmp_path / "log.csv").write_text("epoch\n")
    with pytest.warns(UserWarning, match="log.csv has lost lines"):
        fit(compiled(), tmp_path / "run", logged(), epochs=2)


def test_no_step_between_snapshots_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`every` must be .* at least 1. Received: 0"):
        ExactResume(tmp_path, every=0)


def test_a_random_map_is_refused(tmp_path):
    tf.random.set_seed(None)  # a seed gives each pass the same numbers

    def noisy(*batch):
        x, y = features(*batch)
        return x, y * tf.random.uniform([])

    with pytest.raises(ValueError, match="changes the same batch in another way"):
        fit(compiled(), tmp_path / "run", batches=data(change=noisy))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("others", "error", "message"),
    [
        (validation, TypeError, "use `batches.*Received: a _BatchDataset"),
        (lambda: [np.ones(3)], TypeError, "use `batches.*Received: a list"),
        (lambda: data().dataset(), TypeError, "use `batches.*its `map`"),
        (lambda: data(shuffle=False), ValueError, "needs shuffled .*shuffle=False"),
    ],
    ids=["dataset", "list", "of batches", "not shuffled"],
)
def test_data_that_cannot_begin_at_any_step_are_refused(
    tmp_path, others, error, message
):
    with pytest.raises(error, match=message):
        fit(compiled(), tmp_path / "run", batches=others())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("other", [{}, {"identity": 5}, [], None])
def test_snapshots_of_an_earlier_version_are_refused(tmp_path, other):
    snapshots = Snapshots(tmp_path)
    parts = {"step": 3, "epoch": 0, "variables": []}
    snapshots.save(3, parts | other if isinstance(other, dict) else [other])
    with pytest.raises(ValueError, match="by an earlier version .* delete the folder"):
        fit(compiled(), tmp_path)


def test_the_folder_is_locked_while_fit_runs(tmp_path):
    def refused():
        with pytest.raises(FolderInUse), folder_lock(tmp_path):
            pass
        raise Crash

    for _ in range(2):
        with pytest.raises(Crash), pytest.warns(UserWarning, match="AfterBatches"):
            fit(compiled(), tmp_path, [AfterBatches(2, refused)])
        with folder_lock(tmp_path):
            pass


def test_callbacks_whose_state_cannot_be_read_are_reported(tmp_path):
    class Counter(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.count = 0

    with pytest.warns(UserWarning, match="What Counter remembers is not in the snap"):
        ExactResume(tmp_path, [Counter(), AverageCheckpoints()])


def test_callbacks_that_remember_nothing_are_not_reported(tmp_path, recwarn):
    stateless = keras.callbacks.LambdaCallback(), keras.callbacks.Callback()
    ExactResume(tmp_path, stateless)
    assert not recwarn

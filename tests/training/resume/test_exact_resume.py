import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from stopping import AfterBatches, Crash
from word_reversal import dutch, english_sentences

from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import (
    AverageCheckpoints,
    Diverged,
    ExactResume,
    compile_for_training,
    new_translator,
)
from keras_vanilla.training.resume.snapshots import Snapshots

PROGRAM = Path(__file__).parents[2] / "support" / "killed_training.py"
QUIET = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}


def program(*words):
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, words)],
        capture_output=True,
        text=True,
        env=QUIET,
        timeout=300,
    )


def ends(*words):
    done = program(*words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_training_killed_three_times_ends_as_if_it_was_not(tmp_path):
    whole = ends(tmp_path / "whole")
    killed = tmp_path / "killed"
    for where, number, last in (("bytes", 3, 3), ("step", 8, 9), ("replace", 3, 12)):
        assert program(killed, "plain", where, number).returncode == -signal.SIGKILL
        assert Snapshots(killed / "snapshots").last_step() == last
    assert ends(killed) == whole
    assert whole["steps"] == 18 and whole["epochs"] == [0, 1, 2]


@pytest.mark.slow
def test_a_training_of_a_minute_killed_25_times_ends_as_if_it_was_not(tmp_path, capsys):
    began = time.monotonic()
    whole = ends(tmp_path / "whole", "whole")
    assert time.monotonic() - began > 60
    seed = int(time.time())
    draw, killed, inside = random.Random(seed), tmp_path / "killed", 0
    unfinished = killed / "snapshots" / ".unfinished"
    for number in range(25):
        unfinished.unlink(missing_ok=True)  # of the kill before
        said = tmp_path / f"process-{number + 1}.txt"
        with open(said, "w") as file:
            command = [sys.executable, str(PROGRAM), str(killed), "whole"]
            running = subprocess.Popen(command, stdout=file, stderr=file, env=QUIET)
            wait_for_an_instant(running, killed / "snapshots", draw, number)
            running.kill()
        assert running.wait() == -signal.SIGKILL, said.read_text()
        in_write = unfinished.exists()
        inside += in_write
        with capsys.disabled():
            step = Snapshots(killed / "snapshots").last_step()
            print(f"kill {number + 1}: snapshot of step {step}, in a write: {in_write}")
    assert inside >= 5
    assert ends(killed, "whole") == whole, f"seed {seed}"


def wait_for_an_instant(running, folder, draw, number):
    """Any in its first ten seconds; later on; or, each third time, inside a write."""
    if number % 5 == 4:
        time.sleep(draw.uniform(0, 10))
        return
    before = Snapshots(folder).last_step() or 0
    while (Snapshots(folder).last_step() or 0) <= before and running.poll() is None:
        time.sleep(0.01)
    time.sleep(draw.uniform(0, 3))
    while number % 3 == 0 and running.poll() is None:
        if (folder / ".unfinished").exists():
            return


# In one process, on a model that trains in no time


def data(batches=4):
    inputs = np.random.default_rng(0).normal(size=(batches * 5, 3)).astype("float32")
    pairs = tf.data.Dataset.from_tensor_slices((inputs, inputs @ np.ones((3, 2))))
    return pairs.batch(5)


def compiled(rate=0.05, seed=1, metrics=("mae",)):
    keras.utils.set_random_seed(seed)
    layers = [keras.Input((3,)), keras.layers.Dropout(0.4), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(rate), "mse", metrics=list(metrics))
    return model


def fit(model, folder, callbacks=(), crash=None, epochs=4, every=1, **settings):
    resume = ExactResume(folder, data(), callbacks, every=every)
    others = [AfterBatches(crash)] if crash else []
    settings = {"verbose": 0, "shuffle": False, "epochs": epochs, **settings}
    return model.fit(data(), callbacks=[resume, *others], **settings)


@pytest.mark.parametrize(
    ("crash", "metrics"),
    [*((after, ("mae",)) for after in (1, 3, 4, 5, 8, 16)), (6, ())],
)
def test_wherever_it_stops_it_ends_alike(tmp_path, crash, metrics):
    whole, again = compiled(metrics=metrics), compiled(seed=2, metrics=metrics)
    expected = fit(whole, tmp_path / "whole", validation_data=data())
    with pytest.raises(Crash):
        start = compiled(metrics=metrics)
        fit(start, tmp_path / "run", crash=crash, validation_data=data())
    history = fit(again, tmp_path / "run", validation_data=data())
    assert history.history == expected.history
    assert history.epoch == expected.epoch == [0, 1, 2, 3]
    for one, other in zip(whole.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_the_seeds_of_dropout_it_would_not(tmp_path):
    """The check must see what `BackupAndRestore` loses."""
    whole, again = compiled(), compiled(seed=2)
    fit(whole, tmp_path / "whole")
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
    assert not np.array_equal(whole.get_weights()[0], again.get_weights()[0])


def test_stopped_while_it_passes_batches_over_nothing_is_left_untrained(tmp_path):
    whole, again = compiled(), compiled()
    fit(whole, tmp_path / "whole")
    with pytest.raises(Crash):
        fit(again, tmp_path / "run", crash=7)
    with pytest.raises(Crash):
        fit(again, tmp_path / "run", crash=1)  # the first of three it passes over
    fit(again, tmp_path / "run")
    assert int(again.optimizer.iterations) == 16
    np.testing.assert_array_equal(whole.get_weights()[0], again.get_weights()[0])


def test_after_a_crash_another_fit_of_the_model_begins_at_its_beginning(tmp_path):
    model = compiled()
    for crash in (6, 1):
        with pytest.raises(Crash):
            fit(model, tmp_path / "run", crash=crash)
    history = model.fit(data(), epochs=2, shuffle=False, verbose=0)
    assert history.epoch == [0, 1]
    iterations = int(model.optimizer.iterations)
    model.fit(data(), shuffle=False, verbose=0)
    assert int(model.optimizer.iterations) == iterations + 4


@pytest.mark.parametrize(
    ("first_step", "initial_epoch", "shuffle"),
    [(0, 0, True), (5, 0, True), (0, 2, True), (3, 1, True), (0, 0, False)],
)
def test_batches_go_on_wherever_they_began(
    tmp_path, first_step, initial_epoch, shuffle
):
    sources = english_sentences(60, 0)
    pairs = ParallelCorpus(sources, map(dutch, sources))
    tokenizer = Tokenizer.train(lines=sources, vocabulary_size=300)
    shape = {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 8}

    def train(folder, crash=None):
        settings = {"tokens_per_batch": 256, "shuffle": shuffle}
        stream = batches(pairs, tokenizer, first_step=first_step, **settings)
        model = new_translator(pairs, "tiny", tokenizer, d_ff=8, **shape).model
        compile_for_training(model, warmup_steps=9)
        resume = ExactResume(tmp_path / folder, stream, every=2)
        model.fit(
            stream,
            steps_per_epoch=stream.steps_per_epoch,
            initial_epoch=initial_epoch,
            epochs=initial_epoch + 2,
            callbacks=[resume, *([AfterBatches(crash)] if crash else [])],
            shuffle=False,
            verbose=0,
        )
        return model.get_weights()

    whole = train("whole")
    with pytest.raises(Crash):
        train("run", crash=3)
    for one, other in zip(whole, train("run"), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_go_on_too(backend, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs {backend}")
    script = Path(__file__).parents[2] / "support" / "resumed_on_a_backend.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        env={**QUIET, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_a_finished_training_has_nothing_left_to_do_but_more_epochs(tmp_path):
    first = fit(compiled(), tmp_path / "run", epochs=2)
    model = compiled(seed=2)
    assert fit(model, tmp_path / "run", epochs=2).history == first.history
    history = fit(model, tmp_path / "run", epochs=4)
    assert history.history == fit(compiled(), tmp_path / "whole").history
    assert history.epoch == [0, 1, 2, 3]


def test_averages_logs_and_kerass_callbacks_go_on(tmp_path):
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


def test_callbacks_are_not_told_of_batches_they_have_seen(tmp_path):
    seen = []
    record = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: seen.append(batch)
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


def test_a_loss_that_is_no_number_names_step_and_last_good_snapshot(tmp_path):
    model = compiled(rate=1e30)
    with pytest.raises(
        Diverged, match="The loss is not a number after step 2"
    ) as error:
        fit(model, tmp_path)
    assert error.value.step == 2
    assert error.value.snapshot == Snapshots(tmp_path).path(1)
    state = Snapshots(tmp_path).newest()
    assert all(np.isfinite(value).all() for value in state["variables"])


def test_a_weight_that_is_no_number_is_not_kept(tmp_path):
    class Spoil(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                weights = self.model.get_weights()
                self.model.set_weights([weights[0] * np.nan, weights[1]])

    with pytest.raises(Diverged, match="A weight is not a number after step 3"):
        fit(compiled(), tmp_path, [Spoil()])
    assert Snapshots(tmp_path).last_step() == 2


def test_a_damaged_last_snapshot_costs_the_steps_since_the_one_before(tmp_path):
    whole, again = compiled(), compiled(seed=2)
    fit(whole, tmp_path / "whole")
    with pytest.raises(Crash):
        fit(compiled(), tmp_path / "run", crash=7)
    last = Snapshots(tmp_path / "run").paths()[-1]
    last.write_bytes(last.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=f"{last.name} cannot be read"):
        fit(again, tmp_path / "run")
    np.testing.assert_array_equal(whole.get_weights()[0], again.get_weights()[0])


def test_a_disk_that_fills_up_is_reported_and_the_training_goes_on(
    tmp_path, monkeypatch
):
    save = Snapshots.save

    def full(self, step, state):
        if step > 3:
            raise OSError(28, "No space left on device")
        save(self, step, state)

    monkeypatch.setattr(Snapshots, "save", full)
    whole, again = compiled(), compiled()
    with pytest.warns(UserWarning, match="No snapshot after step 4: .*No space left"):
        fit(again, tmp_path / "run")
    monkeypatch.undo()
    fit(whole, tmp_path / "whole")
    np.testing.assert_array_equal(whole.get_weights()[0], again.get_weights()[0])
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
    with pytest.raises(ValueError, match="of another model: its .* variables"):
        fit(model, tmp_path)


def test_snapshots_of_other_callbacks_are_refused(tmp_path):
    fit(compiled(), tmp_path, epochs=1)
    with pytest.raises(ValueError, match=r"callbacks=\[\]. Received: \['Av"):
        fit(compiled(), tmp_path, [AverageCheckpoints()])


def test_snapshots_of_epochs_of_another_length_are_refused(tmp_path):
    fit(compiled(), tmp_path, epochs=1)
    resume = ExactResume(tmp_path, data(3))
    with pytest.raises(ValueError, match="taken with steps=4. Received: 3"):
        compiled().fit(data(3), callbacks=[resume], verbose=0)


def test_alone_instead_of_in_a_list_it_is_refused(tmp_path):
    with pytest.raises(ValueError, match="takes a list of callbacks"):
        compiled().fit(data(), callbacks=ExactResume(tmp_path, data()), verbose=0)


def test_a_log_that_is_shorter_than_it_was_is_reported(tmp_path):
    def logged():
        return [keras.callbacks.CSVLogger(tmp_path / "log.csv")]

    fit(compiled(), tmp_path / "run", logged(), epochs=2)
    (tmp_path / "log.csv").write_text("epoch\n")
    with pytest.warns(UserWarning, match="log.csv has lost lines"):
        fit(compiled(), tmp_path / "run", logged(), epochs=3)


def test_no_step_between_snapshots_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`every` must be at least 1. Received: 0"):
        ExactResume(tmp_path, data(), every=0)

"""Two processes that train one model, killed and started again."""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from word_reversal import dutch, english_sentences
from worker_processes import free_ports

from keras_vanilla import Translator

pytestmark = pytest.mark.slow
PROGRAM = "import sys; from keras_vanilla.cli import main; sys.exit(main())"
SETTINGS = (
    "--preset tiny --vocabulary-size 320 --tokens-per-batch 512 --epochs 5 "
    "--dropout 0.1 --max-tokens 40 --warmup-steps 60 --strategy multi-worker"
).split()


def environments(backend):
    """The environment of each of two processes that train together."""
    ports = free_ports(2)
    for index in range(2):
        if backend == "jax":
            yield {
                "KERAS_BACKEND": "jax",
                "JAX_PLATFORMS": "cpu",
                "KERAS_DISTRIBUTION_JOB_ADDRESSES": f"localhost:{ports[0]}",
                "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
                "KERAS_DISTRIBUTION_PROCESS_ID": str(index),
            }
        else:
            cluster = {"worker": [f"localhost:{port}" for port in ports]}
            task = {"type": "worker", "index": index}
            yield {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


@contextlib.contextmanager
def training(backend, files, output):
    command = [sys.executable, "-c", PROGRAM, "train", *files, *SETTINGS]
    command += ["--output", str(output)]
    running = [
        subprocess.Popen(command, env={**os.environ, **each}, stdout=subprocess.DEVNULL)
        for each in environments(backend)
    ]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_two_processes_killed_at_once_resume_exactly(tmp_path, backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs {backend}")
    sources = english_sentences(700, 0)
    (tmp_path / "en").write_text("\n".join(sources))
    (tmp_path / "nl").write_text("\n".join(map(dutch, sources)))
    files = ["--source", str(tmp_path / "en"), "--target", str(tmp_path / "nl")]

    def to_the_end(output):
        with training(backend, files, output) as running:
            assert [process.wait(900) for process in running] == [0, 0]

    to_the_end(tmp_path / "whole")
    log = tmp_path / "killed" / "history.csv"
    with training(backend, files, log.parent) as running:
        while not (log.exists() and log.read_text().count("\n") >= 3):
            assert running[0].poll() is None
            time.sleep(0.05)
    assert not (log.parent / "results.json").exists()
    to_the_end(log.parent)
    assert log.read_text() == (tmp_path / "whole" / "history.csv").read_text()
    for name in ("translator.keras", "last.keras", "best.keras"):
        ends = [Translator.load(tmp_path / run / name) for run in ("whole", "killed")]
        weights = [each.model.get_weights() for each in ends]
        for one, other in zip(*weights, strict=True):
            np.testing.assert_array_equal(one, other)

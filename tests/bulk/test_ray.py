"""Ray: batches of a dataset, shards on workers, and what survives their end."""

import os
import signal
import subprocess
import sys
import time

import pytest
from word_reversal import english_sentences

from keras_vanilla._folder_lock import FolderInUse
from keras_vanilla.bulk import BulkTranslator, translate_shards
from keras_vanilla.bulk.ray_workers import with_ray

pytestmark = pytest.mark.full
SECONDS = 280


@pytest.fixture(scope="module", autouse=True)
def quiet_ray():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield pytest.importorskip("ray", reason="Ray is not installed")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Two files of 6,000 short lines; two windows each."""
    folder = tmp_path_factory.mktemp("in")
    sentences = english_sentences(6000, seed=1, lengths=range(1, 4))
    for number in range(2):
        lines = [f"{text} {number * i}" for i, text in enumerate(sentences)]
        (folder / f"part-{number}.txt").write_text("\n".join(lines) + "\n")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def expected(many, trained_file, tmp_path_factory):
    """The output of an undisturbed run in one process."""
    folder = tmp_path_factory.mktemp("expected")
    translate_shards(trained_file, many, folder)
    return {path.name: (folder / path.name).read_bytes() for path in many}


def started(model, sources, out):
    """The command line's process, in which two workers translate.

    They reserve more cores than there are, and need not wait for them.
    """
    command = [sys.executable, "-m", "keras_vanilla", "translate", str(model)]
    command += ["--input", str(sources[0].parent / "part-*.txt")]
    command += ["--output-dir", str(out), "--engine", "ray", "--workers", "2"]
    command += ["--threads", str(os.cpu_count())]
    command += ["--keep-going"]  # a few translations have no end
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for_a_window(out, process, ended=()):
    """The folder of a shard that is not done, and its worker, none that has ended."""
    stop = time.monotonic() + SECONDS
    while time.monotonic() < stop and process.poll() is None:
        for unfinished in sorted(out.glob(".translating/*/unfinished.*")):
            worker = worker_on(unfinished.parent)
            if worker and worker not in ended:
                return unfinished.parent, worker
        time.sleep(0.02)
    raise AssertionError(f"no shard was ever half done: {process.communicate()}")


def worker_on(folder):
    """The process that has a shard's lock, or had it last; 0 while that changes."""
    owner = (folder / ".lock").read_text().split()
    return int(owner[1]) if owner else 0


@pytest.fixture(scope="class")
def cluster(quiet_ray):
    # Of two cores one translates and one reads: without that, Ray waits for ever.
    quiet_ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield quiet_ray
    quiet_ray.shutdown()


class TestInARunningCluster:
    def test_batches_of_a_dataset(
        self, cluster, trained_file, trained_translator, sources
    ):
        dataset = cluster.data.read_text(str(sources[0])).map_batches(
            BulkTranslator,
            fn_constructor_args=[str(trained_file)],
            compute=cluster.data.ActorPoolStrategy(size=1),
            batch_size=16,
        )
        rows = dataset.take_all()
        texts = sources[0].read_text().splitlines()
        translations = trained_translator.translate(texts)
        expected = dict(zip(texts, translations, strict=True))
        assert {row["text"]: row["translation"] for row in rows} == expected
        assert len(rows) == len(texts)

    def test_workers_error_is_raised_unchanged(
        self, cluster, sources, tmp_path, trained_file
    ):
        sources[1].write_bytes(sources[1].read_bytes()[:-30])
        with pytest.raises(ValueError, match="part-2.txt.gz is not a whole .gz file"):
            translate_shards(trained_file, sources, tmp_path / "out", engine="ray")
        assert cluster.is_initialized()  # it is the caller's


def test_killed_driver_and_worker_lose_nothing(many, expected, tmp_path, trained_file):
    out = tmp_path / "out"
    process = started(trained_file, many, out)
    wait_for_a_window(out, process)
    with pytest.raises(
        FolderInUse, match=rf"another process \(process {process.pid} on"
    ):
        translate_shards(trained_file, many, out, engine="ray")
    process.kill()
    process.communicate()
    half = {path.name for path in out.glob("part*")}
    assert len(half) < len(many)

    ended = {worker_on(path.parent) for path in out.glob(".translating/*/.lock")}
    process = started(trained_file, many, out)
    folder, worker = wait_for_a_window(out, process, ended)
    assert worker != process.pid
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert "12,000 lines of 2 files" in errors
    assert worker_on(folder) != worker
    assert {path.name: path.read_bytes() for path in out.glob("part*")} == expected


def test_no_shards_start_no_workers(trained_file):
    assert list(with_ray([], trained_file)) == []

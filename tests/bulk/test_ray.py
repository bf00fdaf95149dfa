"""Ray: batches of a dataset, shards on workers, and what survives their end."""

import os
import signal
import subprocess
import sys
import time

import pytest
from word_reversal import english_sentences

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
    """Three files of 6,000 short lines; two windows each."""
    folder = tmp_path_factory.mktemp("in")
    sentences = english_sentences(6000, seed=1, lengths=range(1, 4))
    for number in range(3):
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
    """The command line's process, in which two workers translate."""
    command = [sys.executable, "-m", "keras_vanilla", "translate", str(model)]
    command += ["--input", str(sources[0].parent / "part-*.txt")]
    command += ["--output-dir", str(out), "--engine", "ray", "--workers", "2"]
    command += ["--keep-going"]  # a few translations have no end
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for_a_window(out, process):
    """The folder of a shard that is half done."""
    stop = time.monotonic() + SECONDS
    while time.monotonic() < stop and process.poll() is None:
        for journal in sorted(out.glob(".translating/*/journal.json")):
            if '"source": null' in journal.read_text():
                return journal.parent
        time.sleep(0.02)
    raise AssertionError(f"no shard was ever half done: {process.communicate()}")


def test_batches_of_a_dataset(quiet_ray, trained_file, trained_translator, sources):
    # Of three cores two translate and one reads: without that, Ray waits for ever.
    quiet_ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    try:
        dataset = quiet_ray.data.read_text(str(sources[0])).map_batches(
            BulkTranslator,
            fn_constructor_args=[str(trained_file)],
            compute=quiet_ray.data.ActorPoolStrategy(size=2),
            batch_size=16,
        )
        rows = dataset.take_all()
    finally:
        quiet_ray.shutdown()
    texts = sources[0].read_text().splitlines()
    expected = dict(zip(texts, trained_translator.translate(texts), strict=True))
    assert {row["text"]: row["translation"] for row in rows} == expected
    assert len(rows) == len(texts)


def test_a_killed_worker_loses_nothing(many, expected, tmp_path, trained_file):
    out = tmp_path / "out"
    process = started(trained_file, many, out)
    folder = wait_for_a_window(out, process)
    worker = int((folder / ".lock").read_text().split()[1])
    assert worker != process.pid
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert "18,000 lines of 3 files" in errors
    assert int((folder / ".lock").read_text().split()[1]) != worker
    assert {path.name: path.read_bytes() for path in out.glob("part*")} == expected


def test_a_killed_driver_loses_nothing(many, expected, tmp_path, trained_file):
    out = tmp_path / "out"
    process = started(trained_file, many, out)
    wait_for_a_window(out, process)
    process.kill()
    process.communicate()
    half = {path.name for path in out.glob("part*")}
    assert len(half) < len(many)
    _, errors = started(trained_file, many, out).communicate(timeout=SECONDS)
    assert "18,000 lines of 3 files" in errors
    assert {path.name: path.read_bytes() for path in out.glob("part*")} == expected


def test_a_second_run_at_once_is_refused(many, tmp_path, trained_file):
    out = tmp_path / "out"
    first = started(trained_file, many, out)
    wait_for_a_window(out, first)
    second = started(trained_file, many, out)
    _, errors = second.communicate(timeout=SECONDS)
    assert second.returncode == 1
    assert f"in use by another process (process {first.pid} on" in errors
    assert first.poll() is None
    first.kill()
    first.communicate()


def test_an_error_of_a_worker_is_the_users_own(sources, tmp_path, trained_file):
    sources[1].write_bytes(sources[1].read_bytes()[:-30])
    with pytest.raises(ValueError, match="part-2.txt.gz is not a whole .gz file"):
        translate_shards(trained_file, sources, tmp_path / "out", engine="ray")


def test_more_workers_than_cores_need_not_wait(sources, tmp_path, trained_file):
    settings = {"engine": "ray", "workers": os.cpu_count() + 1, "threads": 2}
    totals = translate_shards(trained_file, sources, tmp_path / "out", **settings)
    assert totals == (74, 2)


def test_nothing_to_do_starts_nothing(trained_file):
    assert list(with_ray([], trained_file)) == []

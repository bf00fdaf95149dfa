"""Parts of a token cache made by several processes at a time, spoken to by pickles.

A worker is a program of its own: `multiprocessing` would run the caller's script again,
and a fork of a process with TensorFlow's threads may never end.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor, as_completed

from keras_vanilla.data.cache.parts import Job, PartMaker

# Under the console script's name the package loads no Keras, which a worker needs not.
_PROGRAM = """
import sys
sys.argv[0] = "keras-vanilla"
from keras_vanilla.data.cache.worker import work
work(sys.stdin.buffer, sys.stdout.buffer)
"""


def make_parts(jobs: list[Job], settings: tuple, processes: int, told) -> list[dict]:
    """Makes parts, several at a time if there are several processes.

    Args:
        jobs: the parts.
        settings: arguments of `PartMaker`.
        processes: int. With 1, or with one part, all is done in this one.
        told: called with a number of lines done since, from any thread.
    Returns:
        What became of each, as `PartMaker.make` has it.
    Raises:
        RuntimeError: if a process ends before its work is done.
    """
    if min(processes, len(jobs)) < 2:
        maker = PartMaker(*settings)
        return [maker.make(job, told) for job in jobs]
    waiting, workers = deque(jobs), []
    with ThreadPoolExecutor(min(processes, len(jobs))) as threads:
        try:
            workers += [_start_worker() for _ in range(min(processes, len(jobs)))]
            fed = [threads.submit(_feed, w, settings, waiting, told) for w in workers]
            results = [pair for one in as_completed(fed) for pair in one.result()]
        finally:  # also when one has failed, or the making is interrupted
            waiting.clear()
            for worker in workers:
                worker.kill()
                worker.wait()
    results = dict(results)
    return [results[job.number] for job in jobs]


def _start_worker():
    # It finds this very package wherever it was found.
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
        start_new_session=True,  # Ctrl-C is for the one that waits
    )


def _feed(worker, settings, waiting, told):
    """Gives a worker part after part, and returns (number, result) of each."""
    results, orders = [], [settings]
    while waiting:
        try:
            job = waiting.popleft()
        except IndexError:  # another worker was faster
            break
        with contextlib.suppress(BrokenPipeError):  # that it is gone, its answer says
            for order in [*orders, job]:
                send(worker.stdin, order)
        orders = []
        results.append((job.number, _result(worker, told)))
    return results


def _result(worker, told):
    while True:
        try:
            what, value = pickle.load(worker.stdout)
        except (EOFError, pickle.UnpicklingError):  # nothing, or half a message
            raise RuntimeError(
                "A process that makes the token cache ended before its part was made, "
                f"with exit code {worker.wait()}."
            ) from None
        if what == "failed":
            raise value
        if what == "made":
            return value
        told(value)


def send(stream, value):
    """Writes a value to a process, at once."""
    pickle.dump(value, stream)
    stream.flush()

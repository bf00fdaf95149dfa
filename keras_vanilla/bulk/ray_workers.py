"""Translates shards on Ray workers, on this machine or a cluster."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from keras_vanilla._checks import extra_missing
from keras_vanilla._types import PathLike
from keras_vanilla.bulk.shard import Shard, ShardTranslator

LIVES = 20  # per worker; limits restarts if a model kills every worker


def with_ray(
    shards: Sequence[Shard],
    model: PathLike,
    workers: int | None = None,
    threads: int | None = None,
    **settings: Any,
) -> Iterator[int]:
    """Translates shards on Ray; yields the number of lines of each that is done.

    The environment variable RAY_ADDRESS specifies the cluster; the default is this
    machine. All machines of the cluster need the shards and the model under the same
    paths. If a worker is killed, another one translates its shard.

    Args:
        shards: list of Shard, with absolute paths.
        model: path, as in `open_line_translator`.
        workers: int or None. None means one per machine.
        threads: int or None. None divides the cluster's cores among the workers. Not
            supported on JAX.
        **settings: as in `open_line_translator`.
    Raises:
        ImportError: if Ray is not installed.
        RuntimeError: if workers are killed repeatedly.
        OSError, TypeError, ValueError: as in `ShardTranslator`.
    """
    if not shards:
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage reports
    try:
        import ray
    except ImportError as error:
        raise extra_missing("Workers of Ray", "ray", "ray") from error
    from ray.exceptions import RayActorError, RayTaskError
    from ray.util import ActorPool

    with _connected(ray, workers, threads):
        workers, cores = _workers_and_cores(ray, workers, threads)
        worker = ray.remote(_Worker).options(
            num_cpus=cores, max_restarts=LIVES, max_task_retries=LIVES
        )
        if keras.backend.backend() != "jax" or threads is not None:
            settings["threads"] = cores
        actors = [
            worker.remote(str(model), **settings)
            for _ in range(min(workers, len(shards)))
        ]
        pool = ActorPool(actors)
        for shard in shards:
            pool.submit(lambda actor, shard: actor.translate.remote(shard), shard)
        while pool.has_next():
            try:
                yield pool.get_next_unordered()
            except RayTaskError as error:
                raise error.cause from None
            except RayActorError as error:
                raise RuntimeError(
                    f"Ray's workers are killed again and again: {error}"
                ) from error


class _Worker:
    """Ray's actor on each worker, which opens the model before its first shard."""

    def __init__(self, model, **settings):
        self._open = lambda: ShardTranslator(model, **settings)
        self._translator = None

    def translate(self, shard: Shard) -> int:
        # Ray passes on the original error from a task, but not from a constructor.
        self._translator = self._translator or self._open()
        return sum(self._translator.translate(shard))


def _workers_and_cores(ray, workers, threads):
    """Returns the number of workers, and the number of cores per worker."""
    machines = sum(node["Alive"] for node in ray.nodes())
    cores = int(ray.cluster_resources().get("CPU", 1))
    workers = workers or machines
    return workers, threads or max(1, cores // workers)


@contextlib.contextmanager
def _connected(ray, workers, threads):
    """Connects to Ray in the block, unless the caller is already connected."""
    if ray.is_initialized():
        yield
        return
    settings = {}
    if not os.environ.get("RAY_ADDRESS"):  # local workers do not wait for cores
        settings["num_cpus"] = max(os.cpu_count(), (workers or 1) * (threads or 1))
    ray.init(logging_level="ERROR", log_to_driver=False, **settings)
    try:
        yield
    finally:
        ray.shutdown()

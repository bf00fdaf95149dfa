"""Shards on the workers of Ray, on this machine or a cluster."""

import contextlib
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from keras_vanilla._checks import extra_missing
from keras_vanilla._types import PathLike
from keras_vanilla.bulk.shard import Shard, ShardTranslator

LIVES = 20  # of a worker: a model that kills each worker must come to an end
SECONDS_BETWEEN_LOOKS = 2.0


def with_ray(
    shards: Sequence[Shard],
    model: PathLike,
    workers: int | None = None,
    threads: int | None = None,
    **settings: Any,
) -> Iterator[None]:
    """Translates shards on Ray; yields every few seconds until all are done.

    The cluster is that of the environment variable RAY_ADDRESS, or this machine. Every
    machine of it must see the shards and the model under the same paths. A shard whose
    worker is killed goes on in another one, after its last window.

    Args:
        shards: list of Shard, with absolute paths.
        model: path, as of `open_line_translator`.
        workers: int or None, which means one for each machine.
        threads: int or None, which shares the cluster's cores among the workers.
            JAX does not take it.
        **settings: as of `open_line_translator`.
    Raises:
        ImportError: if Ray is not installed.
        RuntimeError: if the workers are killed again and again.
        OSError, TypeError, ValueError: as `ShardTranslator`.
    """
    if not shards:
        return
    ray = _ray()
    from ray.exceptions import RayActorError, RayTaskError
    from ray.util import ActorPool

    with _connected(ray, workers, threads):
        workers, cores = _workers_and_cores(ray, workers, threads)
        worker = ray.remote(_Worker).options(
            num_cpus=cores, max_restarts=LIVES, max_task_retries=LIVES
        )
        if keras.backend.backend() != "jax" or threads is not None:
            settings["threads"] = cores
        made = [
            worker.remote(str(model), **settings)
            for _ in range(min(workers, len(shards)))
        ]
        pool = ActorPool(made)
        for shard in shards:
            pool.submit(lambda actor, shard: actor.translate.remote(shard), shard)
        while pool.has_next():
            with contextlib.suppress(TimeoutError):
                try:
                    pool.get_next_unordered(timeout=SECONDS_BETWEEN_LOOKS)
                except RayTaskError as error:
                    raise error.cause from None
                except RayActorError as error:
                    raise RuntimeError(
                        f"Ray's workers are killed again and again: {error}"
                    ) from error
            yield


class _Worker:
    """What Ray makes on each worker; it opens the model before its first shard."""

    def __init__(self, model, **settings):
        self._made = lambda: ShardTranslator(model, **settings)
        self._translator = None

    def translate(self, shard: Shard) -> None:
        # In a task, unlike in a constructor, an error is the user's own.
        self._translator = self._translator or self._made()
        for _ in self._translator.translate(shard):
            pass


def _ray():
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report home
    try:
        import ray
    except ImportError as error:
        raise extra_missing("Workers of Ray", "ray", "ray") from error
    return ray


def _workers_and_cores(ray, workers, threads):
    """The number of workers, and how many cores each of them reserves."""
    machines = sum(node["Alive"] for node in ray.nodes())
    cores = int(ray.cluster_resources().get("CPU", 1))
    workers = workers or machines
    threads = threads or max(1, cores // workers)
    if workers * threads > cores:
        warnings.warn(
            f"{workers} workers of {threads} threads reserve {workers * threads} "
            f"cores, and Ray has {cores}: the others wait until it has more.",
            stacklevel=2,
        )
    return workers, threads


@contextlib.contextmanager
def _connected(ray, workers, threads):
    """A connection to Ray: the caller's own, or one for this block."""
    if ray.is_initialized():
        yield
        return
    settings = {}
    if not os.environ.get("RAY_ADDRESS"):  # a local worker need not wait for cores
        settings["num_cpus"] = max(os.cpu_count(), (workers or 1) * (threads or 1))
    ray.init(logging_level="ERROR", log_to_driver=False, **settings)
    try:
        yield
    finally:
        ray.shutdown()

"""The replicas of the current strategy, which share each batch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import keras
import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True)
class Replicas:
    """Number of replicas that share a batch, and those that this process feeds.

    Args:
        count: int. Number of replicas in all processes; all take equally many rows.
        first: int. Number of the first replica that this process feeds, from 0.
        here: int. Number of replicas that this process feeds.
    """

    count: int = 1
    first: int = 0
    here: int = 1

    @property
    def in_other_processes(self) -> bool:
        """True if other processes feed some of the replicas."""
        return self.here < self.count


def replicas_in_force() -> Replicas:
    """Returns the replicas of the `tf.distribute` or `keras.distribution` scope.

    Raises:
        ValueError: if replicas cannot be split evenly over processes.
    """
    if keras.backend.backend() != "tensorflow":
        return _of_keras()
    import tensorflow as tf

    return _of_tensorflow(tf.distribute.get_strategy())


def replicas_of(model: keras.Model) -> Replicas:
    """Returns the replicas that train a model, even outside the scope of its strategy.

    Args:
        model: keras.Model.
    Raises:
        ValueError: if replicas cannot be split evenly over processes.
    """
    if keras.backend.backend() != "tensorflow":
        return _of_keras()
    return _of_tensorflow(model.distribute_strategy)


def _of_tensorflow(strategy):
    import tensorflow as tf

    count = strategy.num_replicas_in_sync
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return Replicas(count, 0, count)
    resolver = strategy.cluster_resolver
    workers = workers_of(resolver.cluster_spec().as_dict())
    here = count // max(1, len(workers))  # no workers if TF_CONFIG is not set
    mine = (resolver.task_type, resolver.task_id)
    return Replicas(count, here * workers.index(mine) if workers else 0, here)


def workers_of(cluster: dict) -> list[tuple[str, int]]:
    """Returns (type, index) of each training worker of a cluster in `TF_CONFIG`."""
    return [
        (kind, index)
        for kind in ("chief", "worker")
        for index in range(len(cluster.get(kind, ())))
    ]


def _of_keras():
    distribution = keras.distribution.distribution()
    if distribution is None:
        return Replicas()
    import jax

    mesh = distribution.device_mesh.backend_mesh
    axis = mesh.axis_names.index(distribution.batch_dim_name)
    rows = np.moveaxis(mesh.devices, axis, 0).reshape(mesh.devices.shape[axis], -1)
    holders = [{device.process_index for device in devices} for devices in rows]
    replicas_of = {
        process: [i for i, processes in enumerate(holders) if process in processes]
        for process in set().union(*holders)
    }
    mine = replicas_of.get(jax.process_index(), [])
    here = len(mine)
    uneven = any(len(replicas) != here for replicas in replicas_of.values())
    if uneven or mine != list(range(mine[0], mine[0] + here)):
        raise ValueError(
            "All processes must have the same number of replicas, with consecutive "
            f"numbers. Received: {replicas_of}"
        )
    return Replicas(len(rows), mine[0], here)


def distributed_dataset(
    dataset: "tf.data.Dataset", replicas: Replicas
) -> "tf.data.Dataset | tf.distribute.DistributedDataset":
    """Converts a dataset of this process's rows to the form that `fit` takes.

    A `MultiWorkerMirroredStrategy` would split the rows over all workers again, and
    half of them would never be read. It gets the rows of each replica instead.

    Args:
        dataset: tf.data.Dataset of batches with the same number of rows per replica.
        replicas: Replicas.
    Returns:
        A dataset of the same cardinality.
    """
    if keras.backend.backend() != "tensorflow" or not replicas.in_other_processes:
        return dataset
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    per_replica = _batches_per_replica(dataset, replicas.here)
    distributed = strategy.distribute_datasets_from_function(lambda _: per_replica)
    # It counts the elements of all replicas; a step takes one of each.
    distributed._cardinality = dataset.cardinality().numpy()
    return distributed


def _batches_per_replica(dataset, count):
    """Splits each batch into `count` batches of equal size."""
    if count == 1:
        return dataset
    import tensorflow as tf

    def split(rows):
        shape = tf.shape(rows)
        parts = tf.concat([[count, shape[0] // count], shape[1:]], axis=0)
        return tf.reshape(rows, parts)

    def split_all(*batch):
        return tf.nest.map_structure(split, batch)

    return dataset.map(split_all).unbatch()


def mean_over_processes(model: keras.Model, number: int) -> float:
    """Returns the mean of a number over all processes, which must all call this.

    Args:
        model: keras.Model that was created in its strategy's scope.
        number: int. The number of this process.
    Returns:
        Float, equal in all processes.
    """
    if keras.backend.backend() == "jax":
        from jax.experimental import multihost_utils

        return float(multihost_utils.process_allgather(np.int32(number)).mean())
    import tensorflow as tf

    strategy = model.distribute_strategy
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(float(number), tf.float64)
    )
    return float(strategy.reduce(tf.distribute.ReduceOp.MEAN, values, axis=None))

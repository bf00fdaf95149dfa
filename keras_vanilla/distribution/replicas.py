"""The devices that share each batch, as the strategy in force has them."""

import sys
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Replicas:
    """How many replicas share a batch, and which of them this process feeds.

    Args:
        count: int. Replicas over all processes: each takes as many rows as any other.
        first: int. Number of the first that this process feeds.
        here: int. How many it feeds.
    """

    count: int = 1
    first: int = 0
    here: int = 1

    @property
    def in_other_processes(self) -> bool:
        """Whether some rows of a batch are made elsewhere."""
        return self.here < self.count


def replicas_in_force() -> Replicas:
    """Those of the `tf.distribute` scope or the `keras.distribution` one is in.

    Raises:
        ValueError: if replicas cannot be split evenly over processes.
    """
    import keras  # here, since a process that makes a token cache does without

    if keras.backend.backend() == "tensorflow":
        return _of_tensorflow()
    return _of_keras()


def _of_tensorflow():
    if "tensorflow" not in sys.modules:  # then nobody can be in a scope
        return Replicas()
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    count = strategy.num_replicas_in_sync
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return Replicas(count, 0, count)
    resolver = strategy.cluster_resolver
    workers = workers_of(resolver.cluster_spec().as_dict())
    here = count // max(1, len(workers))  # none where TF_CONFIG is not set
    mine = (resolver.task_type, resolver.task_id)
    return Replicas(count, here * workers.index(mine) if workers else 0, here)


def workers_of(cluster) -> list[tuple[str, int]]:
    """The (type, index) of all that train, of a cluster as `TF_CONFIG` has it."""
    return [
        (kind, index)
        for kind in ("chief", "worker")
        for index in range(len(cluster.get(kind, ())))
    ]


def _of_keras():
    import keras

    distribution = keras.distribution.distribution()
    if distribution is None:
        return Replicas()
    import jax

    mesh = distribution.device_mesh.backend_mesh
    axis = mesh.axis_names.index(distribution.batch_dim_name)
    rows = np.moveaxis(mesh.devices, axis, 0).reshape(mesh.devices.shape[axis], -1)
    holders = [{device.process_index for device in devices} for devices in rows]
    held = {
        process: [i for i, who in enumerate(holders) if process in who]
        for process in set().union(*holders)
    }
    mine = held.get(jax.process_index(), [])
    here = len(mine)
    uneven = any(len(replicas) != here for replicas in held.values())
    if uneven or mine != list(range(mine[0], mine[0] + here)):
        raise ValueError(
            "Each process must hold as many replicas as any other, side by side. "
            f"Received: {held}"
        )
    return Replicas(len(rows), mine[0], here)


def as_strategy_takes(dataset, replicas):
    """A dataset of this process's rows, in the form that `fit` takes.

    A `MultiWorkerMirroredStrategy` would split them over all workers once more, and
    half of them would never be read: it is handed them per replica instead.

    Args:
        dataset: tf.data.Dataset of batches of as many rows for each replica here.
        replicas: Replicas.
    Returns:
        A dataset, of the same cardinality.
    """
    import keras

    if keras.backend.backend() != "tensorflow" or not replicas.in_other_processes:
        return dataset
    import tensorflow as tf

    strategy = tf.distribute.get_strategy()
    per_replica = _one_by_one(dataset, replicas.here)
    distributed = strategy.distribute_datasets_from_function(lambda _: per_replica)
    # It counts the elements of one replica after the other; a step takes one of each.
    distributed._cardinality = dataset.cardinality().numpy()
    return distributed


def _one_by_one(dataset, count):
    """Each batch as `count` batches of equal height."""
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

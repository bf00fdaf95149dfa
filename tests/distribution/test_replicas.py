from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from keras_vanilla.distribution.replicas import (
    Replicas,
    distributed_dataset,
    replicas_in_force,
)


def dataset():
    """Three batches of four rows, which say where they come from."""
    rows = tf.constant([[10 * batch + row for row in range(4)] for batch in range(3)])
    found = tf.data.Dataset.from_tensor_slices(rows)
    return found.map(lambda row: ({"ids": row}, tf.stack([row, -row], axis=1)))


def test_replicas_of_one_process_are_all_here():
    assert replicas_in_force() == Replicas(1, 0, 1)
    with tf.distribute.OneDeviceStrategy("/CPU:0").scope():
        assert replicas_in_force() == Replicas(1, 0, 1)
    assert [Replicas(4, 2, n).in_other_processes for n in (4, 2)] == [False, True]
    whole = dataset()
    assert distributed_dataset(whole, Replicas(2, 0, 2)) is whole


def in_a_cluster(monkeypatch, kind, index, cluster, count):
    class Strategy:
        num_replicas_in_sync = count
        cluster_resolver = SimpleNamespace(
            cluster_spec=lambda: tf.train.ClusterSpec(cluster),
            task_type=kind,
            task_id=index,
        )

        def distribute_datasets_from_function(self, make):
            self.given = make(None)
            return SimpleNamespace(given=self.given)

    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", Strategy)
    monkeypatch.setattr(tf.distribute, "get_strategy", Strategy)


@pytest.mark.parametrize(("kind", "first"), [("chief", 0), ("worker", 2)])
def test_replicas_of_chief_come_first(kind, first, monkeypatch):
    cluster = {"worker": ["b:1", "c:1"], "chief": ["a:1"]}
    in_a_cluster(monkeypatch, kind, 0, cluster, 6)
    assert replicas_in_force() == Replicas(count=6, first=first, here=2)


@pytest.mark.parametrize("here", [1, 2])
def test_each_replica_of_worker_gets_its_rows(here, monkeypatch):
    in_a_cluster(monkeypatch, "worker", 0, {"worker": ["a:1", "b:1"]}, 2 * here)
    found = distributed_dataset(dataset(), Replicas(2 * here, 0, here))
    assert found._cardinality == 3
    elements = list(found.given)
    assert len(elements) == 3 * here
    for number in range(3):
        parts = elements[number * here : (number + 1) * here]
        for inputs, _ in parts:
            assert inputs["ids"].shape == 4 // here
        ids = np.concatenate([inputs["ids"] for inputs, _ in parts])
        labels = np.concatenate([labels for _, labels in parts])
        np.testing.assert_array_equal(ids, 10 * number + np.arange(4))
        np.testing.assert_array_equal(labels, np.stack([ids, -ids], axis=1))


def test_distributed_dataset_has_private_cardinality():
    strategy = tf.distribute.OneDeviceStrategy("/CPU:0")
    found = strategy.distribute_datasets_from_function(lambda _: dataset())
    assert found._cardinality == found.cardinality == 3

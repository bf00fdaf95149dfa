"""Checks the data of `fit` on the host before each step."""

import contextlib
import copy
import functools
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_vanilla._checks import check_ids, outside_vocabulary, refuse_ragged
from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.steps.loss_share import are_per_pair


class InvalidBatch(ValueError):
    """A batch that must not be trained on; `in_one_sentence` finds it by its name."""


class CheckedData:
    """Checks the data of `fit`, `evaluate` and `predict`.

    Ids must be in their vocabulary and rows at most `max_length` tokens long. Labels
    must be ids unless the loss ignores them; weights must be finite and at least 0, one
    per label or one per pair. Labels are only checked for the losses of this package
    and Keras's `SparseCategoricalCrossentropy`.

    Arrays are checked once, before training. Batches of a `tf.data.Dataset`, a
    generator, a `PyDataset` or a PyTorch `DataLoader` are checked one by one before
    their steps, so a refused batch never changes the weights. The compiled step is not
    changed.

    Args:
        model: Transformer, whose loss is used if it is compiled.
    """

    def __init__(self, model: keras.Model):
        source, target = model.source_vocabulary_size, model.target_vocabulary_size
        self._sizes = {"source": source, "target": target}
        self._max_length, self._pad_id = model.max_length, model.pad_id
        loss = model.loss if model.compiled else None
        self._ignores_by_weight = hasattr(loss, "token_weights")  # a loss of ours
        is_of_keras = isinstance(loss, keras.losses.SparseCategoricalCrossentropy)
        self._has_labels = self._ignores_by_weight or is_of_keras
        name = "pad_id" if self._ignores_by_weight else "ignore_class"
        self._ignored = getattr(loss, name, None)

    def of_arguments(self, arguments: dict) -> dict:
        """Checks arrays, and wraps other data so that each batch is checked.

        Args:
            arguments: dict of arguments of `fit`, `evaluate` or `predict` by name.
        Raises:
            ValueError: if arrays are invalid; for other data, when they are read.
        """
        if isinstance(arguments.get("x"), dict):
            names = "x", "y", "sample_weight"
            self.batch(tuple(arguments.get(name) for name in names))
        names = [n for n in ("x", "validation_data") if arguments.get(n) is not None]
        return arguments | {name: self._each_batch(arguments[name]) for name in names}

    def batch(self, batch: Any) -> Any:
        """Checks a batch and returns it.

        Args:
            batch: tuple of arrays: inputs, and optionally labels and weights.
        Raises:
            InvalidBatch: if the batch is invalid.
        """
        refuse_ragged("A Transformer", keras.tree.flatten(batch))
        arrays = keras.tree.map_structure(
            lambda each: None if each is None else ops.convert_to_numpy(each),
            keras.utils.unpack_x_y_sample_weight(batch),
        )
        try:
            self._check(*arrays)
        except ValueError as error:
            raise InvalidBatch(str(error)) from None
        return batch

    def _check(self, inputs, labels, weights):
        for side, size in self._sizes.items():
            ids = inputs.get(f"{side}_ids") if isinstance(inputs, dict) else None
            if ids is None or ids.ndim != 2:
                continue  # the model refuses this itself
            check_ids(f"{side} id", ids, size)
            after = ids[:, self._max_length :]
            if (after != self._pad_id).any():
                raise ValueError(
                    f"Each row of `{side}_ids` must have at most {self._max_length} "
                    "tokens, the model's `max_length`, and padding after them. "
                    f"Received there: {after[after != self._pad_id][0]}"
                )
        if getattr(labels, "ndim", 0) != 2:
            return  # labels of a different loss
        counted = labels != self._ignored
        if weights is not None:
            wrong = ~(np.isfinite(weights) & (weights >= 0))
            if wrong.any():
                raise ValueError(
                    "Each number in `sample_weight` must be finite and at least 0. "
                    f"Received: {weights[wrong][0]}"
                )
            if are_per_pair(weights.shape, labels.shape):
                weights = weights.reshape(-1, 1) * counted
            counted = weights > 0 if self._ignores_by_weight else counted
        if not self._has_labels:
            return
        size = self._sizes["target"]
        wrong = counted & outside_vocabulary("label", labels, size)[0]
        if wrong.any():
            remedy = "the weight 0" if self._ignores_by_weight else "`ignore_class`"
            raise ValueError(
                f"Labels must be ids from 0 to {size - 1} where they count; give "
                f"others {remedy}. Received: {labels[wrong][0]}"
            )

    def _each_batch(self, data):
        """Checks arrays; wraps data so that batches are checked when they are read."""
        tf, torch = sys.modules.get("tensorflow"), sys.modules.get("torch")
        if isinstance(data, tuple | list):
            return self.batch(data)
        if tf and isinstance(data, tf.data.Dataset):
            return self._dataset(tf, data)
        if isinstance(data, types.GeneratorType):
            return (self.batch(batch) for batch in data)
        if isinstance(data, keras.utils.PyDataset):
            return _CheckedPyDataset(data, self.batch)
        if torch and isinstance(data, torch.utils.data.DataLoader):
            data, collate = copy.copy(data), data.collate_fn
            # Runs in worker processes.
            data.collate_fn = functools.partial(_collated, collate, self.batch)
        return data

    def _dataset(self, tf, data):
        """Checks each batch of a dataset in Python; shapes and cardinality are kept."""

        def check(*batch):
            while batch[-1] is None:  # there are no weights, or no labels either
                batch = batch[:-1]
            tensors = tf.nest.flatten(batch)
            refuse_ragged("A Transformer", tensors)

            def in_python(*arrays):
                self.batch(tf.nest.pack_sequence_as(batch, arrays))
                return []

            with tf.control_dependencies([tf.numpy_function(in_python, tensors, [])]):
                checked = tf.nest.map_structure(tf.identity, batch)
            return checked if len(batch) > 1 else checked[0]

        return data.map(tf.autograph.experimental.do_not_convert(check))


@contextlib.contextmanager
def in_one_sentence(model: keras.Model) -> Iterator[None]:
    """Context manager in which a refused batch raises a one-sentence ValueError.

    Otherwise TensorFlow's message fills pages, and JAX loses the weights.

    Args:
        model: keras.Model that reads the data.
    """
    try:
        with keras_internals.weights_kept(model):
            yield
    except Exception as error:
        whole = f"{type(error).__name__}: {error}"
        sentences = re.findall(r"InvalidBatch: (.*)", whole)
        if not sentences:
            raise
        raise ValueError(sentences[-1]) from None  # PyTorch's workers put others before


def _collated(collate, check, samples):
    return check(collate(samples))


class _CheckedPyDataset(keras.utils.PyDataset):
    """Wraps a PyDataset so that its batches are checked."""

    def __init__(self, data, check):
        super().__init__(data.workers, data.use_multiprocessing, data.max_queue_size)
        self._data, self._check = data, check

    def __getitem__(self, index):
        return self._check(self._data[index])

    @property
    def num_batches(self):
        return self._data.num_batches

    def on_epoch_begin(self):
        self._data.on_epoch_begin()

    def on_epoch_end(self):
        self._data.on_epoch_end()

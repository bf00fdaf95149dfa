"""Checks the data of `fit` on the host before each step."""

import contextlib
import copy
import functools
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_vanilla._checks import check_ids, outside_vocabulary, refuse_ragged
from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.steps.loss_share import are_per_pair


class InvalidBatch(ValueError):
    """A batch that must not be trained on; `in_one_sentence` finds it by its name."""


@dataclass(frozen=True)
class CheckedData:
    """Checks the data of `fit`, `evaluate` and `predict`, and completes weights.

    Ids must be in their vocabulary and rows at most `max_length` tokens long. Labels
    must be ids unless the loss ignores them; weights must be finite and at least 0, one
    per label or one per pair, which becomes that of each of its labels except padding.
    Labels are only checked for the losses of this package and Keras's
    `SparseCategoricalCrossentropy`.

    Arrays are checked once, before training. Batches of a `tf.data.Dataset`, a
    generator, a `PyDataset` or a PyTorch `DataLoader` are checked one by one before
    their steps, so a refused batch never changes the weights. The compiled step is not
    changed.

    Args:
        sizes: dict of vocabulary sizes for "source" and "target".
        max_length: int. Largest number of tokens per row.
        pad_id: int. The padding id.
        has_labels: bool. Whether labels must be ids.
        ignored: int or None. The label that is ignored.
        by_weight: bool. Whether labels of weight 0 are ignored too.
    """

    sizes: dict
    max_length: int
    pad_id: int
    has_labels: bool
    ignored: int | None
    by_weight: bool

    @classmethod
    def of(cls, model: keras.Model) -> "CheckedData":
        """Creates the check for a Transformer and its loss, if it is compiled."""
        loss = model.loss if model.compiled else None
        is_ours = hasattr(loss, "token_weights")
        is_of_keras = isinstance(loss, keras.losses.SparseCategoricalCrossentropy)
        source, target = model.source_vocabulary_size, model.target_vocabulary_size
        return cls(
            sizes={"source": source, "target": target},
            max_length=model.max_length,
            pad_id=model.pad_id,
            has_labels=is_ours or is_of_keras,
            ignored=loss.pad_id if is_ours else getattr(loss, "ignore_class", None),
            by_weight=is_ours,
        )

    def of_arguments(self, arguments: dict) -> dict:
        """Checks arrays, and wraps other data so that each batch is checked.

        Args:
            arguments: dict of arguments of `fit`, `evaluate` or `predict` by name.
        Raises:
            ValueError: if arrays are invalid; for other data, when they are read.
        """
        checked = {**arguments}
        if isinstance(arguments.get("x"), dict):
            names = "x", "y", "sample_weight"
            batch = self.batch(tuple(arguments.get(name) for name in names))
            if arguments.get("sample_weight") is not None:
                checked["sample_weight"] = batch[2]
        for name in ("x", "validation_data"):
            value = arguments.get(name)
            if isinstance(value, tuple | list):
                checked[name] = self.batch(value)
            elif value is not None:
                checked[name] = self._each_batch(value)
        return checked

    def batch(self, batch: Any) -> Any:
        """Checks a batch and returns it, with a weight per label if it has weights.

        Args:
            batch: tuple of arrays: inputs, and optionally labels and weights.
        Raises:
            InvalidBatch: if the batch is invalid.
        """
        refuse_ragged("A Transformer", keras.tree.flatten(batch))
        given = keras.utils.unpack_x_y_sample_weight(batch)
        arrays = keras.tree.map_structure(
            lambda each: None if each is None else ops.convert_to_numpy(each), given
        )
        try:
            weights = self._checked_weights(*arrays)
        except ValueError as error:
            raise InvalidBatch(str(error)) from None
        return batch if weights is arrays[2] else (*given[:2], weights)

    def _checked_weights(self, inputs, labels, weights):
        """Checks arrays and returns the weights, per label where labels are (B, T)."""
        for side, size in self.sizes.items():
            ids = inputs.get(f"{side}_ids") if isinstance(inputs, dict) else None
            if ids is None or ids.ndim != 2:
                continue  # the model refuses this itself
            check_ids(f"{side} id", ids, size)
            after = ids[:, self.max_length :]
            if (after != self.pad_id).any():
                raise ValueError(
                    f"Each row of `{side}_ids` must have at most {self.max_length} "
                    "tokens, the model's `max_length`, and padding after them. "
                    f"Received there: {after[after != self.pad_id][0]}"
                )
        if getattr(labels, "ndim", 0) != 2:
            return weights  # labels of a different loss
        if weights is not None:
            wrong = ~(np.isfinite(weights) & (weights >= 0))
            if wrong.any():
                raise ValueError(
                    "Each number in `sample_weight` must be finite and at least 0. "
                    f"Received: {weights[wrong][0]}"
                )
            if are_per_pair(weights.shape, labels.shape):
                padding = self.ignored if self.by_weight else self.pad_id
                weights = weights.reshape(-1, 1) * (labels != padding)
                weights = weights.astype("float32")
        if self.has_labels:
            by_weight = self.by_weight and weights is not None
            counted = weights > 0 if by_weight else labels != self.ignored
            wrong = outside_vocabulary("label", labels, self.sizes["target"])[0]
            if (wrong & counted).any():
                remedy = "the weight 0" if self.by_weight else "`ignore_class`"
                raise ValueError(
                    f"Labels must be ids from 0 to {self.sizes['target'] - 1} where "
                    f"they count; give others {remedy}. Received: "
                    f"{labels[wrong & counted][0]}"
                )
        return weights

    def _each_batch(self, data):
        """Wraps data so that batches are checked when read; unknown types unchanged."""
        tf, torch = sys.modules.get("tensorflow"), sys.modules.get("torch")
        if tf and isinstance(data, tf.data.Dataset):
            return self._dataset(tf, data)
        if isinstance(data, types.GeneratorType):
            return (self.batch(batch) for batch in data)
        if isinstance(data, keras.utils.PyDataset):
            return _CheckedPyDataset(data, self.batch)
        if torch and isinstance(data, torch.utils.data.DataLoader):
            data = copy.copy(data)
            collate = data.collate_fn  # runs in worker processes
            data.collate_fn = functools.partial(_collated, collate, self.batch)
        return data

    def _dataset(self, tf, data):
        """Checks each batch of a dataset in Python; shapes and cardinality are kept."""

        def check(*batch):
            while batch[-1] is None:  # there are no weights, or no labels either
                batch = batch[:-1]
            tensors = tf.nest.flatten(batch)
            refuse_ragged("A Transformer", tensors)
            if any(tensor.shape.rank is None for tensor in tensors):
                raise ValueError(
                    "The tensors of a dataset must have a known number of axes: name "
                    "it in `output_signature`, or by `tf.ensure_shape`. Received: "
                    f"{data.element_spec}"
                )
            shapes = [tensor.shape for tensor in tensors]
            if len(batch) == 3 and len(getattr(batch[1], "shape", ())) == 2:
                shapes[-1] = batch[1].shape  # there is one weight per label

            def in_python(*arrays):
                checked = self.batch(tf.nest.pack_sequence_as(batch, arrays))
                pairs = zip(tf.nest.flatten(checked), arrays, strict=True)
                return [each.astype(array.dtype) for each, array in pairs]

            checked = tf.numpy_function(in_python, tensors, [t.dtype for t in tensors])
            for tensor, shape in zip(checked, shapes, strict=True):
                tensor.set_shape(shape)
            checked = tf.nest.pack_sequence_as(batch, checked)
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
    batch = collate(samples)
    checked = check(batch)
    if checked is batch:
        return batch
    weights = sys.modules["torch"].as_tensor(checked[2])  # Keras takes tensors alone
    return (*checked[:2], weights)


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

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
from keras import ops

from keras_vanilla._checks import outside_vocabulary
from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.steps.loss_share import are_per_pair


@dataclass(frozen=True)
class CheckedData:
    """Checks the data of `fit`, `evaluate` and `predict`.

    Ids must be in their vocabulary and rows at most `max_length` tokens long. Labels
    must be ids unless the loss ignores them; weights must be at least 0, one per label
    or one per pair. Labels are only checked for the losses of this package and Keras's
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
            self.batch(
                (arguments["x"], arguments.get("y"), arguments.get("sample_weight"))
            )
        for name in ("x", "validation_data"):
            value = arguments.get(name)
            if isinstance(value, tuple | list):
                self.batch(value)
            elif value is not None:
                checked[name] = self._each_batch(value)
        return checked

    def batch(self, batch: Any) -> Any:
        """Checks a batch and returns it unchanged.

        Args:
            batch: tuple of arrays: inputs, and optionally labels and weights.
        Raises:
            ValueError: if the batch is invalid.
        """
        arrays = keras.tree.map_structure(
            lambda each: None if each is None else ops.convert_to_numpy(each),
            keras.utils.unpack_x_y_sample_weight(batch),
        )
        for wrong, received, sentence in self._faults(*arrays):
            if wrong.any():
                raise ValueError(f"{sentence} {received[wrong][0]}")
        return batch

    def _each_batch(self, data):
        """Wraps data so that batches are checked when read; unknown types unchanged."""
        tf, torch = sys.modules.get("tensorflow"), sys.modules.get("torch")
        if tf and isinstance(data, tf.data.Dataset):
            specs = tf.nest.flatten(data.element_spec)
            if all(isinstance(each, tf.TensorSpec) and each.shape for each in specs):
                check = tf.autograph.experimental.do_not_convert(self._tensors)
                return data.map(check)
        if isinstance(data, types.GeneratorType):
            return (self.batch(batch) for batch in data)
        if isinstance(data, keras.utils.PyDataset):
            return _CheckedPyDataset(data, self.batch)
        if torch and isinstance(data, torch.utils.data.DataLoader):
            data = copy.copy(data)
            data.collate_fn = functools.partial(_collated, data.collate_fn, self.batch)
        return data

    def _tensors(self, *batch):
        """Same as `batch`, inside the graph of a dataset, which runs on the host."""
        tf = sys.modules["tensorflow"]  # imported already, for the dataset

        def as_int64(tensor):  # comparisons with a size must not overflow
            is_integer = tensor is not None and tensor.dtype.is_integer
            return tf.cast(tensor, tf.int64) if is_integer else tensor

        def refuse():
            for wrong, received, sentence in faults:
                first = tf.boolean_mask(received, wrong)[:1]
                text = tf.strings.reduce_join(tf.strings.as_string(first))
                right = tf.logical_not(tf.reduce_any(wrong))
                tf.debugging.Assert(right, [tf.strings.join([f"{sentence} ", text])])

        inputs, labels, weights = tf.nest.map_structure(
            as_int64, keras.utils.unpack_x_y_sample_weight(batch)
        )
        if weights is not None and len(getattr(labels, "shape", ())) == 2:
            axes = 1 if are_per_pair(weights.shape, labels.shape) else 2
            sizes, expected = tf.shape(weights), tf.shape(labels)[:axes]
            same = tf.reduce_all(sizes[:axes] == expected)
            text = tf.strings.format(_OTHER_SHAPE, (sizes, expected))
            with tf.control_dependencies([tf.debugging.Assert(same, [text])]):
                weights = tf.identity(weights)
        faults = list(self._faults(inputs, labels, weights))
        any_wrong = [tf.reduce_any(wrong) for wrong, *_ in faults]
        tf.cond(tf.reduce_any(any_wrong), refuse, lambda: None)
        return batch if len(batch) > 1 else batch[0]

    def _faults(self, inputs, labels, weights):
        """Yields each check as (mask of invalid values, values, error sentence).

        It uses operators only, so inputs may be arrays or tensors of a graph.
        """
        for side, size in self.sizes.items():
            ids = inputs.get(f"{side}_ids") if isinstance(inputs, dict) else None
            if ids is None or len(ids.shape) != 2:
                continue  # the model refuses this itself
            outside, sentence = outside_vocabulary(f"{side} id", ids, size)
            yield outside, ids, sentence
            after = ids[:, self.max_length :]
            yield (
                after != self.pad_id,
                after,
                f"Each row of `{side}_ids` must have at most {self.max_length} tokens, "
                "the model's `max_length`, and padding after them. Received there:",
            )
        if len(getattr(labels, "shape", ())) != 2:
            return  # labels of a different loss
        per_pair = weights is None or are_per_pair(weights.shape, labels.shape)
        if weights is not None:
            sentence = "Each number in `sample_weight` must be at least 0. Received:"
            yield ~(weights >= 0), weights, sentence
        if self.has_labels:
            size, remedy = self.sizes["target"], "`ignore_class`"
            wrong, _ = outside_vocabulary("label", labels, size)
            if self.ignored is not None and (per_pair or not self.by_weight):
                wrong = wrong & (labels != self.ignored)
            if self.by_weight:
                remedy = "the weight 0"
            if self.by_weight and weights is not None:
                rows = weights[:, None] if len(weights.shape) == 1 else weights
                wrong = wrong & (rows > 0)
            yield (
                wrong,
                labels,
                f"Labels must be ids from 0 to {size - 1} where they count; give "
                f"others {remedy}. Received:",
            )


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
        sentence = _SENTENCE.search(str(error))
        if sentence is None or sentence[0] == str(error):
            raise
        text = sentence[0].removesuffix("]").replace("\\'", "'")  # format of `Assert`
        raise ValueError(text) from None


_OTHER_SHAPE = (
    "`sample_weight` must have the shape of the labels, (B, T), or a weight per pair, "
    "(B,). Received: shape {}, instead of {}"
)
_SENTENCE = re.compile(
    r"(Each (source id|target id|row of|number in)|Labels|`sample_weight`)[^\n]* must "
    r"[^\n]*Received[^\n]*"
)


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

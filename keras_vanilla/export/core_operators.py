"""Parts of SavedModels that use only TensorFlow's own operators."""

from collections.abc import Sequence

import tensorflow as tf

from keras_vanilla._operators import Operators
from keras_vanilla._types import Tensor
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph
from keras_vanilla.tokenizer import Tokenizer

_OCTETS = [bytes([octet]) for octet in range(256)]


class CoreTokenizer:
    """Maps strings to ids and back in a graph, without tensorflow-text.

    Strings are processed one by one with the operators of a `.tflite` file. The ids are
    those of `sentencepiece`.

    Args:
        tokenizer: Tokenizer.
        max_ids: int. Length of the longest row of ids to decode.
    Raises:
        ValueError: as in `TokenizerGraph`.
    """

    def __init__(self, tokenizer: Tokenizer, max_ids: int):
        self._graph = TokenizerGraph(tokenizer, max_target_ids=max_ids)
        self._end_id, self._max_ids = tokenizer.end_id, max_ids

    def source_graph(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Returns a ragged int32 tensor (B, None); each row ends with `end_id`."""
        row = tf.RaggedTensorSpec([None], tf.int32)
        return tf.map_fn(self._ids, strings, fn_output_signature=row)

    def detokenize_graph(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the strings (B,) of int32 ids (B, L)."""
        return tf.map_fn(self._text, ids, fn_output_signature=tf.string)

    def _ids(self, string):
        ids, _ = self._graph.encode.ids_of(tf.io.decode_raw(string, tf.uint8))
        return tf.concat([ids, [self._end_id]], axis=0)

    def _text(self, ids):
        missing = self._max_ids - tf.size(ids)
        ids = tf.pad(ids, [[0, missing]], constant_values=self._end_id)
        ids = tf.ensure_shape(ids, [self._max_ids])
        octets, length, _ = self._graph.decode(ids)
        characters = tf.gather(_OCTETS, tf.cast(octets[:length], tf.int32))
        return tf.strings.reduce_join(characters)


class CoreOperators(Operators):
    """Computes with TensorFlow's own operators."""

    def slice_update(
        self, inputs: Tensor, start_indices: Sequence, updates: Tensor
    ) -> Tensor:
        """`keras.ops.slice_update` without its XLA operator.

        Some servers lack that operator, or lack it for their GPU. Slices may be partial
        along one axis; along the others they start at the Python int 0.
        """
        inputs, updates = map(tf.convert_to_tensor, (inputs, updates))
        starts = {
            axis: start
            for axis, start in enumerate(start_indices)
            if not (isinstance(start, int) and start == 0)
        }
        if len(starts) > 1:
            raise NotImplementedError(f"A slice along the axes {list(starts)} at once.")
        axis, start = next(iter(starts.items()), (0, 0))
        end, size = start + tf.shape(updates)[axis], tf.shape(inputs)[axis]
        before = tf.split(inputs, [start, size - start], axis)[0]
        after = tf.split(inputs, [end, size - end], axis)[1]
        joined = tf.concat([before, updates, after], axis)
        return tf.ensure_shape(joined, inputs.shape)

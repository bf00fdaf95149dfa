"""Exports a translator as a SavedModel, which maps batches of strings to strings."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from keras_vanilla._atomic_write import atomic_path, refuse_unwritable
from keras_vanilla._checks import check_choice
from keras_vanilla._operators import Operators, use_operators
from keras_vanilla._types import PathLike, Tensor
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export.conversion import check_translator
from keras_vanilla.export.phone_operators import DynamicShapes
from keras_vanilla.export.search_graph import SearchGraph
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph
from keras_vanilla.export.tensorflow_graphs import require_tensorflow, save_graph
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.tokenizer.protocol import tokens_before_text
from keras_vanilla.tokenizer.tokenizer import require_sentencepiece
from keras_vanilla.translation import Translator

_BYTES = [bytes([byte]) for byte in range(256)]


def saved_model(
    translator: Translator, folder: PathLike, core_operators: bool | None = None
) -> None:
    """Writes a translator with its search and tokenizer as a SavedModel.

    It has two signatures, for any batch size and length:

        translate        text string (B,) -> text string (B,), too_long bool (B,)
        translate_ids    source_ids int32 (B, S) -> ids int32 (B, L)

    Loading it requires only tensorflow and tensorflow-text. With `core_operators` it
    requires only tensorflow, and also loads on servers without XLA; the tokenizer is
    then that of a `.tflite` file.

    A text without pieces results in "". A text with more tokens than the model takes
    also results in "", and `too_long` is True for it; other texts of the batch are
    translated. A row of ids that is too long, or an id outside the vocabulary, raises
    `tf.errors.InvalidArgumentError` in the call.

    Args:
        translator: Translator.
        folder: path of a folder that does not exist yet. It is written atomically, and
            missing parent folders are created.
        core_operators: bool. Whether to use only TensorFlow's own operators; None means
            where tensorflow-text is not installed.
    Raises:
        FileExistsError: if `folder` exists.
        TypeError: if `translator` is not a Translator.
        RuntimeError: if Keras does not run on TensorFlow.
        ValueError: if `core_operators` is not a bool or None, or the tokenizer is not
            SentencePiece's, or, with `core_operators`, not a unigram model that can be
            converted to operators.
    """
    folder = Path(folder)
    check_translator(translator)
    check_choice("core_operators", core_operators, (None, False, True))
    if core_operators is None:
        core_operators = importlib.util.find_spec("tensorflow_text") is None
    refuse_unwritable(folder)
    require_tensorflow()
    operators = CoreOperators() if core_operators else Operators()
    graph = _TranslatorGraph(translator.in_float32(), core_operators)
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        temporary.mkdir()  # fails if the name is taken
        with use_operators(operators):
            # Keras's ExportArchive would write every variable twice.
            save_graph(graph, temporary)


class _TranslatorGraph(tf.Module):
    def __init__(self, translator, core_operators):
        super().__init__()
        tokenizer, model = translator.tokenizer, translator.model
        require_sentencepiece("A SavedModel", tokenizer)
        # TensorFlow warns of untracked resources if a module has a Keras model.
        self.weights = [weight.value for weight in model.weights]
        self._search_graph = SearchGraph(model, DecodingConfig())
        # One function, so that the signatures share one search.
        self._search = tf.function(
            self._search_graph,
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )
        if core_operators:
            tokenizer = CoreTokenizer(tokenizer, model.max_length)
        self._to_ids = tokenizer.source_graph
        self._to_text = tokenizer.detokenize_graph
        self._pad_id, self._end_id = model.pad_id, model.end_id
        self._vocabulary_size = model.source_vocabulary_size
        self._max_length = model.max_length
        self._blank = tokens_before_text(translator.tokenizer) + 1

    def signatures(self):
        """Returns the functions of the SavedModel, by name."""
        text = tf.TensorSpec([None], tf.string, name="text")
        source_ids = tf.TensorSpec([None, None], tf.int32, name="source_ids")
        return {
            "translate": tf.function(self._translate, [text], autograph=False),
            "translate_ids": tf.function(
                self._translate_ids, [source_ids], autograph=False
            ),
        }

    def _translate(self, text):
        source_ids = self._to_ids(text)
        lengths = source_ids.row_lengths()
        too_long = lengths > self._max_length
        padded = source_ids.to_tensor(self._pad_id)[:, : self._max_length]
        # Texts that are too long are searched as the shortest source.
        first = tf.range(tf.shape(padded)[1]) == 0
        shortest = tf.where(first, self._end_id, self._pad_id)
        padded = tf.where(too_long[:, tf.newaxis], shortest, padded)
        text = self._to_text(self._search(padded)[0])
        return {
            "text": tf.where(too_long | (lengths <= self._blank), "", text),
            "too_long": too_long,
        }

    def _translate_ids(self, source_ids):
        known = (source_ids >= 0) & (source_ids < self._vocabulary_size)
        real = tf.cast(source_ids != self._pad_id, tf.int32)
        longest = tf.reduce_max(tf.pad(tf.reduce_sum(real, axis=1), [[0, 1]]))
        of_ids = f"Source ids must be at least 0 and below {self._vocabulary_size}."
        of_rows = f"A row of source_ids may have at most {self._max_length} tokens."
        checks = [
            tf.debugging.Assert(
                tf.reduce_all(known),
                [f"{of_ids} Received:", tf.boolean_mask(source_ids, ~known)],
            ),
            tf.debugging.Assert(
                longest <= self._max_length, [f"{of_rows} Received:", longest]
            ),
        ]
        with tf.control_dependencies(checks):
            return {"ids": self._search(tf.identity(source_ids))[0]}


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
        with use_operators(CoreOperators()):
            return tf.map_fn(self._ids, strings, fn_output_signature=row)

    def detokenize_graph(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the strings (B,) of int32 ids (B, L)."""
        with use_operators(CoreOperators()):
            return tf.map_fn(self._text, ids, fn_output_signature=tf.string)

    def _ids(self, string):
        text = tf.io.decode_raw(string, tf.uint8)
        ids, _, _ = self._graph.encode.ids_of(text, tf.size(text))
        return tf.concat([ids, [self._end_id]], axis=0)

    def _text(self, ids):
        missing = self._max_ids - tf.size(ids)
        ids = tf.pad(ids, [[0, missing]], constant_values=self._end_id)
        ids = tf.ensure_shape(ids, [self._max_ids])
        text_bytes, length, _ = self._graph.decode(ids)
        characters = tf.gather(_BYTES, tf.cast(text_bytes[:length], tf.int32))
        return tf.strings.reduce_join(characters)


class CoreOperators(DynamicShapes):
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

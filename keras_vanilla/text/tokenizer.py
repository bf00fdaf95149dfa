"""Text to ids and back, by SentencePiece."""

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import sentencepiece

from keras_vanilla.text.lines import Lines
from keras_vanilla.text.vocabulary import learn_vocabulary


class Tokenizer:
    """SentencePiece models of one or two languages, and the special ids around them.

    Every sequence ends with `end_id` and none starts with `start_id`: an empty line is
    `[end_id]`. `sentencepiece` defines the ids; inside TensorFlow graphs
    tensorflow-text gives the same ones, except where two segmentations of a line have
    exactly the same score.

    Args:
        source_model: bytes of a SentencePiece model.
        target_model: bytes of the target language's; None means the source's.
        pad_id: int. Fills up short sequences of a batch.
        unknown_id: int. Stands for what has no piece.
        start_id: int. The target's first input.
        end_id: int. Closes every sequence.
    Raises:
        TypeError: if a model is not bytes.
        ValueError: if bytes are no SentencePiece model, or its ids are not these.
    """

    def __init__(
        self,
        source_model: bytes,
        target_model: bytes | None = None,
        pad_id: int = 0,
        unknown_id: int = 1,
        start_id: int = 2,
        end_id: int = 3,
    ):
        self.pad_id, self.unknown_id = pad_id, unknown_id
        self.start_id, self.end_id = start_id, end_id
        self.source_model = source_model
        self.target_model = source_model if target_model is None else target_model
        self._source = self._load(source_model, "source_model")
        self._target = self._source
        if self.target_model != source_model:
            self._target = self._load(target_model, "target_model")

    @classmethod
    def train(
        cls,
        files: Iterable | None = None,
        lines: Iterable[str] | None = None,
        vocabulary_size: int = 8000,
        model_type: str = "unigram",
        seed: int = 0,
    ) -> "Tokenizer":
        """Learns one vocabulary for both languages from text.

        nmt_nfkc normalisation; every character of the text is a piece, and any other
        falls to the 256 byte pieces. The same text gives the same model.

        Args:
            files: paths of UTF-8 text, gzip when they end in ".gz"; or
            lines: strings.
            vocabulary_size: int. Pieces, with the four special ones. A size the text
                cannot fill is lowered, with a warning.
            model_type: "unigram" or "bpe". Unigram models alone can go to mobile.
            seed: int. Kept for training that samples: now every line is read, once,
                and nothing is drawn.
        Raises:
            TypeError: if `files` or `lines` is one str.
            ValueError: unless exactly one of the two is given; if they hold no text or
                none in UTF-8; if the model type is another; if the vocabulary is too
                small for the byte pieces and the characters, naming the least size.
        """
        del seed
        if (files is None) == (lines is None):
            raise ValueError("Tokenizer.train expects either `files` or `lines`.")
        if files is not None:
            paths = _several(files, "files")
            lines = (line for path in paths for line in Lines.read(path))
        else:
            lines = Lines.of(_several(lines, "lines"))
        tokenizer = cls(learn_vocabulary(lines, vocabulary_size, model_type))
        if tokenizer.vocabulary_size != vocabulary_size:
            warnings.warn(
                f"The text fills a vocabulary of {tokenizer.vocabulary_size} pieces, "
                f"not of {vocabulary_size}: that is now its size.",
                stacklevel=2,
            )
        return tokenizer

    @property
    def vocabulary_size(self) -> int:
        """Number of source ids."""
        return self._source.get_piece_size()

    @property
    def target_vocabulary_size(self) -> int:
        """Number of target ids."""
        return self._target.get_piece_size()

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Source ids of each line, `end_id` last.

        Args:
            lines: list of str.
        Raises:
            TypeError: if `lines` is one str, or holds anything but str.
            ValueError: if a line holds an unpaired surrogate.
        """
        return self._encode(self._source, lines)

    def encode_target(self, lines: Sequence[str]) -> list[list[int]]:
        """Target ids of each line, `end_id` last; see `encode`."""
        return self._encode(self._target, lines)

    def decode(self, ids) -> list[str]:
        """The target text of each sequence, cut at its first `end_id`.

        Args:
            ids: list of lists of int, or integer array (B, T); pads and starts vanish.
        Raises:
            TypeError: if `ids` is not a list of sequences of int.
            ValueError: if an id is outside the target vocabulary.
        """
        pieces = [self._pieces(row) for row in _rows(ids)]
        return self._target.decode(pieces) if pieces else []

    def source_graph(self, strings):
        """Source ids inside a TensorFlow graph.

        Args:
            strings: string tensor (B,) or list of str.
        Returns:
            Ragged int32 tensor (B, None), `end_id` last in every row.
        """
        return self._graph_ids(self.source_model, strings)

    def target_graph(self, strings):
        """Target ids inside a TensorFlow graph; see `source_graph`."""
        return self._graph_ids(self.target_model, strings)

    def detokenize_graph(self, ids):
        """The text of target ids inside a TensorFlow graph, as `decode` gives it.

        Args:
            ids: int32 tensor (B, L).
        Returns:
            String tensor (B,).
        """
        import tensorflow as tf

        ids = tf.ensure_shape(tf.convert_to_tensor(ids, tf.int32), [None, None])
        ended = tf.cumsum(tf.cast(ids == self.end_id, tf.int32), axis=1) > 0
        kept = ~ended & (ids != self.pad_id) & (ids != self.start_id)
        pieces = tf.ragged.boolean_mask(ids, kept)
        return _graph_tokenizer(self.target_model).detokenize(pieces)

    def _load(self, model, name):
        if not isinstance(model, bytes):
            raise TypeError(f"`{name}` must be bytes. Received: {type(model).__name__}")
        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise ValueError(
                f"`{name}` is not a SentencePiece model. Received: {len(model)} bytes"
            ) from None
        theirs = (
            processor.pad_id(),
            processor.unk_id(),
            processor.bos_id(),
            processor.eos_id(),
        )
        ours = (self.pad_id, self.unknown_id, self.start_id, self.end_id)
        if theirs != ours:
            raise ValueError(
                f"`{name}` has other special ids (pad, unknown, start, end) than the "
                f"tokenizer. Expected: {ours}. Received: {theirs}"
            )
        return processor

    def _encode(self, processor, lines):
        lines = _several(lines, "lines")
        for number, line in enumerate(lines, start=1):
            if not isinstance(line, str):
                raise TypeError(
                    f"`lines` must hold str. Received: {type(line).__name__} at line "
                    f"{number}"
                )
        try:
            return [ids + [self.end_id] for ids in processor.encode(lines)]
        except TypeError:
            Lines.of(lines)  # names the line that has no UTF-8 form
            raise

    def _pieces(self, row):
        size = self.target_vocabulary_size
        for id_ in row[(row < 0) | (row >= size)]:
            raise ValueError(
                f"Id {id_} is outside the target vocabulary of {size} ids."
            )
        ended = np.cumsum(row == self.end_id) > 0
        return row[~ended & (row != self.pad_id) & (row != self.start_id)].tolist()

    def _graph_ids(self, model, strings):
        import tensorflow as tf

        strings = tf.ensure_shape(tf.convert_to_tensor(strings, tf.string), [None])
        end = tf.fill([tf.size(strings), 1], self.end_id)
        return tf.concat([_graph_tokenizer(model).tokenize(strings), end], axis=1)


def _graph_tokenizer(model):
    """A new one for each graph: TensorFlow drops kept ones when a seed is set."""
    import tensorflow as tf
    import tensorflow_text

    return tensorflow_text.SentencepieceTokenizer(model, out_type=tf.int32)


def _several(values, name):
    """A list of the values; one value alone would be read letter by letter."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"`{name}` must be a list. Received: {values!r:.60}")
    return list(values)


def _rows(ids):
    """Each sequence of ids as an int64 array."""
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__len__"):
        raise TypeError(f"`ids` must be a list of lists of int. Received: {ids!r:.60}")
    for row in ids if isinstance(ids, (list, tuple)) else np.asarray(ids):
        row = np.asarray(row)
        if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
            raise TypeError(
                f"`ids` must be a list of lists of int. Received a row: {row!r:.60}"
            )
        yield row.astype(np.int64)

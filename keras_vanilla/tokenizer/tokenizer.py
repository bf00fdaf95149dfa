"""The SentencePiece tokenizer."""

import hashlib
import itertools
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from keras_vanilla.tokenizer import tf_text
from keras_vanilla.tokenizer.id_rows import (
    check_iterable,
    checked_lines,
    checked_rows,
    ids_of_text,
)
from keras_vanilla.tokenizer.sampling import SegmentationSampler
from keras_vanilla.tokenizer.special_ids import SpecialIds, load_model, special_ids
from keras_vanilla.tokenizer.training import learn_vocabulary

if TYPE_CHECKING:
    import tensorflow as tf

# SentencePiece's mark for a byte that forms no character, first with the space after.
MALFORMED = re.compile("^(?:\ufffd+ ?)+|\ufffd")


class Tokenizer:
    """Maps text to ids and back with the SentencePiece models of one or two languages.

    Every sequence ends with `end_id`, and none starts with `start_id`: an empty line is
    `[end_id]`. The ids are those of `sentencepiece`; inside TensorFlow graphs,
    tensorflow-text gives the same ids, unless two segmentations of a line have exactly
    the same score.

    The special ids are those of the models. A missing pad, start or end id is replaced
    by the next free id after the last piece of the larger model. It is included in the
    vocabulary sizes; in the smaller model the ids in between are unused.

    Args:
        source_model: bytes of a SentencePiece model.
        target_model: bytes of the target language's model; None means `source_model`.
        pad_id: int. Pads the short sequences of a batch.
        unknown_id: int. Replaces text that has no piece.
        start_id: int. The decoder's first input.
        end_id: int. The last id of every sequence.
    Raises:
        TypeError: if a model is not bytes.
        ValueError: if bytes are not a SentencePiece model, the special ids are not
            those of the models, or two special ids are the same.
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
        self.source_model = source_model
        self.target_model = source_model if target_model is None else target_model
        self._source = load_model(self.source_model, "`source_model`")
        self._target = load_model(self.target_model, "`target_model`")
        self._special_ids = SpecialIds(pad_id, unknown_id, start_id, end_id)
        self.pad_id, self.unknown_id, self.start_id, self.end_id = self._special_ids
        expected = self._expected_special_ids()
        if self._special_ids != expected:
            raise ValueError(
                "The special ids must be those of the SentencePiece model. "
                f"Expected: {expected}. Received: {self._special_ids}"
            )

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int | None = None,
        model_type: str = "unigram",
        user_defined_symbols: Sequence[str] = (),
        split_digits: bool = False,
    ) -> "Tokenizer":
        """Learns one vocabulary for both languages from text.

        Text is normalised with nmt_nfkc. Every character of the text is a piece; other
        characters are encoded with the 256 byte pieces. The same text gives the same
        model. If the text has more than 2 million lines, every n-th line is used.

        The default size depends on the total number of lines in both languages:

            lines    below 40,000   2,000,000   20,000,000   any more
            pieces          4,000       8,000       16,000     32,000

        A small text needs a small vocabulary: in a large one, most pieces are too rare
        for a model to learn. The size is at least 260 plus twice the number of
        different characters, so that Chinese vocabularies have longer pieces too.

        Args:
            lines: iterable of str, which is read several times: a list, or
                `keras_vanilla.data.FileLines(*paths)` to read files without keeping
                them in memory. The lines of an iterator are kept in memory.
            vocabulary_size: int. Number of pieces, including the four special ones. It
                is lowered, with a warning, if the text is too small for it. None means
                the size in the table, or less if the text is too small.
            model_type: "unigram" or "bpe". Only unigram models can be exported to
                mobile.
            user_defined_symbols: list of str without white space, such as the language
                tags ["<2fr>", "<2de>"]. Each is one piece wherever it occurs.
            split_digits: bool. Make each digit one piece, so that numbers that the text
                lacks have the pieces of all others.
        Raises:
            TypeError: if `lines` or the symbols are one str, or not all items are str.
            ValueError: if there is no text; if a line has an unpaired surrogate; if the
                model type is unknown; if a symbol is empty, has white space, occurs
                twice, or is in every vocabulary, such as <0x41>; if the vocabulary is
                too small for the byte pieces, the symbols and the characters (the error
                gives the required size).
        Source: Sennrich & Zhang 2019, "Revisiting Low-Resource Neural Machine
            Translation", for small vocabularies with little text.
        """
        model = learn_vocabulary(
            check_iterable("lines", lines),
            vocabulary_size,
            model_type,
            user_defined_symbols,
            split_digits,
        )
        tokenizer = cls(model)
        _warn_if_lowered("text", tokenizer.vocabulary_size, vocabulary_size)
        return tokenizer

    @classmethod
    def train_separate(
        cls,
        source_lines: Iterable[str],
        target_lines: Iterable[str],
        vocabulary_size: int | None = None,
        model_type: str = "unigram",
        split_digits: bool = False,
    ) -> "Tokenizer":
        """Learns one vocabulary per language, each from the lines of that language.

        Args:
            source_lines: iterable of str, as in `train`.
            target_lines: iterable of str, in the other language.
            vocabulary_size: int. Number of pieces in each vocabulary; None chooses each
                size as in `train`.
            model_type: "unigram" or "bpe", as in `train`.
            split_digits: bool, as in `train`.
        Raises:
            TypeError, ValueError: same as `train`, for either text.
        """
        texts = {"source_lines": source_lines, "target_lines": target_lines}
        for name, text in texts.items():
            check_iterable(name, text)
        tokenizer = cls(
            *(
                learn_vocabulary(
                    text, vocabulary_size, model_type, split_digits=split_digits
                )
                for text in texts.values()
            )
        )
        _warn_if_lowered("source", tokenizer.vocabulary_size, vocabulary_size)
        _warn_if_lowered("target", tokenizer.target_vocabulary_size, vocabulary_size)
        return tokenizer

    @classmethod
    def from_files(
        cls, source: str | os.PathLike, target: str | os.PathLike | None = None
    ) -> "Tokenizer":
        """Reads SentencePiece models of any type, with their special ids.

        Missing special ids are added after the pieces, see `Tokenizer`.

        Args:
            source: path of a ".model" file.
            target: path of the target language's model; None means `source`.
        Raises:
            FileNotFoundError, IsADirectoryError: if a path is not a file.
            ValueError: if a file is not a SentencePiece model, two models have
                different special ids, or two special ids of a model are the same.
        """
        files = [source] if target is None else [source, target]
        models = [Path(file).read_bytes() for file in files]
        named = zip(files, models, strict=True)
        ids = special_ids({file: load_model(model, file) for file, model in named})
        return cls(*models, **ids._asdict())

    @property
    def vocabulary_size(self) -> int:
        """Number of source ids."""
        return self._size(self._source)

    @property
    def target_vocabulary_size(self) -> int:
        """Number of target ids."""
        return self._size(self._target)

    @property
    def shares_vocabulary(self) -> bool:
        """True if source and target have the same model."""
        return self.source_model == self.target_model

    @property
    def symbols(self) -> list[str]:
        """The user-defined symbols of both models, such as language tags."""
        from sentencepiece.sentencepiece_model_pb2 import ModelProto

        models = {self.source_model, self.target_model}
        pieces = itertools.chain(*(ModelProto.FromString(x).pieces for x in models))
        return sorted({x.piece for x in pieces if x.type == x.USER_DEFINED})

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines the ids of a text."""
        models = self.source_model, self.target_model
        digests = [hashlib.sha256(model).hexdigest() for model in models]
        return hashlib.sha256(f"{digests} {self._special_ids}".encode()).hexdigest()

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Source ids of each line, `end_id` last; uses all processor cores.

        Args:
            lines: list of str.
        Raises:
            TypeError: if `lines` is one str, or not all items are str.
            ValueError: if a line has an unpaired surrogate.
        """
        return self._encode(self._source, lines)

    def encode_target(self, lines: Sequence[str]) -> list[list[int]]:
        """Target ids of each line, `end_id` last; see `encode`."""
        return self._encode(self._target, lines)

    def decode(self, ids: Sequence[Sequence[int]] | np.ndarray) -> list[str]:
        """The target text of each sequence, cut at its first `end_id`.

        Args:
            ids: list of lists of int, or integer array (B, T); pads and starts are
                left out, and bytes that form no character.
        Raises:
            TypeError: if `ids` is not a list of sequences of int.
            ValueError: if an id is outside the target vocabulary.
        """
        pieces = [self._pieces(row) for row in checked_rows(ids)]
        texts = self._target.decode(pieces) if pieces else []
        return [MALFORMED.sub("", text) for text in texts]

    def decode_source(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The normalised source text of each sequence from `encode`.

        Args:
            ids: list of lists of int, each with its end.
        """
        return self._source.decode([list(map(int, row[:-1])) for row in ids])

    def samplers(self, alpha: float) -> tuple[SegmentationSampler, SegmentationSampler]:
        """The samplers of other segmentations of source ids and target ids.

        Args:
            alpha: float, as for `SegmentationSampler`.
        Raises:
            ValueError: if a model is not unigram, or `alpha` is out of range.
        Example:
            source_sampler, _ = tokenizer.samplers(0.2)
            source_sampler(ids, random.Random(7))
        """
        return (
            SegmentationSampler(self.source_model, alpha, self.vocabulary_size),
            SegmentationSampler(self.target_model, alpha, self.target_vocabulary_size),
        )

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """The SentencePiece pieces of source ids; "▁" marks the start of a word.

        Args:
            ids: list of int, without special ids.
        """
        return self._source.id_to_piece(list(map(int, ids)))

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of target ids; see `source_pieces`."""
        return self._target.id_to_piece(list(map(int, ids)))

    def source_graph(self, strings: "Sequence[str] | tf.Tensor") -> "tf.RaggedTensor":
        """Source ids inside a TensorFlow graph.

        Args:
            strings: string tensor (B,) or list of str.
        Returns:
            Ragged int32 tensor (B, None), `end_id` last in every row.
        """
        return tf_text.encode(self.source_model, strings, self.end_id)

    def detokenize_graph(self, ids: "tf.Tensor") -> "tf.Tensor":
        """Decodes target ids inside a TensorFlow graph; see `decode`.

        Args:
            ids: int32 tensor (B, L).
        Returns:
            String tensor (B,).
        """
        return tf_text.decode(self.target_model, ids, self._special_ids)

    def get_config(self) -> dict[str, int]:
        """The arguments of this tokenizer, without the models."""
        return self._special_ids._asdict()

    def _expected_special_ids(self):
        return special_ids(
            {"`source_model`": self._source, "`target_model`": self._target}
        )

    def _size(self, processor):
        return max(processor.get_piece_size(), max(self._special_ids) + 1)

    def _encode(self, processor, lines):
        rows = processor.encode(checked_lines(lines))
        for ids in rows:
            ids.append(self.end_id)
        return rows

    def _pieces(self, row):
        row = ids_of_text(row, self.target_vocabulary_size, self)
        # The smaller of two models has unused ids before the added special ids.
        unused = row >= self._target.get_piece_size()
        return np.where(unused, self.unknown_id, row).tolist()


def _warn_if_lowered(text, size, wanted):
    if wanted not in (None, size):
        warnings.warn(
            f"The {text} fills a vocabulary of {size} pieces, not of {wanted}: the "
            f"vocabulary size is now {size}.",
            stacklevel=3,
        )


def require_sentencepiece(what: str, tokenizer: object) -> None:
    """Refuses a tokenizer that is not a `Tokenizer`, if SentencePiece is needed.

    Args:
        what: str. The feature that needs it, for the error.
        tokenizer: the received value.
    Raises:
        ValueError: if `tokenizer` is not a `Tokenizer`.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise ValueError(
            f"{what} needs a SentencePiece tokenizer, because the tokenizer is a part "
            f"of it. Received: a {type(tokenizer).__name__}; export a .tflite of the "
            "form 'steps', and tokenize and search outside it"
        )

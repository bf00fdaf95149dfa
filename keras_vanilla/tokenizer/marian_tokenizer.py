"""Text to the ids of a Marian vocabulary and back, as in Hugging Face's class."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vanilla._checks import check_choice, check_integer
from keras_vanilla.tokenizer import tf_text
from keras_vanilla.tokenizer.id_rows import checked_lines
from keras_vanilla.tokenizer.marian_vocabulary import CODE, MarianVocabulary
from keras_vanilla.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tensorflow as tf


class MarianTokenizer(Tokenizer):
    """Maps text to the ids of a Marian vocabulary and back.

    The ids are those of Hugging Face's class of the same name. SentencePiece segments
    the text, and each piece gets the id of the token with the same text:

        a piece that is a token        its id
        a piece that is not a token    `unknown_id`
        text without a piece           the id of the token that equals this text, such
                                       as a letter of the other language, or
                                       `unknown_id`
        ">>fra<<" at the beginning     the id of that token, or `unknown_id`; the rest
                                       is segmented

    Texts cannot contain special ids: "</s>" in a text is four letters, whereas Hugging
    Face encodes it as the end. As there, only SentencePiece normalises the text.

    Piece i of a model is token i of the vocabulary. Tokens that are not pieces of a
    language are unused in its model; pieces that are not tokens follow the last token.
    `keras_vanilla.interop.tokenizer_from_marian` creates such models.

    Args:
        source_model: bytes of a SentencePiece model.
        target_model: bytes of the target language's model; None means `source_model`.
        pad_id, unknown_id, end_id: int. As for `Tokenizer`.
        start_id: int. The decoder's first input: the pad, as in Marian, or the start
            of the models.
        vocabulary_size: int or None. Number of source tokens; None means all pieces.
        target_vocabulary_size: int or None. The same for the target.
        target_language: str or None. With "fra", every source that has a piece starts
            with the id of ">>fra<<", and codes in texts are not read.
        reads_codes: bool. False treats ">>fra<<" at the beginning of a text as ordinary
            text, for models other than Marian's.
    Attributes:
        source, target: MarianVocabulary.
    Raises:
        TypeError: same as `Tokenizer`.
        ValueError: same as `Tokenizer`, and if a size is above the number of pieces, or
            the vocabulary has no code for the language.
    """

    def __init__(
        self,
        source_model: bytes,
        target_model: bytes | None = None,
        pad_id: int = 0,
        unknown_id: int = 1,
        start_id: int = 2,
        end_id: int = 3,
        vocabulary_size: int | None = None,
        target_vocabulary_size: int | None = None,
        target_language: str | None = None,
        reads_codes: bool = True,
    ):
        super().__init__(
            source_model, target_model, pad_id, unknown_id, start_id, end_id
        )
        self.source = self._vocabulary("vocabulary_size", vocabulary_size, self._source)
        self.target = self._vocabulary(
            "target_vocabulary_size", target_vocabulary_size, self._target
        )
        self.reads_codes = bool(reads_codes)
        self.target_language = target_language
        if target_language is not None:
            check_choice("target_language", target_language, self.languages)

    @property
    def vocabulary_size(self) -> int:
        """Number of source tokens."""
        return self.source.size

    @property
    def target_vocabulary_size(self) -> int:
        """Number of target tokens."""
        return self.target.size

    @property
    def shares_vocabulary(self) -> bool:
        """True if source and target have the same tokens, in the same order."""
        if self.source.size != self.target.size:
            return False
        ids = list(range(min(self.source.size, self._source.get_piece_size())))
        return self.source_pieces(ids) == self.target_pieces(ids)

    @property
    def languages(self) -> list[str]:
        """The languages with a code in sources: "fra" for the token ">>fra<<"."""
        return [code[2:-2] for code in self.source.codes if self.reads_codes]

    @property
    def code(self) -> str | None:
        """The token with which every source starts, or None."""
        return None if self.target_language is None else f">>{self.target_language}<<"

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines the ids of a text."""
        content = f"{super().digest} {self.get_config()}"
        return hashlib.sha256(content.encode()).hexdigest()

    def with_target_language(self, language: str | None) -> "MarianTokenizer":
        """Returns a tokenizer that puts the code of a language before every source.

        Args:
            language: str, one of `languages`; None reads the codes in texts.
        Raises:
            ValueError: if the language is unknown.
        """
        config = self.get_config() | {"target_language": language}
        return type(self)(self.source_model, self.target_model, **config)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Source ids of each line, `end_id` last; uses all processor cores.

        Args:
            lines: list of str.
        Raises:
            TypeError: if `lines` is one str, or not all items are str.
            ValueError: if a line has an unpaired surrogate, or starts with a code such
                as ">>fra<<" that is not a token, although other codes are.
        """
        return self._encode_tokens(self.source, lines, self.code)

    def encode_target(self, lines: Sequence[str]) -> list[list[int]]:
        """Target ids of each line, `end_id` last; see `encode`."""
        return self._encode_tokens(self.target, lines)

    def code_of(self, text: str) -> str:
        """The code at the beginning of a source text, such as ">>fra<<", or ""."""
        splits = self.reads_codes and not self.code
        code = CODE.match(text) if splits else None
        return code[0] if code else ""

    def decode(self, ids: Sequence[Sequence[int]] | np.ndarray) -> list[str]:
        """The target text of each sequence, cut at its first `end_id`.

        As in Hugging Face with `skip_special_tokens=True`, unknown ids are left out and
        white space is removed at both ends.

        Args:
            ids: list of lists of int, or integer array (B, T).
        Raises:
            TypeError, ValueError: same as `Tokenizer.decode`.
        """
        return [text.strip() for text in super().decode(ids)]

    def source_graph(self, strings: "Sequence[str] | tf.Tensor") -> "tf.RaggedTensor":
        """Source ids inside a TensorFlow graph; unknown codes become `unknown_id`.

        Args:
            strings: string tensor (B,) or list of str.
        Returns:
            Ragged int32 tensor (B, None), `end_id` last in every row.
        """
        return tf_text.encode_tokens(
            self.source_model,
            strings,
            self.source.size,
            self._special_ids,
            self.code,
            self.reads_codes,
        )

    def detokenize_graph(self, ids: "tf.Tensor") -> "tf.Tensor":
        """Decodes target ids inside a TensorFlow graph; see `decode`.

        Args:
            ids: int32 tensor (B, L).
        Returns:
            String tensor (B,).
        """
        import tensorflow as tf

        return tf.strings.strip(super().detokenize_graph(ids))

    def get_config(self) -> dict[str, int | str | bool | None]:
        """The arguments of this tokenizer, without the models."""
        return super().get_config() | {
            "vocabulary_size": self.source.size,
            "target_vocabulary_size": self.target.size,
            "target_language": self.target_language,
            "reads_codes": self.reads_codes,
        }

    def _encode_tokens(self, vocabulary, lines, code=None):
        lines = checked_lines(lines)
        before = [[] if code is None else [vocabulary.codes[code]]] * len(lines)
        if code is None and self.reads_codes:
            before, lines = vocabulary.split_codes(lines)
        rows = self._encode(vocabulary.processor, lines)
        vocabulary.correct(rows, lines)
        return [
            row if code and len(row) == 1 else [*ids, *row]
            for ids, row in zip(before, rows, strict=True)
        ]

    def _expected_special_ids(self):
        expected = super()._expected_special_ids()
        if self.start_id == self.pad_id:
            return expected._replace(start_id=expected.pad_id)
        return expected

    def _vocabulary(self, name, size, processor):
        least, most = max(self._special_ids) + 1, self._size(processor)
        size = most if size is None else check_integer(name, size, least, most)
        return MarianVocabulary(processor, size)

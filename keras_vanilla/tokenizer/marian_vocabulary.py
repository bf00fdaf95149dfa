"""A Marian vocabulary of one language, around a SentencePiece model."""

import re
from collections.abc import Sequence
from functools import cached_property

import sentencepiece

from keras_vanilla._checks import some_of

CODE = re.compile(">>.*?<<", re.DOTALL)  # a language code in Marian
TYPED_CODE = re.compile(r">>[\w+-]+<<")  # never part of other text


class MarianVocabulary:
    """The tokens of one language; piece i of its SentencePiece model is token i.

    Pieces that are not tokens follow the last token.

    Args:
        processor: SentencePieceProcessor of the model.
        size: int. Number of tokens.
    Attributes:
        processor, size: the arguments.
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor, size: int):
        self.processor, self.size = processor, size
        self._unknown_id = processor.unk_id()

    @cached_property
    def other_tokens(self) -> dict[str, int]:
        """The tokens that segmentation never produces, and their ids.

        These are the tokens of the other language, and the language codes.
        """
        ids = list(range(min(self.size, self.processor.get_piece_size())))
        unused = self.processor.is_unused(ids)
        ids = [id_ for id_, is_unused in zip(ids, unused, strict=True) if is_unused]
        return dict(zip(self.processor.id_to_piece(ids), ids, strict=True))

    @cached_property
    def codes(self) -> dict[str, int]:
        """The language codes, such as ">>fra<<", and their ids."""
        tokens = self.other_tokens.items()
        return {token: id_ for token, id_ in tokens if CODE.fullmatch(token)}

    @cached_property
    def texts(self) -> dict[str, int]:
        """The other tokens without known characters, which unknown text can equal.

        SentencePiece joins adjacent unknown characters to one piece.
        """
        return {
            token: id_
            for token, id_ in self.other_tokens.items()
            if not any(map(self._is_segmented, token))
        }

    def split_codes(self, lines: Sequence[str]) -> tuple[list[list[int]], list[str]]:
        """The ids of the code at the beginning of each line, and the rest of the line.

        Args:
            lines: list of str.
        Raises:
            ValueError: if the vocabulary has codes, and a line starts with another one.
        """
        ids, rests = [], []
        for line in lines:
            code = CODE.match(line)
            code = code[0] if code else ""
            ids.append([self._code_id(line, code)] if code else [])
            rests.append(line[len(code) :])
        return ids, rests

    def correct(self, rows: Sequence[list[int]], lines: Sequence[str]) -> None:
        """Replaces SentencePiece's ids of each line by those of tokens.

        Args:
            rows: list of lists of int, which are changed in place.
            lines: list of str.
        """
        for row, line in zip(rows, lines, strict=True):
            if self._unknown_id in row:
                texts = self.processor.encode(line, out_type=str)
                for position, text in enumerate(texts):
                    if row[position] == self._unknown_id:
                        row[position] = self.other_tokens.get(text, self._unknown_id)
            if max(row, default=0) >= self.size:
                row[:] = [id_ if id_ < self.size else self._unknown_id for id_ in row]

    def _is_segmented(self, character):
        id_ = self.processor.piece_to_id(character)
        return id_ != self._unknown_id and not self.processor.is_unused(id_)

    def _code_id(self, line, code):
        if code not in self.codes:
            if self.codes and TYPED_CODE.fullmatch(code):
                raise ValueError(
                    f"A text begins with {code!r}, which is not in the vocabulary: "
                    f"{line[:40]!r}. It has {some_of(list(self.codes), 20)}"
                )
        return self.codes.get(code, self._unknown_id)

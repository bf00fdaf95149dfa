"""How long the texts and ids of an exported file may be."""

from collections.abc import Sequence
from dataclasses import dataclass

from keras_vanilla._checks import check_integer
from keras_vanilla.decoding.hypothesis_end import longest_output
from keras_vanilla.models.transformer import Transformer

USUAL_LENGTH = 128
LONGEST_TEXT = 2**20  # bytes; the tokenizer's tensors are some hundred times as long


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long the texts and ids of an exported file may be.

    Attributes:
        max_bytes: int. Longest text, in bytes of UTF-8; infinite without a limit.
        max_source_length: int. Longest source in tokens, the end included (S).
        max_length: int. The same for the output.
    """

    max_bytes: int | float
    max_source_length: int | float
    max_length: int | float

    @classmethod
    def of_model(
        cls,
        model: Transformer,
        max_bytes: int,
        max_source_length: int | None = None,
        max_length: int | None = None,
    ) -> "Limits":
        """The limits of a file that is made from a model.

        Args:
            model: has `max_length`, which no length exceeds.
            max_bytes: int.
            max_source_length: int or None; None means 128, or the model's `max_length`
                where that is less.
            max_length: int or None, the same.
        Raises:
            ValueError: if a limit is not an integer of at least 1, a length is above
                the model's, or the bytes are more than a million.
        """

        def length(name, value):
            if value is None:
                return min(USUAL_LENGTH, model.max_length)
            value = check_integer(name, value, 1)
            if value > model.max_length:
                raise ValueError(
                    f"`{name}` must be at most the model's `max_length`, "
                    f"{model.max_length}. Received: {value}"
                )
            return value

        return cls(
            max_bytes=check_integer("max_bytes", max_bytes, 1, LONGEST_TEXT),
            max_source_length=length("max_source_length", max_source_length),
            max_length=length("max_length", max_length),
        )

    @property
    def output_length(self) -> int:
        """The length L of every output, pads included."""
        return longest_output(self.max_source_length, self.max_length)

    def take(self, sentence: str, source: Sequence[int]) -> bool:
        """Whether a sentence with these source ids is short enough for the file."""
        return self._excess(sentence, source) is None

    def refuse_longer(
        self, sentences: Sequence[str], sources: Sequence[Sequence[int]]
    ) -> None:
        """Refuses sentences that are too long for the file.

        Args:
            sentences: list of str.
            sources: their source ids.
        Raises:
            ValueError: if one has too many bytes or tokens.
        """
        pairs = zip(sentences, sources, strict=True)
        for number, (sentence, source) in enumerate(pairs, start=1):
            if excess := self._excess(sentence, source):
                raise ValueError(f"Sentence {number} has {excess}.")

    def _excess(self, sentence, source):
        """What a sentence has too much of, in words, or None."""
        for size, limit, unit in (
            (len(bytes(sentence, "utf-8")), self.max_bytes, "bytes"),
            (len(source), self.max_source_length, "tokens"),
        ):
            if size > limit:
                return f"{size} {unit}, but the file takes at most {limit}"
        return None

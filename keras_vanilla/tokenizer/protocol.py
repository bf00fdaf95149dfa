"""What every function of this package asks of a tokenizer."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class TokenizerProtocol(Protocol):
    """Text to ids and back: any object with these members is a tokenizer.

    Batches, caches, training, translation, evaluation and plots take it; only the text
    forms of exported files need `Tokenizer`, because SentencePiece is a part of them.
    A class of your own inherits from nothing. To be saved in a `Translator` it has
    `get_config` and `from_config`, and is registered with Keras:

        @keras.saving.register_keras_serializable("my_package")
        class MyTokenizer: ...

    Attributes:
        pad_id: int. Fills up the short sequences of a batch.
        unknown_id: int. Stands for text that has no id of its own.
        start_id: int. The decoder's first input.
        end_id: int. The last id of every sequence.
        vocabulary_size: int. Every source id is below it.
        target_vocabulary_size: int. Every target id is below it.
        shares_vocabulary: bool. Whether an id means the same on both sides; then one
            embedding table is trained for both.
        digest: str. Differs where any text has other ids: it decides whether a cache
            or a snapshot is of the same tokenizer.
    """

    pad_id: int
    unknown_id: int
    start_id: int
    end_id: int

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def target_vocabulary_size(self) -> int: ...

    @property
    def shares_vocabulary(self) -> bool: ...

    @property
    def digest(self) -> str: ...

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Source ids of each line: no start and no pads, `end_id` last."""

    def encode_target(self, lines: Sequence[str]) -> list[list[int]]:
        """Target ids of each line, in the same form."""

    def decode(self, ids: Sequence[Sequence[int]] | np.ndarray) -> list[str]:
        """The target text of each sequence: pads and starts left out, cut at its end.

        Args:
            ids: list of lists of int, or integer array (B, T), as a search returns it.
        """

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """The name of each source id, for plots; "▁" in front marks a new word."""

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """The name of each target id."""


MEMBERS = (*TokenizerProtocol.__annotations__, *vars(TokenizerProtocol))
MEMBERS = tuple(name for name in MEMBERS if not name.startswith("_"))
BATCH_ATTRIBUTES = ("pad_id", "start_id", "vocabulary_size", "target_vocabulary_size")
BATCH_ATTRIBUTES += ("digest", "encode", "encode_target")


def tokens_before_text(tokenizer: TokenizerProtocol) -> int:
    """The number of source ids before those of a text: of a language's code, 1 or 0.

    Args:
        tokenizer: TokenizerProtocol. Its `code`, if it has one, is written before each
            text.
    """
    return int(getattr(tokenizer, "code", None) is not None)


def check_tokenizer(tokenizer: Any, members: Sequence[str] = MEMBERS) -> None:
    """Refuses what is not a tokenizer.

    Args:
        tokenizer: what was received.
        members: the names that are needed.
    Raises:
        TypeError: if one of them is missing.
    """
    missing = [name for name in members if not hasattr(tokenizer, name)]
    if missing:
        raise TypeError(
            "`tokenizer` must have the members of keras_vanilla.tokenizer."
            f"TokenizerProtocol. Received: a {type(tokenizer).__name__} without "
            f"{', '.join(missing)}"
        )

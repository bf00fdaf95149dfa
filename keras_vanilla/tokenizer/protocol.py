"""The interface of a tokenizer."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class TokenizerProtocol(Protocol):
    """Maps text to ids and back; any object with these members is a tokenizer.

    Batches, caches, training, translation, evaluation and plots accept it. Only
    exported files that read and write text need `Tokenizer`, because they include
    SentencePiece. A custom class needs no base class. To be saved in a `Translator`, it
    must have `get_config` and `from_config`, and be registered with Keras:

        @keras.saving.register_keras_serializable("my_package")
        class MyTokenizer: ...

    Attributes:
        pad_id: int. Pads the short sequences of a batch.
        unknown_id: int. Represents text without an id.
        start_id: int. The decoder's first input.
        end_id: int. The last id of every sequence.
        vocabulary_size: int. All source ids are below it.
        target_vocabulary_size: int. All target ids are below it.
        shares_vocabulary: bool. Whether ids have the same meaning on both sides; then
            one embedding table is trained for both.
        digest: str. Must differ between tokenizers that give different ids for any
            text. Caches and snapshots use it to identify their tokenizer.
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
        """Source ids of each line, without start and pads, `end_id` last."""

    def encode_target(self, lines: Sequence[str]) -> list[list[int]]:
        """Target ids of each line, in the same form."""

    def decode(self, ids: Sequence[Sequence[int]] | np.ndarray) -> list[str]:
        """The target text of each sequence, without pads and starts, cut at its end.

        Args:
            ids: list of lists of int, or integer array (B, T), such as the result of a
                search.
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
    """The number of source ids before a text: 1 with a language code, otherwise 0.

    Args:
        tokenizer: TokenizerProtocol. Its `code`, if it has one, is put before each
            text.
    """
    return int(getattr(tokenizer, "code", None) is not None)


def check_tokenizer(tokenizer: Any, members: Sequence[str] = MEMBERS) -> None:
    """Refuses objects that are not a tokenizer.

    Args:
        tokenizer: the received value.
        members: names of the required members.
    Raises:
        TypeError: if a member is missing.
    """
    missing = [name for name in members if not hasattr(tokenizer, name)]
    if missing:
        raise TypeError(
            "`tokenizer` must have the members of keras_vanilla.tokenizer."
            f"TokenizerProtocol. Received: a {type(tokenizer).__name__} without "
            f"{', '.join(missing)}"
        )

"""Names of pieces and special ids."""

import re
from collections.abc import Callable

from keras_vanilla.tokenizer.protocol import TokenizerProtocol

START, END, PAD = "<s>", "</s>", "<pad>"
BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")  # all 256 are in a `Tokenizer`


def source_names(tokenizer: TokenizerProtocol) -> Callable[[int], str]:
    """A function that maps a source id to the name of its piece."""
    return _names(tokenizer, tokenizer.source_pieces)


def target_names(tokenizer: TokenizerProtocol) -> Callable[[int], str]:
    """A function that maps a target id to the name of its piece."""
    return _names(tokenizer, tokenizer.target_pieces)


def _names(tokenizer, pieces_of):
    # A tokenizer may have special ids that its SentencePiece model does not have.
    special = {
        tokenizer.pad_id: PAD,
        tokenizer.start_id: START,
        tokenizer.end_id: END,
    }

    def name(id_):
        try:
            return special.get(id_) or pieces_of([int(id_)])[0]
        except IndexError:
            return f"<{id_}>"  # an id without a piece

    return name

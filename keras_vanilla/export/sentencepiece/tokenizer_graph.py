"""SentencePiece tokenizers as TensorFlow Lite's builtin operators."""

from collections.abc import Iterator

import numpy as np

from keras_vanilla.export.sentencepiece.detokenizer import TextDecoder
from keras_vanilla.export.sentencepiece.marian_graph import (
    MarianTextDecoder,
    MarianTextEncoder,
)
from keras_vanilla.export.sentencepiece.text_encoder import TextEncoder
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.tokenizer import MarianTokenizer, Tokenizer
from keras_vanilla.tokenizer.tokenizer import require_sentencepiece


class TokenizerGraph:
    """A translator's tokenizer as operators; the constructor builds its tables.

    Args:
        tokenizer: Tokenizer.
        max_bytes: int. Length of a text, at least 1.
        max_source_ids: int. Number of ids of a text, at least 1.
        max_target_ids: int. Number of ids of a translation, at least 1.
    Attributes:
        encode: TextEncoder.
        decode: TextDecoder.
    Raises:
        ValueError: if the tokenizer is not a SentencePiece unigram model that can be
            converted, see `UnigramModel`.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_bytes: int = 1,
        max_source_ids: int = 1,
        max_target_ids: int = 1,
    ):
        require_sentencepiece("A file that takes text", tokenizer)
        source = UnigramModel(tokenizer.source_model)
        target = source
        if tokenizer.target_model != tokenizer.source_model:
            target = UnigramModel(tokenizer.target_model)
        end_id, pad_id = tokenizer.end_id, tokenizer.pad_id
        lengths = max_bytes, max_source_ids
        if isinstance(tokenizer, MarianTokenizer):
            self.encode = MarianTextEncoder(tokenizer, source, *lengths)
            self.decode = MarianTextDecoder(target, max_target_ids, end_id)
        else:
            self.encode = TextEncoder(source, *lengths, end_id, pad_id)
            self.decode = TextDecoder(target, max_target_ids, end_id)

    @property
    def nbytes(self) -> int:
        """The size of the tables in bytes, which does not depend on the lengths."""
        return sum(array.nbytes for array in _arrays([self.encode, self.decode]))


def _arrays(value) -> Iterator[np.ndarray]:
    """Yields the NumPy arrays of one of our objects and of its attributes."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _arrays(each)
    elif type(value).__module__.startswith("keras_vanilla"):
        yield from _arrays(list(vars(value).values()))

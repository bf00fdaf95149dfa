"""Tokenizers: text to ids and back, with SentencePiece, characters or words."""

from keras_vanilla.tokenizer.id_rows import pad_ids
from keras_vanilla.tokenizer.marian_tokenizer import MarianTokenizer
from keras_vanilla.tokenizer.protocol import TokenizerProtocol
from keras_vanilla.tokenizer.tokenizer import Tokenizer
from keras_vanilla.tokenizer.vocabulary_tokenizer import (
    CharacterTokenizer,
    WordTokenizer,
)

__all__ = [
    "CharacterTokenizer",
    "MarianTokenizer",
    "Tokenizer",
    "TokenizerProtocol",
    "WordTokenizer",
    "pad_ids",
]

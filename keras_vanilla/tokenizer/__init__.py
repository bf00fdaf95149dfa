"""SentencePiece tokenizers: text to ids and back."""

from keras_vanilla.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer"]

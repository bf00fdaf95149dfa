"""Converts text to the tokens of CTranslate2's runtime, and back."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_vanilla._types import PathLike
from keras_vanilla.interop.ctranslate2 import position_settings
from keras_vanilla.interop.ctranslate2_settings import starts_from_zeros
from keras_vanilla.interop.ctranslate2_tokenizer import tokenizer_from_ctranslate2
from keras_vanilla.interop.files.ctranslate2_file import read_ctranslate2
from keras_vanilla.translation.encoded_texts import EncodedTexts


class CTranslate2Text:
    """Prepares inputs and reads outputs of `ctranslate2.Translator` for one folder.

    Args:
        folder: path, as in `from_ctranslate2`.
    Attributes:
        max_length: int. Maximum number of tokens, including the end.
    Raises:
        OSError, ValueError: as in `from_ctranslate2`.
    """

    def __init__(self, folder: PathLike):
        folder = Path(folder)
        content = read_ctranslate2(folder)
        self._tokenizer = tokenizer_from_ctranslate2(
            folder, content, starts_from_zeros(content)
        )
        (self._source_tokens,) = content.source_vocabularies
        target = content.target_vocabulary
        self._target_ids = {token: id_ for id_, token in enumerate(target)}
        self._end = content.config["eos_token"]
        self.max_length = position_settings(folder, content)["max_length"]

    def encode(self, texts: Sequence[str]) -> EncodedTexts:
        """Encodes texts to ids, each with its end."""
        return EncodedTexts(texts, self._tokenizer.encode)

    def tokens(self, ids: np.ndarray) -> list[str]:
        """Returns the tokens of a text without the end, which CTranslate2 adds."""
        return [self._source_tokens[id_] for id_ in ids[:-1].tolist()]

    def decode(self, hypotheses: Sequence[Sequence[str]]) -> list[str]:
        """Decodes CTranslate2's hypotheses, with or without their ends, to texts."""
        rows = [[self._target_ids[token] for token in row] for row in hypotheses]
        return self._tokenizer.decode(rows)

    def ends(self, hypothesis: Sequence[str]) -> bool:
        """Returns True if a hypothesis with `return_end_token=True` has an end."""
        return bool(hypothesis) and hypothesis[-1] == self._end

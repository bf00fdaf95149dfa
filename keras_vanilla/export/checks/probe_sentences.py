"""Made-up sentences to check a file on."""

import random

from keras_vanilla.export.config import Limits
from keras_vanilla.tokenizer.training import SPACE_MARK
from keras_vanilla.translation import Translator

COUNT = 40
FREQUENT = 1000  # pieces; a vocabulary begins with the most frequent


def made_up_sentences(translator: Translator, limits: Limits) -> list[str]:
    """Frequent words in random order, an empty text, and one of the longest length.

    Args:
        translator: Translator.
        limits: Limits. No sentence is longer.
    Returns:
        List of str.
    """
    tokenizer = translator.tokenizer
    max_tokens = min(limits.max_source_length, translator.model.max_length)
    rng = random.Random(0)
    pieces = tokenizer.source_pieces(range(min(FREQUENT, tokenizer.vocabulary_size)))
    words = [p[1:] for p in pieces if p.startswith(SPACE_MARK) and len(p) > 2]
    words = words or [piece for piece in pieces if piece.isalnum()] or ["a"]

    def fits(text):
        tokens = len(tokenizer.encode([text])[0])
        return len(bytes(text, "utf-8")) <= limits.max_bytes and tokens <= max_tokens

    texts = [" ".join(rng.choices(words, k=rng.randrange(1, 5))) for _ in range(COUNT)]
    longest = []
    while fits(" ".join([*longest, word := rng.choice(words)])):
        longest.append(word)
    return ["", " ".join(longest), *filter(fits, texts)]

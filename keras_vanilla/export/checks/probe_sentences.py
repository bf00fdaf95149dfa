"""Sentences to try a file on where nobody gave any."""

import random

from keras_vanilla.tokenizer.training import SPACE_MARK

COUNT = 40
FREQUENT = 1000  # pieces; the first of a vocabulary are the most frequent


def made_up_sentences(tokenizer, max_bytes, max_tokens):
    """Frequent words in no order, an empty text, and one as long as may be.

    Args:
        tokenizer: Tokenizer.
        max_bytes: int. No text is longer.
        max_tokens: int. The same in tokens, the end included.
    Returns:
        List of str.
    """
    rng = random.Random(0)
    pieces = tokenizer.source_pieces(range(min(FREQUENT, tokenizer.vocabulary_size)))
    words = [p[1:] for p in pieces if p.startswith(SPACE_MARK) and len(p) > 2]
    words = words or [piece for piece in pieces if piece.isalnum()] or ["a"]

    def fits(text):
        tokens = len(tokenizer.encode([text])[0])
        return len(text.encode()) <= max_bytes and tokens <= max_tokens

    texts = [" ".join(rng.choices(words, k=rng.randrange(1, 5))) for _ in range(COUNT)]
    longest = []
    while fits(" ".join([*longest, word := rng.choice(words)])):
        longest.append(word)
    return ["", " ".join(longest), *filter(fits, texts)]

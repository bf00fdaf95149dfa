"""Word alignment from cross-attention."""

from collections.abc import Sequence

import numpy as np

from keras_vanilla.decoding.attended_source import alignment_layer
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer import TokenizerProtocol
from keras_vanilla.tokenizer.protocol import tokens_before_text
from keras_vanilla.translation.buckets import (
    bucket_width,
    length_buckets,
    pad_rows,
)

_MEMORY_FACTOR = 8  # `attention_weights` needs more memory per row than a search
WORD_START = "▁"  # SentencePiece's mark for the space before a word


def align(
    model: Transformer,
    tokenizer: TokenizerProtocol,
    sources: Sequence,
    targets: Sequence,
    layer: int | None = None,
) -> list[list[tuple[int, int]]]:
    """Links each target word to the source word it attends to most.

    The weights are those of one decoder layer, averaged over heads, at the position
    that predicts each piece; a word's weight is the sum over its pieces. Punctuation
    beside a word does not count: it attends to punctuation.

    Args:
        model: Transformer.
        tokenizer: TokenizerProtocol.
        sources: list of lists of source ids, each with its end.
        targets: list of lists of target ids, one for each source, with or without a
            final end.
        layer: int or None. The decoder layer, from 0; None for `alignment_layer`.
    Returns:
        For each pair, a list of (source word, target word): positions, from 0, of
        words separated by white space in the text as the tokenizer normalises it. There
        is one link per target word, and none if either side has no words.
    """
    links = [[]] * len(sources)
    layer = alignment_layer(model.num_decoder_layers) if layer is None else layer
    first = tokens_before_text(tokenizer)
    for indices in length_buckets(sources, beam_size=_MEMORY_FACTOR):
        rows = [sources[i] for i in indices]
        shifted = [[model.start_id, *targets[i][:-1]] for i in indices]
        inputs = {
            "source_ids": pad_rows(rows, bucket_width(rows), model.pad_id),
            "target_ids": pad_rows(shifted, bucket_width(shifted), model.pad_id),
        }
        weights = model.attention_weights(inputs)[f"decoder/{layer}/cross"]
        # (B, N, T, S) -> (B, T, S); row t predicts target piece t.
        for i, pair_weights in zip(indices, weights.mean(axis=1), strict=True):
            links[i] = _links(
                pair_weights[:, first:],
                tokenizer.target_pieces(_real_ids(model, targets[i])),
                tokenizer.source_pieces(_real_ids(model, sources[i])[first:]),
            )
    return links


def _real_ids(model, ids):
    return [id_ for id_ in ids if id_ not in (model.end_id, model.pad_id)]


def _links(weights, target_pieces, source_pieces):
    """Computes the links of one pair from the weights (T, S) of its pieces."""
    if not (len(target_pieces) and len(source_pieces)):
        return []
    weights = weights[: len(target_pieces), : len(source_pieces)]
    words, has_letters, counts = _words(target_pieces)
    source_words, _, counts_in_source = _words(source_pieces)
    # Only punctuation of the target is linked to punctuation beside a word.
    weights = np.where(has_letters[:, None] & ~counts_in_source, 0.0, weights)
    word_weights = np.where(counts, words, 0.0) @ weights @ source_words.T
    return [(int(best), word) for word, best in enumerate(word_weights.argmax(axis=1))]


def _words(pieces):
    """Returns the words of some pieces, and which pieces count for them.

    (words, pieces): 1 for the pieces of a word; (pieces,): True for a piece with a
    letter or digit; (pieces,): False for punctuation beside a word.
    """
    starts = [i == 0 or piece.startswith(WORD_START) for i, piece in enumerate(pieces)]
    word_indices = np.cumsum(starts) - 1
    words = np.equal(np.arange(word_indices[-1] + 1)[:, None], word_indices)
    has_letters = np.array([any(map(str.isalnum, piece)) for piece in pieces])
    is_alone = ~(words & has_letters).any(axis=1)[word_indices]
    return words.astype(float), has_letters, has_letters | is_alone

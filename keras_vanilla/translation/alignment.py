"""Which word a translated word comes from, read off the cross-attention."""

import numpy as np

from keras_vanilla.translation.batch_translation import (
    neighbours,
    padded,
    rounded_width,
)

_HELD = 8  # `attention_weights` keeps more of each row than a search does
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
        targets: list of lists of target ids, as many; an end, if there is one, is last.
    Returns:
        For each pair a list of (source word, target word), ints that count from 0 the
        words that the tokenizer sees between white space; one link a target word, none
        where either side has no word.
    """
    links = [[]] * len(sources)
    for rows in neighbours(sources, beams=_HELD):
        pairs = [(sources[i], targets[i]) for i in rows]
        weights = _last_cross_attention(model, *zip(*pairs, strict=True))
        for i, seen in zip(rows, weights, strict=True):
            words = (
                _word_numbers(tokenizer.target_pieces(_without(model, targets[i]))),
                _word_numbers(tokenizer.source_pieces(_without(model, sources[i]))),
            )
            links[i] = _links(seen, *words)
    return links


def _without(model, ids):
    return [id_ for id_ in ids if id_ not in (model.end_id, model.pad_id)]


def _last_cross_attention(model, sources, targets):
    """(B, T, S) weights; row t is what predicts target piece t."""
    shifted = [[model.start_id, *target[:-1]] for target in targets]
    inputs = {
        "source_ids": padded(sources, rounded_width(sources), model.pad_id),
        "target_ids": padded(shifted, rounded_width(shifted), model.pad_id),
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

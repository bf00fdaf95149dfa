"""Subword regularization: random segmentations of the same text."""

import functools
import itertools
import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from random import Random

from keras_vanilla._checks import check_number, check_probability

SPACE_MARK = "▁"
WORDS_KEPT = 2**14  # their lattices take about 20 MB


class SegmentationSampler:
    """Maps ids to the ids of a random segmentation of the same text.

        P(x_1 ... x_n) ~ exp(alpha * (score(x_1) + ... + score(x_n)))    unigram
        each merge left out with probability alpha at each step          BPE

    Words are segmented one by one. User-defined symbols, bytes and unknown text are not
    changed.

    SentencePiece can also sample segmentations, but its random numbers differ between
    processes (0.2.3), so that training could not be resumed exactly.

    Args:
        model: bytes of a unigram or BPE SentencePiece model.
        alpha: float. For unigram models, 0.1 gives segmentations twice as long as the
            best, 0.5 nearly the best; for BPE, the probability, such as 0.1.
    Call arguments:
        ids: list of int, without special ids.
        random: `random.Random`, which determines the result.
    Returns:
        List of int.
    Raises:
        ValueError: if the model has another type, or `alpha` is out of range.
    Source: Kudo 2018, "Subword Regularization"; Provilkov et al. 2020, "BPE-Dropout".
    """

    def __init__(self, model: bytes, alpha: float):
        from sentencepiece.sentencepiece_model_pb2 import ModelProto

        proto = ModelProto.FromString(model)
        types = {proto.trainer_spec.UNIGRAM: _Unigram, proto.trainer_spec.BPE: _BPE}
        model_type = proto.trainer_spec.model_type
        if model_type not in types:
            name = proto.trainer_spec.ModelType.Name(model_type)
            raise ValueError(
                "`sampling` needs a SentencePiece model of type UNIGRAM or BPE. "
                f"Received: {name}"
            )
        pieces = [
            piece.piece if piece.type == piece.NORMAL else None
            for piece in proto.pieces
        ]
        table = {
            piece: (id_, proto.pieces[id_].score)
            for id_, piece in enumerate(pieces)
            if piece is not None
        }
        self._pieces, self._segment = pieces, types[model_type](table, alpha)

    def __call__(self, ids: Sequence[int], random: Random) -> list[int]:
        sampled = []
        for word, word_ids in self._words(ids):
            sampled += (self._segment(word, random) if word else None) or word_ids
        return sampled

    def _words(self, ids) -> Iterator[tuple[str, list[int]]]:
        """Yields each word and its ids; "" for a single id that is not changed."""
        word, word_ids = "", []
        for id_ in ids:
            piece = self._pieces[id_]
            if word and (piece is None or piece.startswith(SPACE_MARK)):
                yield word, word_ids
                word, word_ids = "", []
            if piece is None:
                yield "", [id_]
            else:
                word, word_ids = word + piece, [*word_ids, id_]
        if word:
            yield word, word_ids


class _Unigram:
    """Sums forwards over all segmentations of a word, then samples a path backwards."""

    def __init__(self, table, alpha):
        self._alpha = check_number("sampling", alpha, 0.0)
        self._table, self._longest = table, max(map(len, table))
        self._lattice = functools.lru_cache(WORDS_KEPT)(self._make_lattice)

    def __call__(self, word, random):
        lattice, end, ids = self._lattice(word), len(word), []
        while end:
            ends, arcs = lattice[end]
            end, id_ = arcs[bisect(ends, random.random() * ends[-1], 0, len(arcs) - 1)]
            ids.append(id_)
        return ids[::-1]

    def _make_lattice(self, word):
        """For each end, the sums of weights and the (start, id) of pieces up to it."""
        totals, lattice = [0.0], [None]
        for end in range(1, len(word) + 1):
            arcs, logs = [], []
            for start in range(max(0, end - self._longest), end):
                id_, score = self._table.get(word[start:end], (None, 0.0))
                if id_ is not None and totals[start] > -math.inf:
                    arcs.append((start, id_))
                    logs.append(totals[start] + self._alpha * score)
            most = max(logs, default=-math.inf)
            weights = [math.exp(log - most) for log in logs]
            totals.append(most + math.log(sum(weights)) if weights else most)
            lattice.append((list(itertools.accumulate(weights)), arcs))
        return lattice


class _BPE:
    """BPE merges, some of which are skipped at each step."""

    def __init__(self, table, alpha):
        self._alpha, self._table = check_probability("sampling", alpha), table
        self._merges = functools.lru_cache(4 * WORDS_KEPT)(self._find_merges)

    def __call__(self, word, random):
        symbols, after = None, tuple(word)
        while after is not None:
            symbols = after
            kept = (m for m in self._merges(symbols) if random.random() >= self._alpha)
            after = next(kept, None)
        if all(symbol in self._table for symbol in symbols):
            return [self._table[symbol][0] for symbol in symbols]
        return None  # a letter is not a piece

    def _find_merges(self, symbols):
        """The symbols after each possible merge, best merge first."""
        merges = []
        for position, pair in enumerate(itertools.pairwise(symbols)):
            id_, score = self._table.get(piece := "".join(pair), (None, 0.0))
            if id_ is not None:
                after = (*symbols[:position], piece, *symbols[position + 2 :])
                merges.append((-score, position, after))
        return [after for _, _, after in sorted(merges)]

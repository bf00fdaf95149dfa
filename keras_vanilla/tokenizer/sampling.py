"""Subword regularization: random segmentations of the same text."""

import functools
import itertools
import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from random import Random

from keras_vanilla._checks import check_number

SPACE_MARK = "▁"
WORDS_KEPT = 2**14  # their lattices take about 20 MB


class SegmentationSampler:
    """Maps ids to the ids of a random segmentation of the same text.

        P(x_1 ... x_n) ~ exp(alpha * (score(x_1) + ... + score(x_n)))

    Words are segmented one by one: the weights of all segmentations of a word are
    summed forwards, then a path is sampled backwards. User-defined symbols, bytes and
    unknown text are not changed.

    SentencePiece can also sample segmentations, but its random numbers differ between
    processes (0.2.3), so that training could not be resumed exactly.

    Args:
        model: bytes of a unigram SentencePiece model.
        alpha: float. 0.1 gives segmentations twice as long as the best, 0.5 nearly the
            best.
        size: int. Number of the first pieces of the model that are used.
    Call arguments:
        ids: list of int, without special ids.
        random: `random.Random`, which determines the result.
    Returns:
        List of int.
    Raises:
        ValueError: if the model has another type, or `alpha` is out of range.
    Source: Kudo 2018, "Subword Regularization".
    """

    def __init__(self, model: bytes, alpha: float, size: int):
        from sentencepiece.sentencepiece_model_pb2 import ModelProto

        self._alpha = check_number("sampling", alpha, 0.0)
        proto = ModelProto.FromString(model)
        spec = proto.trainer_spec
        if spec.model_type != spec.UNIGRAM:
            raise ValueError(
                "`sampling` needs a SentencePiece model of type UNIGRAM. Received: "
                f"{spec.ModelType.Name(spec.model_type)}"
            )
        self._pieces = [
            piece.piece if piece.type == piece.NORMAL else None
            for piece in proto.pieces[:size]
        ]
        self._table = {
            piece: (id_, proto.pieces[id_].score)
            for id_, piece in enumerate(self._pieces)
            if piece is not None
        }
        self._longest = max(map(len, self._table))
        self._lattice = functools.lru_cache(WORDS_KEPT)(self._make_lattice)

    def __call__(self, ids: Sequence[int], random: Random) -> list[int]:
        sampled = []
        for word, word_ids in self._words(ids):
            sampled += self._sampled(word, random) if word else word_ids
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

    def _sampled(self, word, random):
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

"""Ids with noise and segmentations drawn at each step."""

import random
from collections.abc import Callable, Sequence

import numpy as np

from keras_vanilla.data.id_store import IdStore, flat_ids
from keras_vanilla.data.noise import Noise, NoisyIds
from keras_vanilla.tokenizer import TokenizerProtocol

MEASURED = 500  # pairs used to measure how much longer segmentations become
ROOM = 90  # percentage of pairs that fit into the planned width


class SampledIds:
    """Draws noise and segmentations for the pairs of a step, from (seed, step).

    If a pair does not fit into its batch, the ids in the store are used.

    Args:
        store: IdStore with the ids of the pairs.
        kept: int array. The pairs in the batches, by which growth is measured.
        tokenizer: Tokenizer, or without noise any tokenizer that has `samplers`.
        alpha: float, as for `Tokenizer.samplers`; None uses the best segmentation.
        seed: int.
        max_tokens: int. Longest sequence.
        noise: Noise, or None.
    Attributes:
        growth: float. Factor by which pairs become longer than in the store; one pair
            in ten becomes longer than this.
        target_growth: float. Factor by which the total number of target ids grows.
    Raises:
        ValueError: if `alpha` is out of range, the tokenizer has only one segmentation
            per text, or noise is given for a tokenizer that is not a `Tokenizer`.
    """

    def __init__(
        self,
        store: IdStore,
        kept: np.ndarray,
        tokenizer: TokenizerProtocol,
        alpha: float | None,
        seed: int,
        max_tokens: int,
        noise: Noise | None = None,
    ):
        self._store, self._noise = store, noise
        self._samplers = (_same, _same) if alpha is None else samplers(tokenizer, alpha)
        self._seed, self._max_tokens = seed, max_tokens
        self._noisy_ids = None if noise is None else NoisyIds(tokenizer, noise)
        self._tokenizer = tokenizer
        self.growth, self.target_growth = self._measured_growth(kept)

    def draw(self, pairs: np.ndarray, step: int, width: int) -> IdStore:
        """The pairs of a step, with at most `width` ids each, as pairs 0, 1, 2, ..."""
        most = min(width, self._max_tokens)
        sides = self._rows(pairs)
        if self._noisy_ids is not None:
            chance = random.Random(f"{self._seed} {step} {self._noise.name}")
            sides = self._noisy_ids(*sides, chance, most)
        chance = random.Random(f"{self._seed} {step}")
        sides = [
            [_sampled(row, sampler, chance, most) for row in rows]
            for rows, sampler in zip(sides, self._samplers, strict=True)
        ]
        ids, lengths = flat_ids(*sides, self._tokenizer)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return IdStore(ids, offsets, longest=width)

    def _rows(self, pairs) -> list[Sequence[np.ndarray]]:
        """The source and target ids of each pair in the store."""
        ends = np.cumsum(self._store.lengths(pairs), axis=0)
        flats = self._store.read(pairs)
        return [np.split(ids, ends[:-1, side]) for side, ids in enumerate(flats)]

    def _measured_growth(self, kept):
        pairs = kept[np.unique(np.linspace(0, len(kept) - 1, MEASURED).astype(int))]
        before = self._store.lengths(pairs)
        drawn = self.draw(pairs, step=-1, width=self._max_tokens)
        after = drawn.lengths(np.arange(len(pairs)))
        growth = np.percentile(after.max(axis=1) / before.max(axis=1), ROOM)
        targets = after[:, 1].sum() / before[:, 1].sum()
        return max(1.0, float(growth)), float(targets)


def samplers(tokenizer: TokenizerProtocol, alpha: float) -> tuple[Callable, Callable]:
    """The samplers that draw other segmentations of source and target ids.

    Args:
        tokenizer: Tokenizer, or another tokenizer that has `samplers`.
        alpha: float, as for `Tokenizer.samplers`.
    Raises:
        ValueError: if `alpha` is out of range, or the tokenizer has only one
            segmentation per text.
    """
    if not hasattr(tokenizer, "samplers"):
        raise ValueError(
            "`sampling` needs a tokenizer with several segmentations of a text, such "
            f"as SentencePiece's. Received: a {type(tokenizer).__name__}"
        )
    return tokenizer.samplers(alpha)


def _same(ids, chance):
    return ids


def _sampled(row, sampler, chance, most):
    *ids, end = row.tolist()
    ids = [*sampler(ids, chance), end]
    return ids if len(ids) <= most else row

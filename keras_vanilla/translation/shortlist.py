"""Which target pieces a source's pieces suggest, learnt from a parallel text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_vanilla._checks import check_integer
from keras_vanilla.decoding.shortlisted import id_dtype
from keras_vanilla.tokenizer import TokenizerProtocol

SUGGESTIONS = 16  # of each source piece
ROUNDS = 5
MOST_LINKS = 20_000_000  # pairs of pieces that are held in memory, about 1 GB


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The target pieces among which a search with a `Shortlisted` model chooses.

    Args:
        likely: int32 array (V_source, n). The target ids that each source piece
            suggests, the best first, filled up with the pad.
        frequent: int32 array (V_target,). All target ids, the most frequent first.
        size: int. Number of candidates for each source.
    """

    likely: np.ndarray
    frequent: np.ndarray
    size: int = 512

    @staticmethod
    def nbytes(source_size: int, target_size: int) -> int:
        """The size of its tables in a file.

        Args:
            source_size: int. The source's vocabulary.
            target_size: int. The target's.
        """
        id_size = np.dtype(id_dtype(target_size)).itemsize
        return id_size * SUGGESTIONS * source_size + 4 * target_size

    @classmethod
    def learn(
        cls,
        tokenizer: TokenizerProtocol,
        sources: Sequence[str],
        targets: Sequence[str],
        size: int = 512,
    ) -> "Shortlist":
        """A shortlist from a parallel text, best the one the model was trained on.

        The suggestions of a source piece are the target pieces that are most likely
        translations of it in IBM Model 1 (Brown et al. 1993, section 4.1), after five
        rounds of EM. Of a text of more than some 100,000 pairs evenly spaced ones are
        taken.

        Args:
            tokenizer: TokenizerProtocol, the model's.
            sources: list of str.
            targets: list of str, the translations.
            size: int. Number of candidates for each source.
        Raises:
            ValueError: if there is no pair, or their numbers differ.
        """
        check_integer("size", size, 1)
        if not sources or len(sources) != len(targets):
            raise ValueError(
                "A shortlist needs as many translations as sources, at least one. "
                f"Received: {len(sources)} sources and {len(targets)} translations"
            )
        pairs = [
            (source[:-1], target[:-1])  # without the ends
            for source, target in zip(
                tokenizer.encode(sources),
                tokenizer.encode_target(targets),
                strict=True,
            )
        ]
        sizes = tokenizer.vocabulary_size, tokenizer.target_vocabulary_size
        counts = np.bincount(
            np.concatenate([target for _, target in pairs]).astype("int64"),
            minlength=sizes[1],
        )
        frequent = np.argsort(-counts, kind="stable").astype("int32")
        likely = _likely(pairs, *sizes, tokenizer.pad_id)
        return cls(likely, frequent, size)


def _likely(pairs, source_size, target_size, pad_id):
    """Int32 array (V_source, n), see `Shortlist`."""
    links = sum((len(source) + 1) * len(target) for source, target in pairs)
    pairs = pairs[:: -(-links // MOST_LINKS) or 1]
    source, target, p = translation_probabilities(pairs, source_size, target_size)
    order = np.lexsort((-p, source))
    source, target = source[order], target[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    kept = (rank < SUGGESTIONS) & (source < source_size)
    likely = np.full((source_size, SUGGESTIONS), pad_id, "int32")
    likely[source[kept], rank[kept]] = target[kept]
    return likely


def translation_probabilities(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    source_size: int,
    target_size: int,
    rounds: int = ROUNDS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The probabilities of IBM Model 1 (Brown et al. 1993, section 4.1).

    Each target token was written for one source token, or for none, which a token in
    front of each source stands for. EM counts for whom, beginning with all equal.

    Args:
        pairs: list of (source ids, target ids).
        source_size: int. The source's vocabulary.
        target_size: int. The target's.
        rounds: int.
    Returns:
        Arrays, an element for each pair of pieces that are in a pair together: the
        source piece, `source_size` for none, the target piece and p(target | source).
    """
    entries, owners = _links(pairs, source_size, target_size)
    entries, link = np.unique(entries, return_inverse=True)
    source, target = np.divmod(entries, target_size)
    p = np.ones(len(entries))
    for _ in range(rounds):
        share = p[link]
        share /= np.bincount(owners, share)[owners]
        p = np.bincount(link, share, minlength=len(p))
        p /= np.bincount(source, p)[source]
    return source, target, p


def _links(pairs, source_size, target_size):
    """For each source token beside each target token of a pair two numbers.

    Of which pieces they are, source piece * `target_size` + target piece; and which of
    all target tokens it is.
    """
    entries, owners, count = [], [], 0
    for source, target in pairs:
        source = np.array([source_size, *source], "int64")
        target = np.array(target, "int64")
        entries.append((source[:, None] * target_size + target).ravel())
        owner = np.arange(count, count + len(target), dtype="int32")
        owners.append(np.tile(owner, len(source)))
        count += len(target)
    return np.concatenate(entries), np.concatenate(owners)

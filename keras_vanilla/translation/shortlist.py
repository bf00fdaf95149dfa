"""Learns the target pieces that each source piece suggests, from parallel text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_vanilla._checks import check_integer
from keras_vanilla.decoding.shortlisted import id_dtype
from keras_vanilla.tokenizer import TokenizerProtocol

SUGGESTIONS = 16  # per source piece
ROUNDS = 5
MOST_LINKS = 20_000_000  # pairs of pieces in memory, about 1 GB


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The target pieces among which a search with a `Shortlisted` model chooses.

    Args:
        likely: int32 array (V_source, n). The target ids that each source piece
            suggests, best first, padded with the pad id.
        frequent: int32 array (V_target,). All target ids, most frequent first.
        size: int. Number of candidates for each source.
    """

    likely: np.ndarray
    frequent: np.ndarray
    size: int = 512

    @staticmethod
    def nbytes(source_size: int, target_size: int) -> int:
        """The size in bytes of a shortlist's tables in a file.

        Args:
            source_size: int. Size of the source vocabulary.
            target_size: int. Size of the target vocabulary.
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
        """Learns a shortlist from parallel text, ideally the model's training data.

        The suggestions of a source piece are its most likely translations in IBM Model
        1 (Brown et al. 1993, section 4.1), after five rounds of EM. If there are more
        than about 100,000 pairs, evenly spaced pairs are used.

        Args:
            tokenizer: TokenizerProtocol of the model.
            sources: list of str.
            targets: list of str. Translations of the sources.
            size: int. Number of candidates for each source.
        Raises:
            ValueError: if there are no pairs, or the numbers of sources and targets
                differ.
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

    The model generates each target token from one source token, or from an extra empty
    token in front of each source. EM starts from equal probabilities.

    Args:
        pairs: list of (source ids, target ids).
        source_size: int. Size of the source vocabulary.
        target_size: int. Size of the target vocabulary.
        rounds: int. Rounds of EM.
    Returns:
        Three arrays with one element per two pieces that occur together: the source
        piece (`source_size` for the empty token), the target piece and
        p(target | source).
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
    """Two numbers for each source token combined with each target token of a pair.

    The first identifies the pieces, source piece * `target_size` + target piece; the
    second is the number of the target token among all target tokens.
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

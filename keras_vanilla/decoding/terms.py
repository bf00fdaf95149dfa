"""Terms that outputs must contain, and the beams that enforce them."""

from typing import NamedTuple

from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.attended_source import ATTENDED
from keras_vanilla.decoding.beam_past import of_parents
from keras_vanilla.decoding.cache import Cache
from keras_vanilla.decoding.constraints import Constraints
from keras_vanilla.decoding.searched_model import SearchedModel
from keras_vanilla.decoding.top_k import NOTHING, best_tokens, log_total

FIRST = 1e30  # ranks before every estimate
LAST = 2**30  # ranks after every position in a bank
BEGUN, MATCHED = 5.0, 2.0  # bonus in nats: per term that has begun, per token of it
STRAY = 1e4  # penalty in nats, larger than any other loss of a hypothesis
MISPLACED = 30.0  # penalty in nats, per term that begins where its source is not read
IN_PLACE = 10.0  # bonus in nats for a term that has begun where it is read
MOST_BANKS = 32


class Terms(NamedTuple):
    """The terms that the outputs of each row must contain.

    A term occurs where the tokens of one of its forms follow each other, at word
    boundaries: there is no occurrence if the token before it ends within a word and its
    first token begins within one, or if the same is true of its last token and the
    token after it. Occurrences may overlap.

    Fields:
        ids: int32 (B, J, A, P), -1 after shorter forms. The tokens of J terms with A
            forms each; the first form can follow any token. Only -1 means no term.
        needed: int32 (B, J). The number of times that each term must occur.
        inside: bool (2, V). Whether the text of each token ends within a word, and
            whether it begins within one.
        places: bool (B, J, S) or None. The source tokens that each term translates. A
            term is misplaced, and costs 30 nats, if the step of its first token attends
            most to another source token, see `AttendedSource`; not if the longest
            length ends the output with the term. None: all are right.
    """

    ids: Tensor
    needed: Tensor
    inside: Tensor
    places: Tensor | None = None


class TermBanks:
    """Divides the beams among hypotheses that contain more or fewer of their terms.

    The progress of a hypothesis is the number of term tokens that it contains. Its
    candidates are the likely tokens, and the next token of each missing term. The
    candidates of a row are put into at most K banks by their progress. The best of each
    bank are kept first, then the second best, and so on. The end may only follow if all
    terms occur, or if nothing else can follow. So one hypothesis always makes progress,
    while the others wait for a better place for their terms.

    Within a bank, candidates are ordered by an estimate of the final log-probability. A
    term that has begun, or occurs, adds 5, and each of its tokens 2: with one beam it
    begins where its first token is at least e^-7 times as likely as the best. Three
    kinds of candidates come last: those with too little room for the missing tokens,
    those that break off a term whose beginning the model did not propose, and tokens
    outside terms where the model prefers the end.

    If the terms have places, a term that begins where its source is read adds 10 more
    to the estimate, so that it may be e^-17 times as likely; one that begins elsewhere
    loses 30 nats, in the score as well.

    Args:
        model: SearchedModel; an `AttendedSource` if the terms have places.
        terms: Terms, as for `check_terms`.
        limits: int32 (B,) or int. Longest length of each row.
        beam_size: int (K).
    Source: Post & Vilar 2018, "Fast Lexically Constrained Decoding with Dynamic Beam
        Allocation", for the banks; Baeza-Yates & Gonnet 1992, "A New Approach to Text
        Searching", for the search of terms in parallel.
    """

    def __init__(
        self,
        model: SearchedModel,
        terms: Terms,
        limits: Tensor | int,
        beam_size: int,
    ):
        self._model, self._limits, self._beam_size = model, limits, beam_size
        self._ids = ops.convert_to_tensor(terms.ids, dtype="int32")
        self._needed = ops.convert_to_tensor(terms.needed, dtype="int32")
        self._inside = ops.convert_to_tensor(terms.inside, dtype="bool")
        self._places = terms.places
        self._real = ops.greater_equal(self._ids, 0)  # (B, J, A, P)
        lengths = ops.sum(ops.cast(self._real, "int32"), axis=3, keepdims=True)
        self._positions = ops.arange(ops.shape(self._ids)[3], dtype="int32")  # (P,)
        self._is_last = ops.equal(self._positions, lengths - 1)
        self._lengths = lengths[:, :, 0, 0]  # (B, J), of the first forms
        # The tokens of the first form that are saved by those of any form.
        spared = lengths[:, :, :1] - lengths + self._positions + 1
        self._spared = ops.where(self._real, ops.maximum(spared, 0), 0)
        self._total = ops.sum(self._needed * self._lengths, axis=1)  # (B,)

    def start(self) -> dict[str, Tensor]:
        """The state of hypotheses without tokens."""
        batch, *sizes = ops.shape(self._ids)
        shape = batch, self._beam_size
        return {
            # True if the newest tokens are those of a form up to each of its positions.
            "matched": ops.zeros((*shape, *sizes), dtype="bool"),
            # True if such a form began where the source of its term was read.
            "placed": ops.zeros((*shape, *sizes), dtype="bool"),
            "counts": ops.zeros((*shape, sizes[0]), dtype="int32"),
            "progress": ops.zeros(shape, dtype="int32"),
            "forced": ops.zeros(shape, dtype="bool"),
            "in_place": ops.zeros(shape, dtype="int32"),  # terms that have occurred
        }

    def are_met(self, state: dict) -> Tensor:
        """(B, K): True if all terms of a hypothesis occur when it ends here."""
        return ~ops.any(self._unmet(state["terms"]), axis=2)

    def _unmet(self, known):
        """(B, K, J): True if a term occurs too seldom when the output ends here."""
        counts = known["counts"] + ops.cast(self._complete(known["matched"]), "int32")
        return counts < ops.expand_dims(self._needed, 1)

    def best_continuations(
        self,
        cache: Cache,
        state: dict,
        logits: Tensor,
        constraints: Constraints,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Selects the K continuations to keep.

        Args:
            cache: cache with this position; of an `AttendedSource` if the terms have
                places.
            state: state of the beam search.
            logits: float32 tensor (B, K, V).
            constraints: Constraints. Terms may contain repetitions that they forbid.
        Returns:
            Parent beams, tokens, log-probabilities and `kept`, each (B, K), and the
            state of the terms in these hypotheses.
        """
        most = min(self._beam_size + 1, ops.shape(logits)[2])
        tokens, scores = self._candidates(state, logits, constraints, most)
        is_place = self._is_place(cache)
        after = self._after(state["terms"], state["last"], tokens, is_place)
        added = scores - log_total(logits) - MISPLACED * after.misplaced
        log_probs = ops.expand_dims(state["log_probs"], 2) + added  # (B, K, M)
        possible = self._possible(state["terms"], tokens, scores, after, most)
        rather_end = scores < logits[:, :, self._model.end_id][:, :, None]
        estimates = self._estimates(state, log_probs, after, rather_end)
        banks = self._bank(after.progress)

        # The only continuation of a finished hypothesis is itself.
        done = ops.expand_dims(state["finished"], 2)
        itself = ops.equal(ops.arange(ops.shape(tokens)[2]), 0)
        exists = ops.where(done, itself, possible & (log_probs > NOTHING))
        estimates = ops.where(exists, ops.where(done, FIRST, estimates), NOTHING)
        banks = ops.where(done, -1, banks)
        log_probs = ops.where(done, state["log_probs"][:, :, None], log_probs)
        log_probs = ops.where(exists, log_probs, NOTHING)

        indices = self._first_of_banks(*map(_of_row, (estimates, banks)))  # (B, K)
        width = ops.shape(exists)[2]
        parents = ops.floor_divide(indices, width)
        tokens, log_probs, kept = (
            of_parents(_of_row(x), indices) for x in (tokens, log_probs, done & itself)
        )
        is_extra = ops.mod(indices, width) >= most
        after = _After(*(of_parents(_of_row(x), indices) for x in after))
        known = self._known(state["terms"], parents, tokens, after, is_extra, kept)
        return parents, tokens, log_probs, kept, known

    def _is_place(self, cache):
        """(B, K, 1, J): True if a term may begin at this step."""
        if self._places is None:
            return ops.ones((1, 1, 1, 1), dtype="bool")
        places = ops.transpose(ops.cast(self._places, "bool"), (0, 2, 1))  # (B, S, J)
        attended = ops.reshape(cache.extra[ATTENDED], (-1, self._beam_size, 1))
        return ops.take_along_axis(places, attended, axis=1)[:, :, None]

    def _known(self, known, parents, tokens, after, is_extra, kept):
        """The state of the terms in the hypotheses (B, K) that are kept."""
        old = {name: of_parents(value, parents) for name, value in known.items()}
        new = {
            "matched": self._matched(old["matched"], tokens, after.inside),
            "placed": after.placed,
            "counts": after.counts,
            "progress": after.progress,
            "in_place": after.in_place,
            "forced": (is_extra | old["forced"]) & (after.begun_tokens > 0),
        }
        return {name: _choose(kept, old[name], new[name]) for name in new}

    def _possible(self, known, tokens, scores, after, most):
        """(B, K, M): True if a candidate may follow.

        Candidates that are not among the likely ones must continue or end a term.
        """
        index = ops.arange(ops.shape(tokens)[2])
        unmet = known["counts"] < self._needed[:, None]
        complete = self._complete(known["matched"]) & unmet  # (B, K, J)
        ends_term = ops.equal(index, most) & ops.any(complete, axis=2)[:, :, None]
        closer = after.progress > known["progress"][:, :, None]
        possible = (scores > NOTHING) & ((index < most) | ends_term | closer)
        is_end = ops.equal(tokens, self._model.end_id)
        may_end = ops.all(after.counts >= _beside(self._needed, 2), axis=3)
        others = ops.any(possible & ~is_end, axis=2, keepdims=True)
        return possible & (~is_end | may_end | ~others)

    def _estimates(self, state, log_probs, after, rather_end):
        """(B, K, M): estimates by which the candidates of a bank are ranked."""
        known, total = state["terms"], _beside(self._total, 2)
        before = known["progress"][:, :, None]
        breaks_off = known["forced"][:, :, None] & (after.progress < before)
        rambles = rather_end & (after.progress <= before) & (before < total)
        missing = total - after.progress
        room = _beside(self._limits, 2) - state["index"] - 2  # without the end
        short = ops.where(missing > 0, ops.maximum(missing - room, 0), 0)
        stray = short + ops.cast(breaks_off | rambles, "int32")
        begun, progress, stray = (
            ops.cast(x, "float32") for x in (after.begun, after.progress, stray)
        )
        if self._places is None:
            placement = 0.0
        else:
            in_place, begins, misplaced = (
                ops.cast(x, "float32")
                for x in (after.in_place, after.begins_in_place, after.begins_misplaced)
            )
            placement = IN_PLACE * (in_place + begins) - MISPLACED * misplaced
        return (
            log_probs + placement + BEGUN * begun + MATCHED * progress - STRAY * stray
        )

    def _candidates(self, state, logits, constraints, most):
        """Candidate tokens (B, K, M) and their logits, -inf for duplicates.

        The most likely tokens come first, then the most likely one that does not
        continue a word (it may end a term), then the next token of each form of each
        term.
        """
        allowed = constraints(logits, state["ids"], state["index"])
        best, likely = best_tokens(allowed, most)
        begins = ops.where(self._inside[1], NOTHING, 0.0)
        _, after_word = best_tokens(allowed + begins, 1)
        wanted = self._next_tokens(state["terms"])  # (B, K, J A)
        wanted = ops.concatenate([after_word, wanted], axis=2)
        scores = ops.take_along_axis(
            constraints.after_prefix(logits, logits, state["index"]),
            ops.maximum(wanted, 0),
            axis=2,
        )
        both = ops.concatenate([likely, wanted], axis=2)
        same = ops.equal(wanted[:, :, :, None], both[:, :, None, :])
        wanted_index = ops.arange(ops.shape(wanted)[2])[:, None] + most
        earlier = ops.arange(ops.shape(both)[2]) < wanted_index
        possible = ops.concatenate([best, scores], axis=2) > NOTHING
        known = ops.any(same & earlier & possible[:, :, None], axis=3) | (wanted < 0)
        scores = ops.where(known, NOTHING, scores)
        both = ops.maximum(both, 0)
        return both, ops.concatenate([best, scores], axis=2)

    def _next_tokens(self, known):
        """(B, K, J A): the next token of each form, -1 if its term is met."""
        follows = self._follows(known["matched"]) & self._real[:, None]
        deepest = ops.max(
            ops.where(follows, self._positions, -1), axis=4, keepdims=True
        )  # (B, K, J, A, 1)
        is_next = ops.equal(self._positions, deepest)
        tokens = ops.max(ops.where(is_next, self._ids[:, None], -1), axis=4)
        tokens = ops.where(self._unmet(known)[..., None], tokens, -1)
        batch, beam_size = ops.shape(tokens)[:2]
        return ops.reshape(tokens, (batch, beam_size, -1))

    def _after(self, known, last, tokens, is_place):
        """The state of the terms after each candidate (B, K, M)."""
        ends, begins = self._inside[0], self._inside[1]
        inside = ops.take(ends, last)[:, :, None] & ops.take(begins, tokens)
        complete = self._complete(known["matched"])[:, :, None]  # (B, K, 1, J)
        occurs = complete & ~inside[..., None]
        counts = known["counts"][:, :, None] + ops.cast(occurs, "int32")
        matched = self._matched(known["matched"][:, :, None], tokens, inside)
        was_placed = _shifted(known["placed"])[:, :, None]
        is_first = ops.equal(self._positions, 0)
        placed = matched & ops.where(is_first, is_place[..., None, None], was_placed)
        needed = _beside(self._needed, 2)
        unmet = counts < needed
        spared, spared_in_place = (
            ops.max(ops.where(x, _beside(self._spared, 2), 0), axis=(4, 5))
            for x in (matched, placed)
        )  # (B, K, M, J)
        spared, spared_in_place = (
            ops.max(ops.where(unmet, x, 0), axis=3) for x in (spared, spared_in_place)
        )
        in_place = self._complete(known["placed"])[:, :, None]
        is_new = known["counts"][:, :, None] < needed
        occurs &= is_new
        misplaced = ops.sum(ops.cast(occurs & ~in_place, "float32"), axis=3)
        in_place = ops.sum(ops.cast(occurs & in_place, "int32"), axis=3)
        met = ops.minimum(counts, needed)  # (B, K, M, J)
        progress = ops.sum(met * _beside(self._lengths, 2), axis=3) + spared
        begun = ops.sum(met, axis=3) + ops.cast(spared > 0, "int32")
        return _After(
            inside,
            counts,
            progress,
            begun,
            spared,
            placed,
            misplaced,
            known["in_place"][:, :, None] + in_place,
            spared_in_place < spared,
            (spared > 0) & (spared_in_place >= spared),
        )

    def _matched(self, matched, tokens, inside):
        """Updates `matched` (..., J, A, P) with one more token (...)."""
        between = len(tokens.shape) - 1
        begins_in_word = inside[..., None, None, None] & ops.equal(self._positions, 0)
        same = ops.equal(tokens[..., None, None, None], _beside(self._ids, between))
        return self._follows(matched) & same & ~begins_in_word

    def _follows(self, matched):
        """(..., P): True if all tokens before a position of a form have occurred."""
        return _shifted(matched) | ops.equal(self._positions, 0)

    def _complete(self, matched):
        """(B, K, J): True if the newest tokens are a form of a term."""
        return ops.any(matched & self._is_last[:, None], axis=(3, 4))

    def _bank(self, progress):
        """(B, K, M): bank numbers; candidates with all terms have a separate bank."""
        total = _beside(self._total, 2)
        banks = ops.minimum(min(self._beam_size, MOST_BANKS), total + 1)
        return ops.floor_divide(progress * (banks - 1), ops.maximum(total, 1))

    def _first_of_banks(self, estimates, banks):
        """(B, K): indices of the best of each bank, then of the second best, ..."""
        order = ops.cast(ops.argsort(-estimates, axis=1), "int32")
        banks = ops.take_along_axis(banks, order, axis=1)
        estimates = ops.take_along_axis(estimates, order, axis=1)
        numbers = ops.arange(min(self._beam_size, MOST_BANKS), dtype="int32")
        is_in = ops.cast(ops.equal(banks[:, :, None], numbers), "int32")
        ranks = ops.sum(is_in * ops.cumsum(is_in, axis=1), axis=2)
        ranks = ops.where(estimates > NOTHING, ranks, LAST)
        first = ops.cast(ops.argsort(ranks, axis=1), "int32")[:, : self._beam_size]
        indices = ops.take_along_axis(order, first, axis=1)
        return ops.reshape(indices, (-1, self._beam_size))  # a static shape


class _After(NamedTuple):
    """The state of the terms after a continuation.

    Fields:
        inside: bool. Whether the token continues a word of the token before it.
        counts: int32, with an axis J. Number of occurrences of each term.
        progress: int32. Number of tokens of terms.
        begun: int32. Number of terms that have occurred or begun.
        begun_tokens: int32. Number of tokens of a term that has begun.
        placed: bool, with axes J, A, P. As `TermBanks.start`.
        misplaced: float32. Number of terms that were completed, but are misplaced.
        in_place: int32. Number of terms that have occurred in their places.
        begins_misplaced, begins_in_place: bool. Whether a term has begun, and where.
    """

    inside: Tensor
    counts: Tensor
    progress: Tensor
    begun: Tensor
    begun_tokens: Tensor
    placed: Tensor
    misplaced: Tensor
    in_place: Tensor
    begins_misplaced: Tensor
    begins_in_place: Tensor


def _shifted(matched):
    """(..., P): the values one position before, and at the first position its own."""
    return ops.concatenate([matched[..., :1], matched[..., :-1]], axis=-1)


def _of_row(values):
    """(B, K, M, ...) -> (B, K M, ...)."""
    batch, _, _, *rest = ops.shape(values)
    return ops.reshape(values, (batch, -1, *rest))


def _beside(values, count):
    """Inserts axes of size 1 after the first axis of values (B, ...)."""
    values = ops.convert_to_tensor(values)
    for _ in range(count if len(values.shape) else 0):
        values = ops.expand_dims(values, 1)
    return values


def _choose(condition, values, others):
    """`ops.where` with a condition (B, K) for values (B, K, ...)."""
    while len(condition.shape) < len(values.shape):
        condition = ops.expand_dims(condition, -1)
    return ops.where(condition, values, others)


def check_terms(model: SearchedModel, terms: Terms, rows: int | None = None) -> None:
    """Refuses terms whose shapes or vocabulary do not match the model.

    Args:
        model: SearchedModel.
        terms: Terms.
        rows: int or None. Number of rows of `source_ids`; None if unknown.
    Raises:
        ValueError: if a shape or the vocabulary does not match.
    """
    ids, needed, inside = (tuple(each.shape) for each in terms[:3])
    if (len(ids), len(needed), len(inside)) != (4, 2, 2):
        raise ValueError(
            "`terms` must be `Terms` with ids (B, J, A, P), needed (B, J) and inside "
            f"(2, V). Received: shapes {ids}, {needed} and {inside}"
        )
    if terms.places is not None and tuple(terms.places.shape)[:2] != ids[:2]:
        raise ValueError(
            f"`terms` must have places (B, J, S) for ids {ids}. Received: the shape "
            f"{tuple(terms.places.shape)}"
        )
    if None not in (ids[0], rows) and ids[0] != rows:
        raise ValueError(
            f"`terms` must have one row for each of the {rows} rows of `source_ids`. "
            f"Received: {ids[0]} rows"
        )
    if None not in (inside[1], size := model.target_vocabulary_size) and (
        inside[1] != size
    ):
        raise ValueError(
            f"`terms` are for a vocabulary of {inside[1]} tokens, but the search uses "
            f"{size}."
        )

"""Beam search: keeps the most probable continuations at each step."""

from typing import Any

from keras import ops

from keras_vanilla._operators import slice_update
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.attended_source import ATTENDED, AttendedSource
from keras_vanilla.decoding.beam_past import CopiedPast, beam_past, of_parents
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.constraints import Constraints
from keras_vanilla.decoding.hypothesis_end import ends_here
from keras_vanilla.decoding.loop import run_loop, start_notes
from keras_vanilla.decoding.refilled_beam import (
    best_of,
    noted_by_parents,
    refill,
    start_pool,
)
from keras_vanilla.decoding.searched_model import SearchedModel
from keras_vanilla.decoding.terms import TermBanks, Terms, check_terms
from keras_vanilla.decoding.top_k import NOTHING, best_tokens, log_total

FIRST = 1.0  # ranks before every log-probability


def beam_search(
    model: SearchedModel,
    source_ids: Tensor,
    config: DecodingConfig | None = None,
    target_prefix: Tensor | None = None,
    return_notes: bool = False,
    terms: Terms | None = None,
    **settings: Any,
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Maps source ids to the best hypotheses of a search with K beams, with scores.

        score = log P(hypothesis | source) / lp(n),    lp(n) = ((5 + n) / 6)^a  "gnmt"
                                                       lp(n) = n^a              "power"

    A finished hypothesis remains one of the K, and the search continues with one beam
    fewer. A row is done when no beam can still reach its `n_best` hypotheses: log P
    only decreases, so a beam with log-probability p never scores above
    p / lp(longest length). Beams that reach the longest length of a row are returned
    without an end.

    With `early_stopping`, finished hypotheses leave the beam, see `refilled_beam`: the
    search takes more steps and finds some better hypotheses.

    Args:
        model: SearchedModel. If its `shares_beams` is True, as in most Transformers,
            one cache holds all beams of a row.
        source_ids: int tensor (B, S).
        config: DecodingConfig, or None for one with 4 beams. Its `length_penalty` is
            the exponent a; with 0 the score is log P. Without `n_best` all K hypotheses
            are returned; with a smaller `n_best` the search may end sooner.
        target_prefix: int tensor (B, P) or None, as in `greedy_search`.
        return_notes: bool. Return notes of each token, as in `greedy_search`.
        terms: Terms or None. Terms that each row's hypotheses must contain, see
            `TermBanks`. Hypotheses that reach the longest length without all terms are
            returned only if no other hypothesis of the row has them.
        settings: fields of `config`, such as `beam_size`.
    Returns:
        Int32 ids (B, n_best, L), best first, and float32 scores (B, n_best). If a row
        has fewer hypotheses, the missing ones have the score -inf and only pads. With
        `return_notes` also a dict of tensors (B, n_best, L).
    Raises:
        TypeError, ValueError: same as `DecodingConfig` and `greedy_search`.
    Source: Wu et al. 2016, section 7 for "gnmt"; Vaswani et al. 2017, section 6.1.
    """
    config = DecodingConfig(beam_size=4) if config is None else config
    config = DecodingConfig.of(config, **settings)
    n_best = config.n_best or config.beam_size
    constraints = Constraints(model, source_ids, config, target_prefix)
    memory, memory_mask = model.encode(source_ids)
    length, limits = constraints.row_limits(memory_mask)

    banks, refills = None, config.early_stopping is not None
    if terms is not None:
        if refills:
            raise ValueError(
                "`terms` cannot be combined with `early_stopping`. Received: "
                f"early_stopping={config.early_stopping!r}"
            )
        check_terms(model, terms, memory.shape[0])
        if terms.places is not None and ATTENDED not in model.noted:
            model = AttendedSource(model)
        banks = TermBanks(model, terms, limits, config.beam_size)

    def score(log_probs, lengths):
        return config.apply_length_penalty(log_probs, ops.cast(lengths, "float32"))

    def live(state, rows):
        if refills:
            return ops.logical_not(state["finished"][:, 0])
        scores = _scores(state, score, banks)
        if n_best == 1:  # one operator; StableHLO's `top_k` without indices sorts
            worst = ops.max(scores, axis=1)  # (B,)
        else:
            worst = ops.top_k(scores, k=n_best)[0][:, -1]
        log_probs = ops.where(state["finished"], NOTHING, state["log_probs"])
        bound = score(ops.max(log_probs, axis=1), rows["limits"])
        return ops.greater(bound, worst)

    past = beam_past(model, config.beam_size)
    if banks and config.beam_size == 1:
        past = CopiedPast(model, 1)  # the same steps as greedy search
    shape = ops.shape(memory)[0], config.beam_size
    notes = start_notes(model, (*shape, length)) if return_notes else {}

    def step(state, rows):
        bound = constraints.of_rows(rows)
        if refills:
            return refill(model, past, state, rows["limits"], bound, config)
        return _step(model, past, state, rows, bound, banks)

    state = run_loop(
        model,
        {
            **_start(model, shape, length),
            "cache": past.start(memory, memory_mask, length),
            "notes": notes,
            "terms": banks.start() if banks else {},
            "pool": start_pool(model, (*shape, length), notes) if refills else {},
        },
        step,
        live,
        length,
        {"limits": limits, **constraints.rows},
        rows_may_leave=not banks,
    )
    if not refills:
        scores = _scores(state, score, banks)
        state["pool"] = {**{n: state[n] for n in ("ids", "notes")}, "scores": scores}
    best = best_of(state["pool"], n_best)
    scores, notes = best["scores"], best["notes"]
    exists = ops.expand_dims(ops.greater(scores, NOTHING), 2)
    ids = ops.where(exists, best["ids"], model.pad_id)
    return (ids, scores, notes) if return_notes else (ids, scores)


def _start(model, shape, length):
    """Creates K beams per row, of which only the first exists."""
    beam_size = shape[1]
    first = ops.cast(ops.equal(ops.arange(beam_size), 0), "float32")
    return {
        "index": ops.convert_to_tensor(0, dtype="int32"),
        "last": ops.full(shape, model.start_id, dtype="int32"),
        "ids": ops.full((*shape, length), model.pad_id, dtype="int32"),
        "log_probs": ops.broadcast_to(ops.where(first > 0, 0.0, NOTHING), shape),
        "lengths": ops.ones(shape, dtype="int32"),
        "finished": ops.zeros(shape, dtype="bool"),
    }


def _step(model, past, state, rows, constraints, banks):
    """Extends every live beam by one token and keeps the K best hypotheses."""
    logits, cache = past.step(state["last"], state["index"], state["cache"])
    parents, tokens, log_probs, ended_before, terms = (
        banks.best_continuations(cache, state, logits, constraints)
        if banks
        else _best_continuations(state, logits, constraints)
    )
    tokens = ops.where(ended_before, model.pad_id, tokens)
    count = state["index"] + 1
    ends = ends_here(tokens, count, rows["limits"], model.end_id)
    ids = of_parents(state["ids"], parents)
    return {
        "index": count,
        "last": tokens,
        "ids": slice_update(ids, (0, 0, state["index"]), ops.expand_dims(tokens, 2)),
        "log_probs": log_probs,
        "lengths": ops.where(
            ended_before, of_parents(state["lengths"], parents), count
        ),
        "finished": ended_before | (ends & ops.greater(log_probs, NOTHING)),
        "cache": past.of_parents(cache, state["cache"], parents),
        "notes": noted_by_parents(model, state, cache, parents, log_probs),
        "terms": terms,
        "pool": {},
    }


def _best_continuations(state, logits, constraints):
    """The K best continuations: parent beams, tokens, log-probabilities, `kept`, {}.

    The only continuation of a finished hypothesis is itself. It ranks before all others
    and has `kept` = True.
    """
    batch, beam_size, size = ops.shape(logits)
    most = min(beam_size, size)  # continuations per beam
    allowed = constraints(logits, state["ids"], state["index"])
    best, tokens = best_tokens(allowed, most)
    added = best - log_total(logits)
    itself = ops.where(ops.equal(ops.arange(most), 0), FIRST, NOTHING)
    ranks = ops.where(
        ops.expand_dims(state["finished"], 2),
        itself,
        ops.expand_dims(state["log_probs"], 2) + added,
    )
    best, indices = ops.top_k(ops.reshape(ranks, (batch, -1)), k=beam_size)  # (B, K)
    indices = ops.cast(indices, "int32")
    parents = ops.floor_divide(indices, most)
    tokens = ops.take_along_axis(ops.reshape(tokens, (batch, -1)), indices, axis=1)
    kept = ops.equal(best, FIRST)  # False for missing hypotheses
    log_probs = ops.where(kept, of_parents(state["log_probs"], parents), best)
    return parents, tokens, log_probs, kept, {}


def _scores(state, score, banks):
    """(B, K): the scores of finished hypotheses, -inf for the others.

    Hypotheses that lack terms get -inf if another one of their row has all terms.
    """
    scores = score(state["log_probs"], state["lengths"])
    scores = ops.where(state["finished"], scores, NOTHING)
    if banks is None:
        return scores
    met = banks.are_met(state)
    one_is = ops.any(met & (scores > NOTHING), axis=1, keepdims=True)
    return ops.where(met | ~one_is, scores, NOTHING)

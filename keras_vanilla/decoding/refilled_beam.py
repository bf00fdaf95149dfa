"""Beam search whose finished hypotheses leave the beam, as in Hugging Face's."""

from typing import Any

import keras
from keras import ops

from keras_vanilla._operators import slice_update
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.beam_past import of_parents
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.constraints import Constraints
from keras_vanilla.decoding.hypothesis_end import ends_here
from keras_vanilla.decoding.loop import noted, with_notes
from keras_vanilla.decoding.searched_model import SearchedModel
from keras_vanilla.decoding.top_k import NOTHING, best_tokens, log_total


def start_pool(model: SearchedModel, shape: tuple, notes: dict) -> dict[str, Any]:
    """K places (B, K, L) for finished hypotheses, all of them empty."""
    ids = ops.full(shape, model.pad_id, dtype="int32")
    return {"ids": ids, "scores": ops.full(shape[:2], NOTHING), "notes": notes}


def refill(
    model: SearchedModel,
    past: Any,
    state: dict,
    limits: Tensor,
    constraints: Constraints,
    config: DecodingConfig,
) -> dict:
    """Extends all beams by one token, and keeps K beams that have not ended.

    Of the 2 K best continuations, those that end, if they are among the K best, compete
    for the K places of the pool by their scores; the K best others are the beams. A row
    is done once the pool is full, and

        early_stopping=True       at once
        early_stopping=False      the best beam, if it ended now, would not enter
        early_stopping="never"    not even if it ended at the longest length

    Args:
        model: SearchedModel.
        past: SharedPast or CopiedPast.
        state: state of the search, with a `pool`; its `finished` is True for rows that
            are done.
        limits: int32 (B,) or int. Longest length of each row.
        constraints: Constraints.
        config: DecodingConfig.
    Source: `transformers.GenerationMixin._beam_search`.
    """
    index, beam_size = state["index"], config.beam_size
    count = index + 1
    logits, cache = past.step(state["last"], index, state["cache"])
    batch, _, size = ops.shape(logits)
    most = min(2 * beam_size, size)  # continuations per beam
    allowed = constraints(logits, state["ids"], index)
    best, tokens = best_tokens(allowed, most)
    log_probs = ops.expand_dims(state["log_probs"], 2) + best - log_total(logits)
    log_probs = ops.reshape(log_probs, (batch, -1))
    log_probs, chosen = ops.top_k(log_probs, k=min(2, most) * beam_size)  # (B, 2 K)
    chosen = ops.cast(chosen, "int32")
    parents = ops.floor_divide(chosen, most)
    tokens = ops.take_along_axis(ops.reshape(tokens, (batch, -1)), chosen, axis=1)
    ids = slice_update(
        of_parents(state["ids"], parents), (0, 0, index), ops.expand_dims(tokens, 2)
    )
    notes = noted_by_parents(model, state, cache, parents, log_probs)
    ends = ends_here(tokens, count, limits, model.end_id)

    def score(log_probs, lengths):
        return config.apply_length_penalty(log_probs, ops.cast(lengths, "float32"))

    is_first = ops.arange(log_probs.shape[1]) < beam_size
    enters = ends & is_first & ~state["finished"][:, :1]
    scores = ops.where(enters, score(log_probs, count), NOTHING)
    both = keras.tree.map_structure(
        lambda old, new: ops.concatenate([old, new], axis=1),
        state["pool"],
        {"ids": ids, "scores": scores, "notes": notes},
    )
    pool = best_of(both, beam_size)
    log_probs, kept = ops.top_k(ops.where(ends, NOTHING, log_probs), k=beam_size)
    kept = ops.cast(kept, "int32")
    parents = ops.take_along_axis(parents, kept, axis=1)

    worst, best_beam = pool["scores"][:, -1], log_probs[:, 0]
    bound = score(best_beam, limits if config.early_stopping == "never" else count)
    is_full = ops.greater(worst, NOTHING)
    done = is_full if config.early_stopping is True else is_full & (bound <= worst)
    done = done | ops.equal(best_beam, NOTHING)
    return {
        "index": count,
        "last": ops.take_along_axis(tokens, kept, axis=1),
        "ids": of_parents(ids, kept),
        "log_probs": log_probs,
        "lengths": ops.broadcast_to(count, ops.shape(kept)),
        "finished": state["finished"] | ops.expand_dims(done, 1),
        "cache": past.of_parents(cache, state["cache"], parents),
        "notes": {name: of_parents(values, kept) for name, values in notes.items()},
        "terms": {},
        "pool": pool,
    }


def best_of(pool: dict, count: int) -> dict[str, Any]:
    """The hypotheses with the best scores, best first.

    Args:
        pool: dict of "ids" (B, n, L), "scores" (B, n) and "notes", a dict of (B, n, L).
        count: int.
    """
    scores, order = ops.top_k(pool["scores"], k=count)
    order = ops.cast(order, "int32")
    notes = {name: of_parents(values, order) for name, values in pool["notes"].items()}
    return {"ids": of_parents(pool["ids"], order), "scores": scores, "notes": notes}


def noted_by_parents(
    model: SearchedModel, state: dict, cache: Any, parents: Tensor, log_probs: Tensor
) -> dict[str, Tensor]:
    """The notes of hypotheses, including their last tokens.

    Args:
        model: SearchedModel.
        state: state of the search before the tokens.
        cache: cache after the tokens' step.
        parents: int32 (B, n). The beams that the hypotheses continue.
        log_probs: float32 (B, n). Log-probabilities of the hypotheses.
    """
    if not state["notes"]:
        return {}
    notes = {name: of_parents(x, parents) for name, x in state["notes"].items()}
    new = {
        name: of_parents(ops.reshape(value, ops.shape(parents)), parents)
        for name, value in noted(model, cache).items()
    }
    exists = ops.greater(log_probs, NOTHING)
    before = of_parents(state["log_probs"], parents)
    added = ops.where(exists, log_probs - before, 0.0)
    return with_notes(notes, state["index"], new, added)

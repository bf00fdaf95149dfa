"""Beam search: at each step, the most probable of all continuations are kept."""

from typing import Any

from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.constraints import Constraints
from keras_vanilla.decoding.hypothesis_end import ends_here
from keras_vanilla.decoding.loop import run_loop
from keras_vanilla.decoding.top_k import blockwise_top_k

NOTHING = float("-inf")  # the log-probability of a hypothesis that does not exist
FIRST = 1.0  # ranks before every log-probability


def beam_search(
    model: Any,
    source_ids: Tensor,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    length_normalization: str = "gnmt",
    max_length: int | None = None,
    n_best: int | None = None,
    target_prefix: Tensor | None = None,
    no_repeat_ngram_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Maps source ids to the best of the hypotheses that K beams find, with scores.

        score = log P(hypothesis | source) / lp(n),    lp(n) = ((5 + n) / 6)^a  "gnmt"
                                                       lp(n) = n^a              "power"

    A hypothesis that ends keeps its place among the K, and the search continues with
    one beam fewer. (Some searches fill the place again: with one beam they are not
    greedy search; this one is.) A row is done when no beam can still enter its `n_best`
    hypotheses, whatever tokens follow: log P only falls, so a beam that has
    log-probability p now never scores above p / lp(longest length). At a row's longest
    length the beams are returned as they are, without an end.

    Args:
        model: as `greedy_search` takes it.
        source_ids: int tensor (B, S).
        beam_size: int. Hypotheses kept per row (K).
        length_penalty: float, at least 0. The exponent a; with 0 the score is log P.
        length_normalization: "gnmt" or "power".
        max_length: int or None, as in `greedy_search`.
        n_best: int or None. Hypotheses returned per row; None means all K. With fewer
            the search can end sooner.
        target_prefix: int tensor (B, P) or None, as in `greedy_search`.
        no_repeat_ngram_size: int or None, as in `greedy_search`.
    Returns:
        Int32 ids (B, n_best, L), best first, and float32 scores (B, n_best). Where a
        row has fewer hypotheses, the last have the score -inf and only pads.
    Raises:
        ValueError: as `DecodingConfig`; also if `max_length` is above the model's, an
            id that can be read is outside the vocabulary, or `target_prefix` is not
            valid, see `Constraints`.
    Source: Wu et al. 2016, section 7 for "gnmt"; Vaswani et al. 2017, section 6.1.
    """
    config = DecodingConfig(
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_length=max_length,
        n_best=beam_size if n_best is None else n_best,
        length_normalization=length_normalization,
        no_repeat_ngram_size=no_repeat_ngram_size,
    )
    constraints = Constraints(model, target_prefix, config.no_repeat_ngram_size)
    memory, memory_mask = model.encode(source_ids)
    length, limits = constraints.row_limits(memory_mask, config.max_length)

    def score(log_probs, lengths):
        return config.apply_length_penalty(log_probs, ops.cast(lengths, "float32"))

    def unfinished(state):
        worst = ops.top_k(_scores(state, score), k=config.n_best)[0][:, -1]  # (B,)
        live = ops.where(state["finished"], NOTHING, state["log_probs"])
        bound = score(ops.max(live, axis=1), limits)
        return ops.logical_and(
            ops.less(state["index"], length), ops.any(ops.greater(bound, worst))
        )

    state = run_loop(
        model,
        unfinished,
        lambda state: _step(model, state, limits, constraints),
        _start(model, memory, memory_mask, config.beam_size, length),
    )
    scores, order = ops.top_k(
        _scores(state, score), k=config.n_best
    )  # (B, K) -> (B, n_best)
    ids = _of_parents(state["ids"], ops.cast(order, "int32"))
    exists = ops.expand_dims(ops.greater(scores, NOTHING), 2)
    return ops.where(exists, ids, model.pad_id), scores


def _start(model, memory, memory_mask, beam_size, length):
    """K beams per row, of which one exists; the cache has the K of a row in order."""
    batch = ops.shape(memory)[0]
    shape = (batch, beam_size)
    first = ops.cast(ops.equal(ops.arange(beam_size), 0), "float32")
    return {
        "index": ops.convert_to_tensor(0, dtype="int32"),
        "last": ops.full(shape, model.start_id, dtype="int32"),
        "ids": ops.full((*shape, length), model.pad_id, dtype="int32"),
        "log_probs": ops.broadcast_to(ops.where(first > 0, 0.0, NOTHING), shape),
        "lengths": ops.ones(shape, dtype="int32"),
        "finished": ops.zeros(shape, dtype="bool"),
        "cache": model.start_cache(
            ops.repeat(memory, beam_size, axis=0),
            ops.repeat(memory_mask, beam_size, axis=0),
            length,
        ),
    }


def _step(model, state, limits, constraints):
    """Extends every live beam by one token and keeps the K best hypotheses."""
    logits, cache = model.decode_step(
        ops.reshape(state["last"], (-1,)), state["index"], state["cache"]
    )
    parents, tokens, log_probs, ended_before = _best_continuations(
        state, logits, constraints
    )
    tokens = ops.where(ended_before, model.pad_id, tokens)
    count = state["index"] + 1
    ends = ends_here(tokens, count, limits, model.end_id)
    ids = _of_parents(state["ids"], parents)
    return {
        "index": count,
        "last": tokens,
        "ids": ops.slice_update(
            ids, (0, 0, state["index"]), ops.expand_dims(tokens, 2)
        ),
        "log_probs": log_probs,
        "lengths": ops.where(
            ended_before, _of_parents(state["lengths"], parents), count
        ),
        "finished": ended_before | (ends & ops.greater(log_probs, NOTHING)),
        "cache": _reordered(cache, state["cache"], parents),
    }


def _best_continuations(state, logits, constraints):
    """The K best continuations: parent beams, tokens, log-probabilities, `kept`.

    A finished hypothesis has one continuation, itself, which ranks before all others;
    `kept` is True there.
    """
    batch, beam_size = ops.shape(state["last"])
    size = ops.shape(logits)[1]
    finished = ops.expand_dims(state["finished"], 2)
    itself = ops.where(ops.equal(ops.arange(size), 0), FIRST, NOTHING)
    added = ops.reshape(_log_softmax(logits), (batch, beam_size, size))
    added = constraints(added, state["ids"], state["index"])
    ranks = ops.where(finished, itself, ops.expand_dims(state["log_probs"], 2) + added)
    ranks = ops.reshape(ranks, (batch, beam_size * size))
    best, places = blockwise_top_k(ranks, beam_size)  # (B, K * V) -> (B, K)
    parents = ops.floor_divide(places, size)
    kept = ops.equal(best, FIRST)  # False where there was no hypothesis left
    log_probs = ops.where(kept, _of_parents(state["log_probs"], parents), best)
    return parents, ops.mod(places, size), log_probs, kept


def _log_softmax(logits):
    # TensorFlow Lite's own log-softmax operator takes four times as long.
    maximum = ops.max(logits, axis=-1, keepdims=True)
    total = ops.sum(ops.exp(logits - maximum), axis=-1, keepdims=True)
    return logits - (ops.log(total) + maximum)


def _of_parents(values, parents):
    """(B, K, ...) of each beam -> (B, n, ...) of the beams `parents` (B, n)."""
    for _ in range(len(values.shape) - 2):
        parents = ops.expand_dims(parents, -1)
    return ops.take_along_axis(values, parents, axis=1)


def _reordered(cache, before, parents):
    """The cache with the past of each beam's parent.

    Tensors that a step does not change, such as the memory's keys, are equal in all
    beams of a row and stay as they are.
    """
    batch, beam_size = ops.shape(parents)
    rows = ops.expand_dims(ops.arange(batch) * beam_size, 1) + parents  # (B, K)
    rows = ops.reshape(rows, (-1,))
    return {
        name: value if value is before[name] else ops.take(value, rows, axis=0)
        for name, value in cache.items()
    }


def _scores(state, score):
    """(B, K): the scores of finished hypotheses, -inf for the others."""
    scores = score(state["log_probs"], state["lengths"])
    return ops.where(state["finished"], scores, NOTHING)

"""Beam search: at each step, the most probable of all continuations are kept."""

import math

from keras import ops

from keras_vanilla.decoding.limits import row_limits
from keras_vanilla.decoding.loop import repeat
from keras_vanilla.decoding.top_k import highest

NOTHING = float("-inf")  # the log-probability of a hypothesis that does not exist
FIRST = 1.0  # ranks before every log-probability


def beam_search(
    model,
    source_ids,
    beam_size=4,
    length_penalty=0.6,
    penalty="gnmt",
    max_length=None,
    n_best=None,
):
    """Maps source ids to the best of the hypotheses that K beams find, with scores.

        score = log P(hypothesis | source) / lp(n),    lp(n) = ((5 + n) / 6)^a  "gnmt"
                                                       lp(n) = n^a              "power"

    A hypothesis that ends keeps its place among the K, and the search goes on with one
    beam fewer (some searches fill the place again: theirs with one beam is not greedy
    search, this one is). A row is done when no beam can still enter its `n_best`
    hypotheses, whatever it would go on with: log P only falls, so a beam that has
    log-probability p now never scores above p / lp(longest length). At a row's longest
    length beams are taken as they are, without an end.

    Args:
        model: as `greedy_search` takes it.
        source_ids: int tensor (B, S).
        beam_size: int. Hypotheses that are kept of each row (K).
        length_penalty: float, at least 0. The exponent a; 0 leaves the sum as it is.
        penalty: "gnmt" or "power".
        max_length: int or None, as in `greedy_search`.
        n_best: int or None. Hypotheses wanted of each row; None means all K. With fewer
            the search can end sooner.
    Returns:
        Int32 ids (B, n_best, L), best first, and float32 scores (B, n_best). Of a row
        with fewer hypotheses the last have the score -inf, and only pads.
    Raises:
        ValueError: if `beam_size` or `max_length` is below 1, `n_best` is not from 1 to
            `beam_size`, the penalty is another, its exponent is negative or not finite,
            or an id that can be read is outside the vocabulary.
    Source: Wu et al. 2016, section 7 for "gnmt"; Vaswani et al. 2017, section 6.1.
    """
    n_best = beam_size if n_best is None else n_best
    check_beam_search(beam_size, n_best, length_penalty, penalty)
    memory, memory_mask = model.encode(source_ids)
    length, limits = row_limits(model, memory_mask, max_length)

    def score(log_probs, lengths):
        n = ops.cast(lengths, "float32")
        n = (5 + n) / 6 if penalty == "gnmt" else n
        return log_probs / ops.power(n, length_penalty)

    def unfinished(state):
        worst = ops.top_k(_scores(state, score), k=n_best)[0][:, -1]  # (B,)
        live = ops.where(state["finished"], NOTHING, state["log_probs"])
        bound = score(ops.max(live, axis=1), limits)
        return ops.logical_and(
            ops.less(state["index"], length), ops.any(ops.greater(bound, worst))
        )

    state = repeat(
        model,
        unfinished,
        lambda state: _step(model, state, limits),
        _start(model, memory, memory_mask, beam_size, length),
    )
    scores, order = ops.top_k(_scores(state, score), k=n_best)  # (B, K) -> (B, n_best)
    ids = _of_parents(state["ids"], ops.cast(order, "int32"))
    exists = ops.expand_dims(ops.greater(scores, NOTHING), 2)
    return ops.where(exists, ids, model.pad_id), scores


def _start(model, memory, memory_mask, beam_size, length):
    """K beams a row, of which one exists; their caches lie row after row."""
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


def _step(model, state, limits):
    """Every live beam one token on, and the K best of what comes of them."""
    logits, cache = model.decode_step(
        ops.reshape(state["last"], (-1,)), state["index"], state["cache"]
    )
    parents, tokens, log_probs, ended_before = _best_continuations(state, logits)
    tokens = ops.where(ended_before, model.pad_id, tokens)
    count = state["index"] + 1
    ends = ops.equal(tokens, model.end_id) | ops.expand_dims(count >= limits, -1)
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


def _best_continuations(state, logits):
    """Which beam each of the K best goes on from, its token and log-probability.

    A finished hypothesis goes on in one way, as itself, and before all others; whether
    that is so is the fourth that is returned.
    """
    batch, beam_size = ops.shape(state["last"])
    size = ops.shape(logits)[1]
    finished = ops.expand_dims(state["finished"], 2)
    itself = ops.where(ops.equal(ops.arange(size), 0), FIRST, NOTHING)
    added = ops.reshape(_log_softmax(logits), (batch, beam_size, size))
    ranks = ops.where(finished, itself, ops.expand_dims(state["log_probs"], 2) + added)
    ranks = ops.reshape(ranks, (batch, beam_size * size))
    best, places = highest(ranks, beam_size)  # (B, K * V) -> (B, K)
    parents = ops.floor_divide(places, size)
    kept = ops.equal(best, FIRST)  # and no place that nothing was left to fill
    log_probs = ops.where(kept, _of_parents(state["log_probs"], parents), best)
    return parents, ops.mod(places, size), log_probs, kept


def _log_softmax(logits):
    # TensorFlow Lite takes four times as long for the operator of this name.
    highest = ops.max(logits, axis=-1, keepdims=True)
    total = ops.sum(ops.exp(logits - highest), axis=-1, keepdims=True)
    return logits - (ops.log(total) + highest)


def _of_parents(values, parents):
    """(B, K, ...) of each beam -> (B, n, ...) of the beams `parents` (B, n)."""
    for _ in range(len(values.shape) - 2):
        parents = ops.expand_dims(parents, -1)
    return ops.take_along_axis(values, parents, axis=1)


def _reordered(cache, before, parents):
    """The cache with each beam's past at its place.

    What a step leaves alone, such as the memory's keys, is equal in all beams of a row.
    """
    batch, beam_size = ops.shape(parents)
    rows = ops.expand_dims(ops.arange(batch) * beam_size, 1) + parents  # (B, K)
    rows = ops.reshape(rows, (-1,))
    return {
        name: value if value is before[name] else ops.take(value, rows, axis=0)
        for name, value in cache.items()
    }


def _scores(state, score):
    """(B, K) of the hypotheses that are finished; of the others, -inf."""
    scores = score(state["log_probs"], state["lengths"])
    return ops.where(state["finished"], scores, NOTHING)


def check_beam_search(beam_size, n_best, length_penalty, penalty="gnmt"):
    """Refuses arguments of `beam_search` that are out of their range.

    Raises:
        ValueError: see `beam_search`.
    """
    if not isinstance(beam_size, int) or beam_size < 1:
        raise ValueError(
            f"`beam_size` must be an int of at least 1. Received: {beam_size}"
        )
    if not isinstance(n_best, int) or not 1 <= n_best <= beam_size:
        raise ValueError(
            f"`n_best` must be at least 1 and at most `beam_size`, {beam_size}. "
            f"Received: {n_best}"
        )
    if not 0 <= length_penalty < math.inf:
        raise ValueError(
            f"`length_penalty` must be at least 0, and finite. Received: "
            f"{length_penalty}"
        )
    if penalty not in ("gnmt", "power"):
        raise ValueError(f"`penalty` must be 'gnmt' or 'power'. Received: {penalty!r}")

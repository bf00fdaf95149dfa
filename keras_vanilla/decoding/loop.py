"""The loop of a search, and notes on each token."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_vanilla._operators import slice_update
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.cache import GrowingCache
from keras_vanilla.decoding.constraints import Constraints
from keras_vanilla.decoding.hypothesis_end import ends_here
from keras_vanilla.decoding.searched_model import SearchedModel

LOG_PROBS = "log_probs"


def decode_token_by_token(
    model: SearchedModel,
    source_ids: Tensor,
    choose: Callable,
    constraints: Constraints,
    log_prob: Callable | None = None,
    return_notes: bool = False,
    rows_may_leave: bool = False,
) -> tuple[Tensor, Tensor | None, dict[str, Tensor]]:
    """Maps source ids to target ids, one token after another.

    This is one `keras.ops` loop over a cache of fixed length: the same code runs in
    Python, in a compiled graph and inside an exported file.

    Args:
        model: SearchedModel.
        source_ids: as for `greedy_search`.
        choose: function that maps float32 logits (B, V) and the step, an int32 scalar
            that counts from 0, to int32 ids (B,).
        constraints: Constraints. `choose` gets logits with -inf for forbidden tokens;
            `log_prob` gets the model's logits.
        log_prob: function that maps logits (B, V) and the chosen ids (B,) to their
            log-probabilities (B,), which are summed; or None.
        return_notes: bool. Return the notes of each token, see `start_notes`; requires
            `log_prob`.
        rows_may_leave: bool. Whether `choose` takes any rows, see `run_loop`.
    Returns:
        Int32 ids (B, L), float32 sums (B,) or None, and the notes, a dict of tensors
        (B, L), which is empty without `return_notes`.
    Raises:
        ValueError: same as `greedy_search`.
    """
    memory, memory_mask = model.encode(source_ids)
    batch = ops.shape(memory)[0]
    length, limits = constraints.row_limits(memory_mask)
    state = {
        "index": ops.convert_to_tensor(0, dtype="int32"),
        "last": ops.full((batch,), model.start_id, dtype="int32"),
        "ids": ops.full((batch, length), model.pad_id, dtype="int32"),
        "finished": ops.zeros((batch,), dtype="bool"),
        "sums": ops.zeros((batch,), dtype="float32"),
        "cache": model.start_cache(memory, memory_mask, length),
        "notes": start_notes(model, (batch, length)) if return_notes else {},
    }

    def live(state, rows):
        return ops.logical_not(state["finished"])

    def step(state, rows):
        index = state["index"]
        logits, cache = model.decode_step(state["last"], index, state["cache"])
        allowed = constraints.of_rows(rows)(logits, state["ids"], index)
        chosen = ops.where(state["finished"], model.pad_id, choose(allowed, index))
        added = 0.0 if log_prob is None else log_prob(logits, chosen)
        added = ops.where(state["finished"], 0.0, added)
        return {
            "index": index + 1,
            "last": chosen,
            "ids": slice_update(state["ids"], (0, index), ops.expand_dims(chosen, 1)),
            "finished": state["finished"]
            | ends_here(chosen, index + 1, rows["limits"], model.end_id),
            "sums": state["sums"] + added,
            "cache": cache,
            "notes": with_notes(state["notes"], index, noted(model, cache), added),
        }

    rows = {"limits": limits, **constraints.rows}
    state = run_loop(model, state, step, live, length, rows, rows_may_leave)
    sums = None if log_prob is None else state["sums"]
    return state["ids"], sums, state["notes"]


def run_loop(
    model: SearchedModel,
    state: dict,
    step: Callable,
    live: Callable,
    length: Tensor | int,
    rows: dict[str, Tensor],
    rows_may_leave: bool = False,
) -> dict:
    """Runs the loop of a search until no row is live.

    Args:
        model: SearchedModel.
        state: dict of tensors, batch first, except "index", a scalar that counts steps.
        step: function that maps the state and `rows` to the next state.
        live: function that maps the state and `rows` to a bool tensor (B,), False for
            rows whose result no further step changes.
        length: int or int32 scalar. Largest number of steps.
        rows: dict of tensors, batch first, that steps do not change.
        rows_may_leave: bool. Whether `step` takes any rows of the batch. If so, and if
            the cache is a `GrowingCache`, whose shapes may change, rows that are not
            live leave the batch as soon as they are half of it.
    Returns:
        The state after the last step, without the cache.
    """
    if rows_may_leave and isinstance(state["cache"], GrowingCache):
        return _run_with_fewer_rows(model, state, step, live, length, rows)

    def unfinished(state):
        is_shorter = ops.less(state["index"], length)
        return ops.logical_and(is_shorter, ops.any(live(state, rows)))

    (state,) = model.while_loop(
        unfinished, lambda state: (step(state, rows),), (state,)
    )
    return _without_cache(state)


def _run_with_fewer_rows(model, state, step, live, length, rows):
    """Runs the loop; each time that half of the rows are done, the others continue."""

    def until_half_are_done(results, indices, rows, state, _):
        def most_are_live(state):
            is_shorter = ops.less(state["index"], length)
            count = ops.sum(ops.cast(live(state, rows), "int32"))
            return ops.logical_and(
                is_shorter, ops.greater(2 * count, ops.shape(indices)[0])
            )

        (state,) = model.while_loop(
            most_are_live, lambda state: (step(state, rows),), (state,)
        )
        results = keras.tree.map_structure(
            lambda result, value: _written_to_rows(result, indices, value),
            results,
            _without_cache(state),
        )
        is_live = live(state, rows)
        continues = ops.logical_and(ops.less(state["index"], length), ops.any(is_live))
        others = ops.cast(ops.nonzero(is_live)[0], "int32")
        return results, *_rows_of((indices, rows, state), others), continues

    indices = ops.arange(ops.shape(state["last"])[0], dtype="int32")
    limits = ops.broadcast_to(rows["limits"], ops.shape(indices))
    rows = {**rows, "limits": limits}
    rows, state = _rows_of((rows, state), indices)  # in a graph, of no fixed number
    return model.while_loop(
        lambda *loop_state: loop_state[-1],
        until_half_are_done,
        (_without_cache(state), indices, rows, state, ops.convert_to_tensor(True)),
    )[0]


def _without_cache(state):
    return {name: value for name, value in state.items() if name != "cache"}


def _rows_of(values, indices):
    """The rows of all values (B, ...); a scalar, the index, is the same for all."""
    return keras.tree.map_structure(
        lambda value: ops.take(value, indices, axis=0) if len(value.shape) else value,
        values,
    )


def _written_to_rows(result, indices, value):
    """The result (B, ...) with new rows; a scalar, the index, is replaced."""
    if not len(value.shape):
        return value
    return ops.scatter_update(result, ops.expand_dims(indices, 1), value)


def start_notes(model: SearchedModel, shape: tuple) -> dict[str, Tensor]:
    """Creates empty notes.

    Args:
        model: SearchedModel.
        shape: (B, L) or (B, K, L).
    Returns:
        Dict of tensors of that shape: "log_probs", float32, and int32 tensors with the
        names in `model.noted`.
    """
    notes = {name: ops.zeros(shape, dtype="int32") for name in model.noted}
    return {LOG_PROBS: ops.zeros(shape, dtype="float32"), **notes}


def noted(model: SearchedModel, cache: Any) -> dict[str, Tensor]:
    """The values to be noted that a model's step has left in its cache, by name."""
    return {name: cache.extra[name] for name in model.noted}


def with_notes(
    notes: dict[str, Tensor], index: Tensor, new: dict, log_probs: Tensor
) -> dict[str, Tensor]:
    """Adds the notes of one more token of each hypothesis.

    Args:
        notes: dict of tensors (B, L) or (B, K, L), or {}, which is returned as {}.
        index: int32 scalar. The token's position.
        new: dict of the token's notes, (B,) or (B, K); other entries are ignored.
        log_probs: float32 tensor of the same shape.
    """
    new = {**new, LOG_PROBS: log_probs}
    start = (*(0 for _ in log_probs.shape), index)
    return {
        name: slice_update(values, start, ops.expand_dims(new[name], -1))
        for name, values in notes.items()
    }

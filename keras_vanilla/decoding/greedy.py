"""Greedy search: at each step, the most likely token."""

from keras import ops


def greedy_search(model, source_ids, max_length=None):
    """Maps source ids to target ids, taking the most likely token at each step.

    One `keras.ops` loop over a cache of fixed length: the same code runs in Python, in
    a compiled graph and inside an exported file. Of equal logits the lowest id wins
    (PyTorch's `top_k` leaves the choice open).

    Args:
        model: has `encode`, `start_cache`, `decode_step`, `start_id`, `end_id`,
            `pad_id` and `max_length`, as `Transformer` has.
        source_ids: int tensor (B, S).
        max_length: int or None. Longest output in tokens, its end included. None means
            50 more than the row's own source has, whatever it is padded to, and never
            more than the model's `max_length`.
    Returns:
        Int32 tensor (B, L): the tokens, `end_id` after the last (unless the longest
        output came first), then `pad_id`. L is `max_length`, or S + 50.
    Raises:
        ValueError: if `max_length` is below 1 or above the model's, or an id that can
            be read is outside the vocabulary.
    Source: Vaswani et al. 2017, section 6.1, for the S + 50.
    """
    memory, memory_mask = model.encode(source_ids)
    batch, source_length = ops.shape(memory)[:2]
    length = output_length(model, source_length, max_length)
    own_lengths = ops.sum(ops.cast(memory_mask, "int32"), axis=1)
    limits = output_length(model, own_lengths, max_length)  # (B,)
    state = {
        "index": ops.convert_to_tensor(0, dtype="int32"),
        "last": ops.full((batch,), model.start_id, dtype="int32"),
        "ids": ops.full((batch, length), model.pad_id, dtype="int32"),
        "finished": ops.zeros((batch,), dtype="bool"),
        "cache": model.start_cache(memory, memory_mask, length),
    }

    def unfinished(state):
        return ops.logical_and(
            ops.less(state["index"], length),
            ops.logical_not(ops.all(state["finished"])),
        )

    def step(state):
        logits, cache = model.decode_step(state["last"], state["index"], state["cache"])
        best = ops.cast(ops.top_k(logits, k=1)[1][:, 0], "int32")  # (B, V) -> (B,)
        chosen = ops.where(state["finished"], model.pad_id, best)
        return {
            "index": state["index"] + 1,
            "last": chosen,
            "ids": ops.slice_update(
                state["ids"], (0, state["index"]), ops.expand_dims(chosen, 1)
            ),
            "finished": state["finished"]
            | ops.equal(chosen, model.end_id)
            | ops.greater_equal(state["index"] + 1, limits),
            "cache": cache,
        }

    return ops.while_loop(unfinished, lambda state: (step(state),), (state,))[0]["ids"]


def output_length(model, source_length, max_length=None):
    """The number of tokens a search may produce, its end included.

    Args:
        model: has `max_length`.
        source_length: int, or an int32 tensor of any shape.
        max_length: int or None, what the caller asked for.
    Raises:
        ValueError: if `max_length` is below 1 or above the model's.
    """
    if max_length is not None:
        if not 1 <= max_length <= model.max_length:
            raise ValueError(
                "`max_length` must be at least 1 and at most the model's, "
                f"{model.max_length}. Received: {max_length}"
            )
        return max_length
    longest = source_length + 50
    if isinstance(longest, int):
        return min(longest, model.max_length)
    return ops.minimum(longest, model.max_length)

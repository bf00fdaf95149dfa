"""The loop of every search that keeps one hypothesis a row."""

from keras import ops

from keras_vanilla.decoding.limits import row_limits


def one_by_one(model, source_ids, choose, max_length=None):
    """Maps source ids to target ids, choosing one token after another.

    One `keras.ops` loop over a cache of fixed length: the same code runs in Python, in
    a compiled graph and inside an exported file.

    Args:
        model: as for `greedy_search`.
        source_ids: as for `greedy_search`.
        choose: maps float32 logits (B, V) and the step, an int32 scalar that counts
            from 0, to int32 ids (B,).
        max_length: as for `greedy_search`.
    Returns, Raises: as `greedy_search`.
    """
    memory, memory_mask = model.encode(source_ids)
    batch = ops.shape(memory)[0]
    length, limits = row_limits(model, memory_mask, max_length)
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
        index = state["index"]
        logits, cache = model.decode_step(state["last"], index, state["cache"])
        chosen = ops.where(state["finished"], model.pad_id, choose(logits, index))
        return {
            "index": index + 1,
            "last": chosen,
            "ids": ops.slice_update(
                state["ids"], (0, index), ops.expand_dims(chosen, 1)
            ),
            "finished": state["finished"]
            | ops.equal(chosen, model.end_id)
            | ops.greater_equal(index + 1, limits),
            "cache": cache,
        }

    return ops.while_loop(unfinished, lambda state: (step(state),), (state,))[0]["ids"]

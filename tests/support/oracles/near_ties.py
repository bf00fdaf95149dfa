"""Whether two searches that differ do so by rounding alone."""

import numpy as np

GAP = 1e-4


def assert_same_but_for_near_ties(model, sources, expected, received):
    """Each row of ids must be equal up to a position where two logits nearly tie.

    Args:
        model: Transformer, the judge.
        sources: list of lists of source ids.
        expected: int array (R, L) of Keras's ids.
        received: int array (R, L') of the others.
    """
    assert len(sources) == len(expected) == len(received)
    for source, ours, theirs in zip(sources, expected, received, strict=True):
        ours, theirs = _real(ours, model), _real(theirs, model)
        if ours == theirs:
            continue
        common = 0
        while ours[common] == theirs[common]:  # past an end there is no such position
            common += 1
        inputs = {
            "source_ids": np.array([source]),
            "target_ids": np.array([[model.start_id, *ours[:common]]]),
        }
        logits = np.asarray(model(inputs))[0, -1]
        gap = abs(logits[ours[common]] - logits[theirs[common]])
        assert gap <= GAP, f"{source}: {ours} and {theirs} part by {gap}"


def _real(ids, model):
    ids = [int(i) for i in ids]
    return ids[: ids.index(model.end_id) + 1] if model.end_id in ids else ids

"""The paths below a tree of hypotheses: greedy search's, and a given translation's."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_vanilla.decoding import DecodingConfig

GREEDY, GIVEN = "greedy", "given"


class Path(NamedTuple):
    """One sequence of tokens, and what a model says of it.

    Fields:
        kind: GREEDY or GIVEN.
        tokens: list of int, one per step.
        log_probs: list of float; at each step that of all tokens up to there.
        score: float or None. The last divided by the length normalization.
    """

    kind: str
    tokens: list[int]
    log_probs: list[float]
    score: float | None = None


def greedy_path(states: list[dict]) -> Path:
    """The path of the first row of a greedy search, until its end.

    Args:
        states: list of dicts, from `trace_search(greedy_search, ...,
            return_scores=True)`.
    """
    tokens, log_probs = [], []
    for step, state in enumerate(states[1:]):
        tokens.append(int(state["ids"][0, step]))
        log_probs.append(float(state["sums"][0]))
        if state["finished"][0]:
            break
    return Path(GREEDY, tokens, log_probs)


def given_path(
    model: Any,
    source_ids: np.ndarray,
    target: Sequence[int],
    length_penalty: float = 0.6,
) -> Path:
    """The path of a given translation, with the score that beam search gives it.

    Args:
        model: Transformer.
        source_ids: int array (1, S).
        target: list of int, its end last.
        length_penalty: float, see `beam_search`.
    """
    shifted = np.array([[model.start_id, *target[:-1]]])
    logits = model({"source_ids": source_ids, "target_ids": shifted})
    log_probs = ops.convert_to_numpy(ops.log_softmax(logits))[0]  # (T, V)
    sums = np.cumsum(log_probs[np.arange(len(target)), target])
    config = DecodingConfig(length_penalty=length_penalty)
    score = config.apply_length_penalty(float(sums[-1]), len(target))
    return Path(GIVEN, list(target), sums.tolist(), score)

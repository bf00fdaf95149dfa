"""A search that records its state at each step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.searched_model import ModelAround


class SearchTrace(NamedTuple):
    """The result and the states of a search.

    Fields:
        result: the result of the search, as NumPy arrays.
        states: list of dicts, see `trace_search`.
    """

    result: Any
    states: list[dict[str, np.ndarray]]


def trace_search(
    search: Callable, model: Any, source_ids: Tensor, **arguments
) -> SearchTrace:
    """Runs a search and records its state before the first step and after each step.

    The code of the search is the same, but its loop runs in Python, which is slow.

    Args:
        search: `greedy_search`, `beam_search`, `sample`, or another function of a model
            and source ids that uses `keras_vanilla.decoding.loop.run_loop`.
        model: as for the search.
        source_ids: int tensor (B, S).
        arguments: the search's other arguments.
    Returns:
        SearchTrace. A state is a dict of NumPy arrays:

            "index"      ()        number of steps so far
            "last"       (B,)      the next tokens to be read
            "ids"        (B, L)    the tokens chosen so far, then pads
            "finished"   (B,)      whether a row has ended
            "sums"       (B,)      log-probabilities; zeros unless they are returned
            "logits"     (B, V)    the next token's logits, including those of forbidden
                                   tokens; missing in the last state

        In a beam search, all except "index" have one more axis (K) after the first, and
        "log_probs" and "lengths", both (B, K), replace "sums". The cache, the notes and
        the state of terms are left out.
    Raises:
        ValueError: same as the search.
    Example:
        result, states = trace_search(beam_search, model, source_ids, beam_size=2)
        states[1]["ids"][0, :, :1]  # the first tokens of both hypotheses
    """
    traced = _Traced(model)
    result = search(traced, source_ids, **arguments)
    result = keras.tree.map_structure(ops.convert_to_numpy, result)
    return SearchTrace(result, traced.states)


class _Traced(ModelAround):
    """A model that runs the loop in Python and keeps each state."""

    def __init__(self, model):
        super().__init__(model)
        self._logits = None
        self.states = []

    def decode_step(self, ids, index, cache):
        self._logits, cache = self._model.decode_step(ids, index, cache)
        return self._logits, cache

    def while_loop(self, unfinished, step, states):
        self._keep(*states)
        while unfinished(*states):
            states = step(*states)
            shape = (*self.states[-1]["last"].shape, -1)
            logits = ops.convert_to_numpy(self._logits)
            self.states[-1]["logits"] = logits.reshape(shape)  # (B * K, V)
            self._keep(*states)
        return states

    def _keep(self, state):
        self.states.append(
            {
                name: np.array(ops.convert_to_numpy(value))
                for name, value in state.items()
                if name not in ("cache", "notes", "terms", "pool")
            }
        )

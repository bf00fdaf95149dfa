"""A search, watched: what it held at each step."""

import keras
import numpy as np
from keras import ops


def watch(search, model, source_ids, **arguments):
    """Runs a search one step after another, and keeps what it held at each.

    The search is the same code; only its loop runs in Python, and so it is slow.

    Args:
        search: `greedy_search`, `beam_search`, `sample`, or another function of a model
            and source ids whose loop is `keras_vanilla.decoding.loop.repeat`.
        model: as the search takes it.
        source_ids: int tensor (B, S).
        arguments: the search's others.
    Returns:
        The search's result, as NumPy arrays, and a list of states: that before the
        first step, and one after each. A state is a dict of NumPy arrays:

            "index"      ()        steps made so far
            "last"       (B,)      the tokens read next
            "ids"        (B, L)    the tokens chosen so far, then pads
            "finished"   (B,)      whether a row has ended
            "sums"       (B,)      log-probabilities; zeros unless they are returned
            "logits"     (B, V)    what the model says comes next; the last state has
                                   none: nothing was asked

        Of a beam search all but "index" have an axis (K) more after the first, and for
        "sums" there are "log_probs" and "lengths", both (B, K). The cache is left out.
    Raises:
        ValueError: as the search.
    Example:
        result, states = watch(beam_search, model, source_ids, beam_size=2)
        states[1]["ids"][0, :, :1]  # the first tokens of both hypotheses
    """
    watched = _Watched(model)
    result = search(watched, source_ids, **arguments)
    return keras.tree.map_structure(ops.convert_to_numpy, result), watched.states


class _Watched:
    """A model with a loop of its own, which keeps each state."""

    def __init__(self, model):
        self._model = model
        self._logits = None
        self.states = []

    def __getattr__(self, name):
        return getattr(self._model, name)

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
                if name != "cache"
            }
        )

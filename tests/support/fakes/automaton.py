"""A model whose next token depends on its source and on all it said, and its truth."""

import numpy as np
from keras import ops

from keras_vanilla.decoding import SearchedModel

PAD, START, END = 0, 1, 2


class Automaton(SearchedModel):
    """Goes from state to state by what it is given, and says what its state says.

    It begins in the state that is the sum of a row's source ids (modulo their number),
    which padding does not change.

    Args:
        logits: float array (Q, V), of the next token in each state.
        transitions: int array (Q, V), the state after each token.
        max_length: int.
    """

    pad_id, start_id, end_id = PAD, START, END

    def __init__(self, logits, transitions, max_length=97):
        self.truth = np.asarray(logits, "float32"), np.asarray(transitions)
        self.logits = ops.convert_to_tensor(self.truth[0])
        self.transitions = ops.convert_to_tensor(np.ravel(transitions), dtype="int32")
        self.states, self.vocabulary_size = self.truth[0].shape
        self.target_vocabulary_size = self.vocabulary_size
        self.max_length = max_length
        self.encoded = self.stepped = 0  # in a compiled graph: how often it was traced

    @classmethod
    def random(cls, vocabulary_size, seed, states=199, end_logit=0.0, **arguments):
        draw = np.random.default_rng(seed)
        logits = 1.5 * draw.normal(size=(states, vocabulary_size))
        logits[:, END] += end_logit
        transitions = draw.integers(states, size=(states, vocabulary_size))
        return cls(logits, transitions, **arguments)

    def encode(self, source_ids):
        self.encoded += 1
        source_ids = ops.convert_to_tensor(source_ids)
        memory = ops.expand_dims(ops.cast(source_ids, "float32"), -1)
        return memory, ops.not_equal(source_ids, PAD)

    def start_cache(self, memory, memory_mask, max_length):
        total = ops.cast(ops.sum(memory, axis=(1, 2)), "int32")
        first = ops.mod(total, self.states)
        return {"first": first, "state": ops.zeros_like(first)}

    def decode_step(self, ids, index, cache):
        self.stepped += 1
        after = ops.take(self.transitions, cache["state"] * self.vocabulary_size + ids)
        state = ops.where(ops.equal(index, 0), cache["first"], after)
        return ops.take(self.logits, state, axis=0), {**cache, "state": state}

    def next_log_probs(self, source):
        """In NumPy: the function from tokens said to float64 log-probabilities (V,)."""
        logits, transitions = self.truth

        def log_probs(said):
            state = int(np.sum(source)) % self.states
            for token in said:
                state = transitions[state, token]
            row = logits[state].astype("float64")
            return row - np.log(np.exp(row - row.max()).sum()) - row.max()

        return log_probs

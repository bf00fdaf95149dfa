"""Search restricted to a shortlist of target pieces that the source suggests."""

from typing import Any

import numpy as np
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.cache import Cache
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.search import run_search
from keras_vanilla.decoding.searched_model import ModelAround

CANDIDATES = "candidates"
ROWS, BIAS = "candidate_rows", "candidate_bias"
HALF = 64  # the piece of this frequency rank counts half as much as the first


class Shortlisted(ModelAround):
    """A model whose searches choose among the N most promising pieces of each source.

    A piece is promising if it is frequent, or a likely translation of a piece of the
    source. Its score is, with ranks that count from 0,

        1 / (1 + frequency rank / 64)  +  the sum over source pieces that suggest it
                                          of 1 / (1 + rank among their suggestions)

    Searches return positions in the list of candidates; `ids_of` maps them to the
    model's ids. Logits are only computed for the candidates, so a step does not read
    the whole output matrix.

    Args:
        model: Transformer.
        shortlist: Shortlist of `keras_vanilla.translation`. Pads, the start and the end
            are always among its N candidates.
    Raises:
        ValueError: if the shortlist does not match the model's vocabularies, or its
            `size` is not between 3 and the target vocabulary's.
    Example:
        shortlisted = Shortlisted(model, shortlist)
        ids = shortlisted.ids_of(greedy_search(shortlisted, source_ids))
    """

    def __init__(self, model: Any, shortlist: Any):
        likely, frequent, size = shortlist.likely, shortlist.frequent, shortlist.size
        _check(model, likely, frequent, size)
        super().__init__(model)
        self._likely = likely.astype(id_dtype(len(frequent)))
        self._suggested = 1 / np.arange(1, likely.shape[1] + 1, dtype="float32")
        special = list(dict.fromkeys([model.pad_id, model.start_id, model.end_id]))
        self.pad_id, self.start_id, self.end_id = map(
            special.index, (model.pad_id, model.start_id, model.end_id)
        )
        self.target_vocabulary_size = size
        promise = np.empty(len(frequent), "float32")
        promise[frequent] = 1 / (1 + np.arange(len(frequent)) / HALF)
        forbidden = list(model.forbidden_ids)
        promise[[*special, *forbidden]] = -np.inf
        self._special, self._promise = np.array([special], "int32"), promise
        self._refused = np.zeros(size, "float32")
        self._refused[[special.index(i) for i in forbidden if i in special]] = -np.inf

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Runs the model's encoder, and chooses the candidates."""
        self._candidates = self._most_promising(source_ids)
        return self._model.encode(source_ids)

    def start_cache(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        max_length: Tensor | int,
        beam_size: int | None = None,
    ) -> Cache:
        """The model's cache, with the candidates' ids and rows of the output matrix."""
        candidates = self._candidates
        if not self._model.shares_beams:  # each beam may be a row
            times = ops.shape(memory)[0] // ops.shape(candidates)[0]
            candidates = ops.repeat(candidates, times, axis=0)
        cache = self._model.start_cache(memory, memory_mask, max_length, beam_size)
        decoder = self._model.decoder
        shortlist = {CANDIDATES: candidates, ROWS: decoder.output.rows(candidates)}
        if decoder.bias is not None:
            shortlist[BIAS] = ops.take(decoder.bias.bias, candidates)
        return cache._replace(extra=cache.extra | shortlist)

    def decode_step(
        self,
        ids: Tensor,
        index: Tensor | int,
        cache: Cache,
        attention_weights: dict | None = None,
    ) -> tuple[Tensor, Cache]:
        """Float32 logits (B, N) or (B, K, N) of the candidates, and the cache."""
        shared, extra = cache.is_shared, cache.extra
        indices = ids if shared else ops.expand_dims(ids, 1)
        real = ops.take_along_axis(extra[CANDIDATES], indices, axis=1)
        real = real if shared else ops.squeeze(real, 1)
        hidden, cache = self._model.decoder.hidden_step(
            real, index, cache, attention_weights
        )
        rows = ops.cast(extra[ROWS], hidden.dtype)
        logits = ops.matmul(hidden, ops.transpose(rows, (0, 2, 1)))
        logits = ops.cast(logits, "float32") + self._refused
        if BIAS in extra:
            logits = logits + ops.expand_dims(extra[BIAS], 1)
        return logits if shared else ops.squeeze(logits, 1), cache

    def ids_of(self, indices: Tensor) -> Tensor:
        """Maps the result of a search, (B, L) or (B, K, L), to the model's ids."""
        flat = ops.reshape(indices, (ops.shape(indices)[0], -1))
        ids = ops.take_along_axis(self._candidates, flat, axis=1)
        return ops.reshape(ids, ops.shape(indices))

    def _most_promising(self, source_ids):
        """Int32 ids (B, N): pad, start and end, then the other candidates."""
        batch, length = ops.shape(source_ids)
        width = self._likely.shape[1]
        suggested = ops.take(ops.convert_to_tensor(self._likely), source_ids, axis=0)
        suggested = ops.cast(suggested, "int32")
        shape = batch, length, width
        rows = ops.reshape(ops.arange(batch, dtype="int32"), (-1, 1, 1))
        indices = ops.stack([ops.broadcast_to(rows, shape), suggested], axis=3)
        scores = ops.scatter(
            ops.reshape(indices, (-1, 2)),
            ops.reshape(ops.broadcast_to(self._suggested, shape), (-1,)),
            (batch, len(self._promise)),
        )
        others = self.target_vocabulary_size - self._special.shape[1]
        best = ops.cast(ops.top_k(scores + self._promise, k=others)[1], "int32")
        special = ops.broadcast_to(self._special, (batch, self._special.shape[1]))
        return ops.concatenate([special, best], axis=1)


def id_dtype(vocabulary_size: int) -> str:
    """The smaller of two integer dtypes that holds all ids of a vocabulary.

    Args:
        vocabulary_size: int.
    """
    return "int16" if vocabulary_size <= 2**15 else "int32"


def shortlisted_search(
    model: Any, source_ids: Tensor, config: DecodingConfig, shortlist: Any
) -> Tensor:
    """Same as `run_search`, restricted to the candidates of a shortlist.

    Args:
        model: as for `Shortlisted`.
        source_ids: as for `run_search`.
        config: DecodingConfig.
        shortlist: as for `Shortlisted`.
    """
    model = Shortlisted(model, shortlist)
    return model.ids_of(run_search(model, source_ids, config))


def _check(model, likely, frequent, size):
    sizes = model.source_vocabulary_size, model.target_vocabulary_size
    if (len(likely), len(frequent)) != sizes:
        raise ValueError(
            "A shortlist must be of the model's vocabularies, of {} and {} pieces. "
            "Received: {} and {}".format(*sizes, len(likely), len(frequent))
        )
    if not 3 <= size <= len(frequent):
        raise ValueError(
            f"A shortlist's `size` must be from 3 to {len(frequent)}, the number of "
            f"target pieces. Received: {size}"
        )

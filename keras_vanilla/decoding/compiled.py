"""Searches that Keras compiles once per shape, on every backend."""

import inspect
import threading
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_vanilla._checks import check_ids
from keras_vanilla._traced_once import jitted_by_jax, trace_for_all_shapes
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.constraints import check_source_shape, checked_prefix
from keras_vanilla.decoding.sampling import checked_seed
from keras_vanilla.decoding.searched_model import ModelAround, SearchedModel
from keras_vanilla.decoding.terms import Terms, check_terms

MOST_KEPT = 16  # compiled searches per model


class CompiledSearch:
    """Runs searches over one model as compiled graphs.

    Searches are compiled by Keras's `predict_on_batch`, on JAX by `stateless_call`. The
    graphs of the last 16 combinations of search and settings are kept. One graph works
    for all seeds, and on TensorFlow for all shapes. Weights are read at each call, so
    the model may be trained in between. Calls are thread-safe: each graph is created
    once, and searches that draw random numbers run one at a time.

    Args:
        model: SearchedModel.
    """

    def __init__(self, model: SearchedModel):
        self._model = model
        self._searches = {}
        self._lock = threading.Lock()  # guards the dict

    def __call__(
        self,
        search: Callable,
        source_ids: Tensor,
        config: DecodingConfig | None = None,
        target_prefix: Tensor | None = None,
        terms: Terms | None = None,
        **settings: Any,
    ) -> Any:
        """Returns the result of `search(model, source_ids, config, ...)` in NumPy.

        Args:
            search: function such as `greedy_search`.
            source_ids: int32 array (B, S).
            config: DecodingConfig or None.
            target_prefix: int32 array (B, P) or None.
            terms: Terms of arrays, or None.
            settings: fields of `config` and other arguments of the search, which must
                be hashable.
        Raises:
            TypeError: same as the search.
            ValueError: if `seed` is invalid, see `sample`; if there are no sources, a
                source id is outside the vocabulary, or the prefix is invalid, see
                `Constraints`.
        """
        seeded = "seed" in inspect.signature(search).parameters
        seed = settings.pop("seed", None) if seeded else None
        rounding = self._model.fake_quantization
        source_ids = keras.ops.convert_to_numpy(source_ids)
        check_source_shape(source_ids)  # here and below: impossible in a graph
        inputs = {"source_ids": source_ids}
        if target_prefix is not None:
            most = settings.get("max_length", config and config.max_length)
            ids = checked_prefix(self._model, target_prefix, len(source_ids), most)
            inputs["target_prefix"] = keras.ops.convert_to_numpy(ids)
        if terms is not None:
            check_terms(self._model, terms, len(source_ids))
            fields = terms._asdict().items()  # Keras's inputs cannot be None
            inputs["terms"] = {n: np.asarray(x) for n, x in fields if x is not None}
        kinds = [
            (name, *((array.dtype, array.ndim) for array in keras.tree.flatten(value)))
            for name, value in inputs.items()
        ]
        settings["config"] = config
        key = (search, rounding, *kinds, *sorted(settings.items()))
        with self._lock:
            if key not in self._searches:
                if len(self._searches) == MOST_KEPT:  # drop the oldest
                    del self._searches[next(iter(self._searches))]
                self._searches[key] = _SearchModel(
                    self._model, search, settings, seeded
                )
            compiled = self._searches[key]
        size = self._model.source_vocabulary_size
        if size is not None:
            check_ids("source id", source_ids, size)
        return compiled.search(inputs, seed)


class _SearchModel(keras.Model):
    def __init__(self, model, search, settings, seeded):
        super().__init__(name="search")
        self.searched = model
        self.built = True
        self._turn = threading.Lock()
        self._is_seeded = seeded
        if seeded:  # a variable, because an int would be a constant in the graph
            self.seed_generator = keras.random.SeedGenerator(0)
            settings = {**settings, "seed": self.seed_generator}
        if keras.backend.backend() == "tensorflow":
            self.compile(jit_compile=False)  # XLA would compile each shape again
            if model.shares_beams:
                model = _GrowingPast(model)
        if keras.backend.backend() == "jax":
            self._stateless = jitted_by_jax(self)

        def run(inputs):
            if "terms" in inputs:
                inputs = {**inputs, "terms": Terms(**inputs["terms"])}
            return search(model, **inputs, **settings)

        self._run = run

    def search(self, inputs, seed):
        with self._turn:
            if self._is_seeded:
                # The next call draws the same numbers as an uncompiled search.
                seed = checked_seed(seed)
                if not isinstance(seed, keras.random.SeedGenerator):
                    seed = keras.random.SeedGenerator(seed)
                self.seed_generator.state.assign(seed.next())
            if keras.backend.backend() == "jax":
                variables = self.trainable_variables, self.non_trainable_variables
                state = [[each.value for each in kind] for kind in variables]
            else:
                trace_for_all_shapes(self, inputs)
                if self._is_seeded:
                    return self.predict_on_batch(inputs)
        if keras.backend.backend() == "jax":
            outputs, _ = self._stateless(*state, inputs)
            return keras.tree.map_structure(np.array, outputs)
        return self.predict_on_batch(inputs)

    def call(self, inputs):
        return self._run(inputs)


class _GrowingPast(ModelAround):
    """A model whose caches are instances of `GrowingCache`."""

    def start_cache(self, memory, memory_mask, max_length, beam_size=None):
        return self._model.start_cache(memory, memory_mask, None, beam_size)

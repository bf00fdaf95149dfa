"""A search compiled once per shape, by Keras itself, on every backend."""

import keras


class CompiledSearch:
    """Runs searches over one model as compiled graphs.

    Keras's own `predict_on_batch` does the compiling, so the search needs no code for
    each backend; what was compiled is kept for each search and its settings. The
    model's weights are read at each call: it may go on learning.

    Args:
        model: a Keras model with what `greedy_search` needs.
    """

    def __init__(self, model):
        self._model = model
        self._searches = {}

    def __call__(self, search, source_ids, **settings):
        """The result of `search(model, source_ids, **settings)`, as NumPy arrays.

        Args:
            search: function such as `greedy_search`.
            source_ids: int32 array (B, S).
            settings: the search's other arguments; they must be hashable.
        """
        key = (search, *sorted(settings.items()))
        if key not in self._searches:
            self._searches[key] = _SearchModel(self._model, search, settings)
        return self._searches[key].predict_on_batch(source_ids)


class _SearchModel(keras.Model):
    def __init__(self, model, search, settings):
        super().__init__(name="search")
        self.searched = model
        if keras.backend.backend() == "tensorflow":
            self.compile(jit_compile=False)  # XLA would compile each shape again
        self._run = lambda source_ids: search(model, source_ids, **settings)

    def call(self, source_ids):
        return self._run(source_ids)

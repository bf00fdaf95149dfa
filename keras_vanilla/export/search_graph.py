"""The search inside exported files."""

from typing import Any

import keras

from keras_vanilla._types import Tensor
from keras_vanilla.decoding import DecodingConfig, run_search
from keras_vanilla.decoding.attended_source import AttendedSource
from keras_vanilla.decoding.searched_model import ModelAround, SearchedModel
from keras_vanilla.models.transformer import Transformer


class LimitedOutput(ModelAround):
    """A model for a search with a maximum output length of its own.

    Args:
        model: SearchedModel.
        max_length: int or None. The maximum, in addition to the model's.
    """

    def __init__(self, model: SearchedModel, max_length: int | None):
        super().__init__(model)
        self.max_length = min(max_length or model.max_length, model.max_length)


class SearchGraph:
    """Maps source ids to target ids inside a graph.

    On TensorFlow the caches of the search grow with the output; on JAX, whose shapes
    are fixed, they have room for the longest.

    Args:
        model: Transformer that computes in float32.
        decoding: DecodingConfig.
        max_length: int or None. Maximum output length, in addition to the model's.
        return_notes: bool. Whether to return notes on each token.
        first_source: int or None. Note the source token that each token attends to
            most, counted from this one on; see `AttendedSource`.
    Call arguments:
        source_ids: int32 tensor (B, S).
    Returns:
        Int32 tensor (B, L), L = min(S + 50, max_length), and float32 scores (B,), the
        log-probabilities, in beam search divided by the length normalization. With
        `return_notes` also a dict of notes (B, L): "log_probs", and with
        `first_source` also "attended".
    """

    def __init__(
        self,
        model: Transformer,
        decoding: DecodingConfig,
        max_length: int | None = None,
        return_notes: bool = False,
        first_source: int | None = None,
    ):
        if first_source is not None:
            model = AttendedSource(model, first=first_source)
        limited = LimitedOutput
        if keras.backend.backend() == "tensorflow":
            from keras_vanilla.export.growing_caches import GrowingCaches as limited
        self._model = limited(model, max_length)
        self._settings = {"config": decoding, "return_notes": return_notes}

    def __call__(self, source_ids: Tensor) -> Any:
        settings = {"return_scores": True, **self._settings}
        return run_search(self._model, source_ids, **settings)

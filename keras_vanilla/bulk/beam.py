"""A model handler of Apache Beam: translation as a step of a pipeline."""

from collections.abc import Sequence
from typing import Any

from apache_beam.ml.inference.base import ModelHandler, PredictionResult

from keras_vanilla._types import PathLike
from keras_vanilla.bulk.bulk_translator import BulkTranslator

CHARACTERS = [16, 32, 64, 128, 256, 512]  # texts of about equal length go together


class BulkTranslatorHandler(ModelHandler[str, PredictionResult, BulkTranslator]):
    """Translates the texts of a `PCollection`, with `RunInference`.

    Each `PredictionResult` has the text as `example` and a `LineTranslation` as
    `inference`. Wrapped in Beam's `KeyedModelHandler` it takes and gives pairs of a key
    and a text, such as the number of a line.

    Args:
        model: path, as of `open_line_translator`, which every worker can read.
        max_batch_size: int. Texts per batch at most; Beam chooses how many, and puts
            texts of about equal length together.
        **settings: as of `open_line_translator`.
    Example:
        lines | RunInference(BulkTranslatorHandler("translator.keras"))
    """

    def __init__(self, model: PathLike, *, max_batch_size: int = 1024, **settings: Any):
        super().__init__(
            max_batch_size=max_batch_size,
            batch_length_fn=len,
            batch_bucket_boundaries=CHARACTERS,
        )
        self._model, self._settings = str(model), settings

    def load_model(self) -> BulkTranslator:
        """The translator, once per process."""
        return BulkTranslator(self._model, **self._settings)

    def run_inference(
        self,
        batch: Sequence[str],
        model: BulkTranslator,
        inference_args: dict[str, Any] | None = None,
    ) -> list[PredictionResult]:
        """A `PredictionResult` of each text of a batch."""
        results = model.translate(list(batch))
        return [PredictionResult(*pair) for pair in zip(batch, results, strict=True)]

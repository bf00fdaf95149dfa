"""Adds translations to batches of lines."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_vanilla._types import PathLike
from keras_vanilla.bulk.line_translation import LineTranslation
from keras_vanilla.bulk.line_translators import open_line_translator


class BulkTranslator:
    """Adds translations to batches, such as those of `ray.data.Dataset.map_batches`.

    Each object opens the model once; Ray creates one object per worker.

    Args:
        model: path, as in `open_line_translator`.
        column: str. Name of the column with the texts.
        **settings: `threads`, `beam_size`, `length_penalty` and `max_length`, as in
            `open_line_translator`.
    Raises:
        OSError, TypeError, ValueError: as in `open_line_translator`.
    Example:
        translated = ray.data.read_text("part-*.txt").map_batches(
            BulkTranslator,
            fn_constructor_args=["translator.keras"],
            compute=ray.data.ActorPoolStrategy(size=2),
            batch_size=1024,
        )
    """

    def __init__(self, model: PathLike, *, column: str = "text", **settings: Any):
        self.column = column
        self._translate = open_line_translator(model, **settings)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the batch with two additional columns.

        Args:
            batch: dict of arrays or lists, with a `column` of str.
        Returns:
            The batch with the columns `translation`, an array of str, and `problem`, an
            array of str or None. If a text cannot be translated, its translation is
            empty, and the problem is the reason. If a translation has no end, this is
            its problem.
        Raises:
            KeyError: if there is no such column.
            TypeError: if the column contains anything but str.
        """
        if self.column not in batch:
            raise KeyError(
                f"There is no column {self.column!r}. Received: {', '.join(batch)}"
            )
        results = self.translate(np.asarray(batch[self.column], object).tolist())
        texts, problems = zip(*results, strict=True) if results else ((), ())
        columns = {"translation": texts, "problem": problems}
        return {**batch, **{k: np.array(v, object) for k, v in columns.items()}}

    def translate(self, texts: list[str]) -> list[LineTranslation]:
        """Returns a `LineTranslation` for each text."""
        return self._translate(texts)

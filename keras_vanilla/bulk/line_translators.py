"""Translates lines with models of three kinds."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vanilla._checks import check_integer
from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla._types import PathLike
from keras_vanilla.export.checks.runners import SavedModelFolder, TfliteFile
from keras_vanilla.pretrained import model_not_found
from keras_vanilla.translation import Translator
from keras_vanilla.translation.buckets import ROWS
from keras_vanilla.translation.doubts import doubts_of
from keras_vanilla.translation.encoded_texts import EncodedTexts

NO_END = "the translation reached its longest length without an end"


class LineTranslation(NamedTuple):
    """The translation of a line.

    Fields:
        text: str; empty if the line cannot be translated.
        problem: str or None. The reason, or that the translation has no end.
        score: float or None. See `Hypothesis`; None for a SavedModel.
        doubts: list of str. What speaks against the translation, see `doubts_of`.
    """

    text: str
    problem: str | None = None
    score: float | None = None
    doubts: Sequence[str] = ()

    @property
    def is_left_out(self) -> bool:
        """True if there is no translation, not even one without an end."""
        return self.problem not in (None, NO_END)


LineTranslator = Callable[[Sequence[str]], list[LineTranslation]]


def open_line_translator(
    model: PathLike, *, threads: int | None = None, **search: Any
) -> LineTranslator:
    """Opens a model that translates lines.

    Args:
        model: path of a `.keras` file, of a `.tflite` file that takes text, of a
            SavedModel; or "hub:OWNER/NAME", see `Translator.from_hub`.
        threads: int or None. None uses the library's default.
        **search: `beam_size`, `length_penalty`, `max_length` and `no_loops`, as in
            `Translator.translate`. `.tflite` files and SavedModels include their search
            and accept none of these.
    Returns:
        A function that maps a list of str to a `LineTranslation` for each.
    Raises:
        FileNotFoundError: if `model` does not exist.
        TypeError: if an argument is unknown or has the wrong type.
        ValueError: if the model is none of these, or does not accept an argument.
    """
    if threads is not None:
        check_integer("threads", threads, 1)
    if is_hub_reference(model):
        return KerasLines(model, threads, **search)
    model = Path(model)
    if not model.exists():
        raise model_not_found(model)
    if (model / "saved_model.pb").exists():
        return SavedModelLines(model, threads, **search)
    if model.is_dir():
        raise ValueError(
            f"{model} has no saved_model.pb. Models of CTranslate2 run in CTranslate2, "
            "or in keras_vanilla 0.7.0; they can be converted to a .keras file."
        )
    if model.suffix == ".tflite":
        return TfliteLines(model, threads, **search)
    return KerasLines(model, threads, **search)


class KerasLines:
    """Translates lines with a `Translator`; see `open_line_translator`."""

    def __init__(self, model: PathLike, threads: int | None, **search: Any):
        if threads is not None:
            _limit_threads(threads)
        self._translator = Translator.load(model)
        self._search = search
        self._translator.stream([], **search)  # checks the arguments

    def __call__(self, texts: Sequence[str]) -> list[LineTranslation]:
        translator = self._translator
        encoded = EncodedTexts(texts, translator.tokenizer.encode)
        longest = translator.model.max_length
        results = [
            LineTranslation("", f"{length} tokens; the model takes {longest}")
            if length > longest
            else None
            for length in encoded.lengths.tolist()
        ]
        short = [i for i, result in enumerate(results) if result is None]
        kept = encoded if len(short) == len(texts) else [texts[i] for i in short]
        stream = translator.stream(kept, **self._search)
        for i, (best, *_) in zip(short, stream, strict=True):
            problem = None if best.ended else NO_END
            results[i] = LineTranslation(best.text, problem, best.score, best.doubts)
        return results


class TfliteLines:
    """Translates lines with a `.tflite` file; see `open_line_translator`."""

    def __init__(self, model: Path, threads: int | None, **search: Any):
        _refuse_search(model, search)
        self._file = TfliteFile(model, threads or 1)
        form = self._file.description.form
        if form != "text":
            raise ValueError(
                f"{model} must take text. Received: a file of the form {form!r}"
            )

    def __call__(self, texts: Sequence[str]) -> list[LineTranslation]:
        return [self._translation(text) for text in texts]

    def _translation(self, text):
        if not text.strip():
            return LineTranslation("", score=0.0)
        description = self._file.description
        size, most = len(text.rstrip().encode()), description.max_bytes
        if size > most:
            return LineTranslation("", f"{size} bytes; the file takes {most}")
        ids, translation, score, doubts = self._file.translate_text(text.rstrip())
        if np.isnan(score):
            most = description.max_source_tokens
            return LineTranslation("", f"more than {most} tokens, which the file takes")
        end_id = description.end_id
        ended = not translation or end_id is None or end_id in ids
        problem = None if ended else NO_END
        return LineTranslation(translation, problem, score, doubts)


class SavedModelLines:
    """Translates lines with a SavedModel; see `open_line_translator`."""

    def __init__(self, model: Path, threads: int | None, **search: Any):
        _refuse_search(model, search)
        if threads is not None:
            _limit_threads(threads)
        self._folder = SavedModelFolder(model)

    def __call__(self, texts: Sequence[str]) -> list[LineTranslation]:
        order = [i for i, text in enumerate(texts) if text.strip()]
        order.sort(key=lambda i: len(texts[i]))
        results = [LineTranslation("")] * len(texts)
        for start in range(0, len(order), ROWS):  # rows of similar length
            rows = order[start : start + ROWS]
            translations = self._folder.translate_texts([texts[i] for i in rows])
            for i, (text, is_too_long) in zip(rows, translations, strict=True):
                problem = "more tokens than the model takes" if is_too_long else None
                doubts = () if is_too_long else doubts_of(texts[i], text)
                results[i] = LineTranslation(text, problem, doubts=doubts)
        return results


def _refuse_search(model: Path, search: dict) -> None:
    if search:
        raise ValueError(
            f"{model} contains its search. Received: {', '.join(sorted(search))}; "
            "export a file with that instead"
        )


def _limit_threads(threads: int) -> None:
    """Limits the threads of TensorFlow, which must not have computed anything yet."""
    if keras.backend.backend() == "jax":
        raise ValueError(f"`threads` is not supported on JAX. Received: {threads}")
    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(threads)
        return
    import tensorflow as tf

    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    except RuntimeError:
        if tf.config.threading.get_intra_op_parallelism_threads() != threads:
            raise ValueError(
                f"`threads` must be chosen before TensorFlow computes anything. "
                f"Received: threads={threads}"
            ) from None


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
        results = self.translate(np.asarray(batch[self.column], object).tolist())
        columns = {
            "translation": [result.text for result in results],
            "problem": [result.problem for result in results],
        }
        return {**batch, **{k: np.array(v, object) for k, v in columns.items()}}

    def translate(self, texts: list[str]) -> list[LineTranslation]:
        """Returns a `LineTranslation` for each text."""
        return self._translate(texts)

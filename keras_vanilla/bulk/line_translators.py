"""Translates lines with models of four kinds, and programs."""

import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_vanilla._checks import check_integer, extra_missing
from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla._types import PathLike
from keras_vanilla.decoding.hypothesis_end import longest_output
from keras_vanilla.export.checks.runners import SavedModelFolder, TfliteFile
from keras_vanilla.interop.ctranslate2 import CTranslate2Text
from keras_vanilla.pretrained import model_not_found
from keras_vanilla.translation import Translator
from keras_vanilla.translation.buckets import ROWS
from keras_vanilla.translation.encoded_texts import EncodedTexts

NO_END = "the translation reached its longest length without an end"
CTRANSLATE2_TOKENS = 2048  # per batch, enough for two cores


class LineTranslation(NamedTuple):
    """The translation of a line.

    Fields:
        text: str; empty if the line cannot be translated.
        problem: str or None. The reason, or that the translation has no end.
    """

    text: str
    problem: str | None = None

    @property
    def is_left_out(self) -> bool:
        """True if there is no translation, not even one without an end."""
        return self.problem not in (None, NO_END)


class LineCommand:
    """Translates lines with a program that writes one line per input line.

    The program is started for each call, and must exit at the end of its input.

    Args:
        command: str. It is split as in a shell, but not run by a shell.
    Raises:
        ValueError: if the command is empty or has an unclosed quotation mark.
    Example:
        LineCommand("marian-decoder --config decoder.yml")(["Guten Morgen."])
    """

    def __init__(self, command: str):
        self.command = command
        self._arguments = shlex.split(command)
        if not self._arguments:
            raise ValueError(f"A command must name a program. Received: {command!r}")

    def __call__(self, texts: Sequence[str]) -> list[LineTranslation]:
        """Returns the translations.

        Raises:
            FileNotFoundError: if there is no such program.
            RuntimeError: if the program fails.
            ValueError: if the number of lines differs, or the output is not UTF-8.
        """
        if not texts:
            return []
        program = self._arguments[0]
        lines = "".join(text + "\n" for text in texts)
        done = subprocess.run(
            self._arguments, input=lines.encode(), capture_output=True
        )
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise RuntimeError(
                f"{program} failed with status {done.returncode}: {last}"
            )
        try:
            results = done.stdout.decode("utf-8").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            line = done.stdout[: error.start].count(b"\n") + 1
            raise ValueError(
                f"{program} must write UTF-8. Received: byte "
                f"0x{done.stdout[error.start]:02x} in line {line:,}"
            ) from error
        if len(results) != len(texts):
            raise ValueError(
                f"{program} must write a line for each of {len(texts):,}. "
                f"Received: {len(results):,} lines"
            )
        return [LineTranslation(result) for result in results]


LineTranslator = Callable[[Sequence[str]], list[LineTranslation]]
LineModel = PathLike | LineCommand


def open_line_translator(
    model: LineModel, *, threads: int | None = None, **search: Any
) -> LineTranslator:
    """Opens a model that translates lines.

    Args:
        model: path of a `.keras` file, of a `.tflite` file that takes text, of a
            SavedModel, or of a folder written by `to_ctranslate2` or CTranslate2's
            converters; "hub:OWNER/NAME", see `Translator.from_hub`; or a `LineCommand`.
        threads: int or None. None uses the library's default.
        **search: `beam_size`, `length_penalty`, `max_length` and `no_loops`, as in
            `Translator.translate`. CTranslate2, whose length penalty divides by
            length ** length_penalty, accepts `compute_type`, but not `no_loops`.
            `.tflite` files, SavedModels and programs include their search and accept
            none of these.
    Returns:
        A function that maps a list of str to a `LineTranslation` for each.
    Raises:
        FileNotFoundError: if `model` does not exist.
        TypeError: if an argument is unknown or has the wrong type.
        ValueError: if the model is none of these, or does not accept an argument.
    """
    if threads is not None:
        check_integer("threads", threads, 1)
    if isinstance(model, LineCommand):
        settings = {"threads": threads, **search}
        names = [name for name, value in settings.items() if value is not None]
        if names:
            raise ValueError(
                "The command of a program sets its threads and its search. Received: "
                f"{', '.join(names)} and the command {model.command!r}"
            )
        return model
    if is_hub_reference(model):
        return KerasLines(model, threads, **search)
    model = Path(model)
    if not model.exists():
        raise model_not_found(model)
    if (model / "saved_model.pb").exists():
        return SavedModelLines(model, threads, **search)
    if model.is_dir():
        return CTranslate2Lines(model, threads, **search)
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
        results = _too_long(encoded.lengths, translator.model.max_length)
        short = [i for i, result in enumerate(results) if result is None]
        kept = encoded if len(short) == len(texts) else [texts[i] for i in short]
        stream = translator.stream(kept, **self._search)
        for i, (best, *_) in zip(short, stream, strict=True):
            results[i] = LineTranslation(best.text, None if best.ended else NO_END)
        return results


class TfliteLines:
    """Translates lines with a `.tflite` file; see `open_line_translator`."""

    def __init__(self, model: Path, threads: int | None, **search: Any):
        _refuse_search(model, search)
        self._file = TfliteFile(model, threads or 1)
        if self._file.form != "text":
            raise ValueError(
                f"{model} must take text. Received: a file of the form "
                f"{self._file.form!r}"
            )

    def __call__(self, texts: Sequence[str]) -> list[LineTranslation]:
        return [self._translation(text) for text in texts]

    def _translation(self, text):
        if not text.strip():
            return LineTranslation("")
        size, most = len(text.rstrip().encode()), self._file.limits.max_bytes
        if size > most:
            return LineTranslation("", f"{size} bytes; the file takes {most}")
        ids, translation, score = self._file.translate_text(text.rstrip())
        if np.isnan(score):
            most = self._file.limits.max_source_length
            return LineTranslation("", f"more than {most} tokens, which the file takes")
        end_id = self._file.end_id
        ended = not translation or end_id is None or end_id in ids
        return LineTranslation(translation, None if ended else NO_END)


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
                results[i] = LineTranslation(text, problem)
        return results


class CTranslate2Lines:
    """Translates lines with CTranslate2; see `open_line_translator`."""

    def __init__(
        self,
        model: Path,
        threads: int | None,
        *,
        beam_size: int = 1,
        length_penalty: float = 1.0,
        max_length: int | None = None,
        compute_type: str = "default",
        no_loops: bool = False,
    ):
        if no_loops:
            raise ValueError("CTranslate2 has no `no_loops`. Received: no_loops=True")
        try:
            import ctranslate2
        except ImportError as error:
            raise extra_missing(
                f"Models of CTranslate2, such as {model},", "ctranslate2", "ctranslate2"
            ) from error

        self._text, self._max_length = CTranslate2Text(model), max_length
        self._search = {"beam_size": beam_size, "length_penalty": length_penalty}
        self._runtime = ctranslate2.Translator(
            str(model), intra_threads=threads or 0, compute_type=compute_type
        )

    def __call__(self, texts: Sequence[str]) -> list[LineTranslation]:
        encoded = self._text.encode(texts)
        results = _too_long(encoded.lengths, self._text.max_length)
        for i in np.flatnonzero(encoded.lengths == 1):  # only an end
            results[i] = LineTranslation("")
        indices = [i for i, result in enumerate(results) if result is None]
        translated = self._translated([encoded[i] for i in indices])
        for i, result in zip(indices, translated, strict=True):
            results[i] = result
        return results

    def _translated(self, sources):
        """Returns the translations of sources with tokens before their ends."""
        limits = [self._limit(len(source)) for source in sources]
        results = self._runtime.translate_batch(
            [self._text.tokens(source) for source in sources],
            max_batch_size=CTRANSLATE2_TOKENS,
            batch_type="tokens",
            max_input_length=0,  # no truncation
            max_decoding_length=max(limits, default=1),
            return_end_token=True,
            **self._search,
        )
        # CTranslate2 has one limit for all lines; a Translator has one per line.
        pairs = zip(results, limits, strict=True)
        hypotheses = [result.hypotheses[0][:limit] for result, limit in pairs]
        for tokens, text in zip(hypotheses, self._text.decode(hypotheses), strict=True):
            yield LineTranslation(text, None if self._text.ends(tokens) else NO_END)

    def _limit(self, length):
        return self._max_length or longest_output(length, self._text.max_length)


def _too_long(lengths: np.ndarray, longest: int) -> list[LineTranslation | None]:
    """Returns a translation with a problem for lines that are too long, else None."""
    return [
        LineTranslation("", f"{length} tokens; the model takes {longest}")
        if length > longest
        else None
        for length in lengths.tolist()
    ]


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

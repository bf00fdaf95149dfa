"""The description of the model inside a `.tflite` file, as JSON."""

import dataclasses
import json
from pathlib import Path

from ai_edge_litert import schema_py_generated as schema

from keras_vanilla._about import check_language, check_text, checked_examples
from keras_vanilla._checks import check_choice, has_form
from keras_vanilla._types import PathLike
from keras_vanilla._version import __version__
from keras_vanilla.export.metadata import checksum
from keras_vanilla.export.metadata.flatbuffer import packed, read_metadata

NAME = "keras_vanilla"  # name of the metadata entry
READABLE = tuple(f"keras_vanilla translator {number}" for number in (1, 2, 3, 4))
FORMAT = READABLE[-1]
OLDEST_RUNTIME = "LiteRT 2.1"
FORMS = {
    "text": "UTF-8 bytes in, UTF-8 bytes out",
    "steps": "the encoder, and one step of the decoder",
    "inside": "the encoder and one step, from UTF-8 bytes, with all attention weights",
}
STEPPED = ("steps", "inside")  # forms of files that do not search
TAKING_TEXTS = ("text", "inside")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """Description of a translator in one file; `str` formats it for a terminal.

    Args:
        format: str. Format of the description; changes when its fields do.
        version: str. Version of keras_vanilla that wrote the file.
        form: "text", "steps" or "inside". The inputs and outputs.
        name: str. Name of the model.
        source_language: str or None. A BCP-47 tag such as "de" or "pt-BR".
        target_language: str or None. The same.
        max_bytes: int or None. Longest text, in bytes of UTF-8; None if the input is
            not text.
        max_source_tokens: int. Longest text in tokens, including the end.
        max_output_tokens: int. Longest translation in tokens, including the end.
        beam_size: int. 1 means greedy search.
        length_penalty: float or None. None for greedy search.
        quantize: "int8", "int4", or None for float32.
        parameters: int. Number of the model's parameters.
        model_license: str or None. For example an SPDX identifier; None if not stated.
        data: str or None. The model's training data.
        data_license: str or None. License of the data.
        end_id: int or None. The id that ends each complete output; `ids` without it are
            cut off. None in files of version 0.5.0.
        oldest_runtime: str or None. The oldest runtime that is supported, "LiteRT 2.1".
            Version 0.7.0 and earlier wrote versions of TensorFlow Lite, or None.
        outputs: list of str. Additional outputs for each token: "alignment",
            "confidence".
        no_loops: bool. Whether no phrase is repeated more than three times, unless the
            source repeats it.
        examples: list of str. Sentences in the source language to try the model with.
        converted_from: str or None. The model that it was converted from, such as
            "hub:OWNER/NAME@COMMIT".
    Raises:
        TypeError: if a value has the wrong type.
        ValueError: if a language is not a BCP-47 tag, a text is not Unicode, an example
            is empty, or the form is unknown.
    """

    format: str = FORMAT
    version: str = __version__
    form: str = "text"
    name: str
    source_language: str | None = None
    target_language: str | None = None
    max_bytes: int | None
    max_source_tokens: int
    max_output_tokens: int
    beam_size: int = 1
    length_penalty: float | int | None = None
    quantize: str | None = None
    parameters: int
    model_license: str | None = None
    data: str | None = None
    data_license: str | None = None
    end_id: int | None = None
    oldest_runtime: str | None = OLDEST_RUNTIME
    outputs: list = dataclasses.field(default_factory=list)
    no_loops: bool = False
    examples: list = dataclasses.field(default_factory=list)
    converted_from: str | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, field.type):
                expected = getattr(field.type, "__name__", field.type)
                raise TypeError(
                    f"`{field.name}` must be {expected}. Received: {value!r}"
                )
            if isinstance(value, str):
                check_text(field.name, value)
        check_choice("form", self.form, tuple(FORMS))
        if not has_form(self.outputs, [str]):
            raise TypeError(f"`outputs` must be texts. Received: {self.outputs!r}")
        for name in ("source_language", "target_language"):
            check_language(name, getattr(self, name))
        checked_examples(self.examples)

    def __str__(self):
        rows = self.rows()
        width, lines = max(map(len, rows)) + 2, []
        for name, text in rows.items():
            letters = (each if each.isprintable() else "\ufffd" for each in text)
            lines.append(f"{name:{width}}{''.join(letters)}")
        return "\n".join(lines)

    def rows(self, not_stated: str = "not stated") -> dict[str, str]:
        """Returns the description as readable texts, by name.

        Args:
            not_stated: str. Text for a license or data that was not stated.
        """
        limit = f"{self.max_bytes:,} bytes of UTF-8, " if self.max_bytes else ""
        rows = {
            "name": self.name,
            "languages": self.languages,
            "form": f"{self.form}: {FORMS[self.form]}",
            "takes": f"{limit}at most {self.max_source_tokens:,} tokens",
            "gives": f"at most {self.max_output_tokens:,} tokens",
            "of each token": ", ".join(self.outputs) or None,
            "search": self.search,
            "weights": f"{self.parameters:,} parameters, {self.quantize or 'float32'}",
            "converted from": self.converted_from,
            "model license": self.model_license or not_stated,
            "trained on": self.data or not_stated,
            "data license": self.data_license or not_stated,
            "examples": " | ".join(self.examples) or None,
            "runs on": f"{OLDEST_RUNTIME} and later",
            "written by": f"keras_vanilla {self.version}",
        }
        return {name: text for name, text in rows.items() if text is not None}

    @property
    def languages(self) -> str:
        """Both languages, such as "de to en"."""
        tags = (self.source_language, self.target_language)
        return " to ".join(tag or "(not stated)" for tag in tags)

    @property
    def search(self) -> str:
        """The search of the file, as text."""
        if self.form in STEPPED:
            return "none: the app's own"
        if self.beam_size == 1:
            search = "greedy"
        else:
            search = f"beam {self.beam_size}, length penalty {self.length_penalty}"
        if self.no_loops:
            search = f"{search}, without loops"
        return search


def with_description(
    file: schema.ModelT,
    description: Description,
    entries: dict[str, bytes] | None = None,
) -> bytes:
    """Returns a `.tflite` file with a description, and with a checksum at its end.

    Args:
        file: ModelT, a file's tables, see `unpacked`.
        description: Description.
        entries: dict or None. Additional metadata, by name.
    Returns:
        Bytes, about a kilobyte more than without a description.
    Raises:
        ValueError: if the file already has a description.
    """
    text = json.dumps(dataclasses.asdict(description), ensure_ascii=False)
    described = {NAME: bytes(text, "utf-8"), **(entries or {})}
    blank = {checksum.NAME: checksum.BLANK}
    return checksum.with_digest(packed(file, described | blank))


def read_description(path: PathLike) -> Description:
    """Reads the description of a `.tflite` file without TensorFlow and Keras.

    Args:
        path: path of a file that `tflite` wrote.
    Returns:
        Description.
    Raises:
        FileNotFoundError: if `path` does not exist.
        IsADirectoryError: if `path` is a folder, such as a SavedModel.
        ValueError: if the file is not a `.tflite` file, is truncated, does not match
            its checksum, has no description, or has one in a format that this version
            does not know.
    """
    description = find_description(path)
    if description is None:
        raise ValueError(
            f"{path} has no description: keras_vanilla did not write it, or not as a "
            "file that translates text."
        )
    return description


def find_description(path: PathLike) -> Description | None:
    """Works like `read_description`, but returns None if there is no description.

    Version 0.5.0 described only files of the text form.

    Args:
        path: path of a `.tflite` file.
    Raises:
        FileNotFoundError, IsADirectoryError, ValueError: as in `read_description`.
    """
    if Path(path).is_dir():
        raise IsADirectoryError(
            f"{path} is a folder, and only .tflite files describe themselves; "
            f"`saved_model_cli show --all --dir {path}` describes a SavedModel."
        )
    text = read_metadata(path, NAME)
    checksum.require_checksum(path)
    return None if text is None else _parsed(path, text)


def _parsed(path, text):
    try:
        fields = json.loads(text)
        if fields["format"] in READABLE and fields.get("form") != "ids":
            known = {field.name for field in dataclasses.fields(Description)}
            return Description(**{name: fields[name] for name in known & {*fields}})
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged: its description cannot be read."
        ) from error
    if fields["format"] in READABLE:
        raise ValueError(
            f"{path} has the form 'ids', which was removed in 0.8.0; keras_vanilla "
            "0.7.0 reads it."
        )
    raise ValueError(
        f"{path} describes itself as {fields['format']!r}, and keras_vanilla "
        f"{__version__} knows only {' and '.join(map(repr, READABLE))}; a newer "
        "version may read it."
    )

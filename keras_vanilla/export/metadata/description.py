"""What a `.tflite` file is: its form, model, limits and search; and its model card.

The file keeps its description inside as JSON.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keras_vanilla._about import check_language, check_text, checked_examples
from keras_vanilla._checks import check_choice, has_form
from keras_vanilla._version import __version__

if TYPE_CHECKING:
    from keras_vanilla.decoding import DecodingConfig

READABLE = tuple(f"keras_vanilla translator {number}" for number in (1, 2, 3, 4))
FORMAT = READABLE[-1]
OLDEST_RUNTIME = "LiteRT 2.1"
FORMS = {  # what goes into a file and comes out of it
    "text": "UTF-8 bytes in, UTF-8 bytes out",
    "steps": "the encoder, and one step of the decoder",
    "inside": "the encoder and one step, from UTF-8 bytes, with all attention weights",
}

# What Markdown reads as markup; an underscore inside a word is none.
MARKUP = re.compile(r"[\\`*\[\]<>|~&$#!]|(?<![^\W_])_|_(?![^\W_])")
NOT_STATED = "**not stated: it must be before the file is published**"
CARD = """\
# {title}

Translates {languages}: a vanilla Transformer in one file for LiteRT (TensorFlow
Lite), with its SentencePiece tokenizer and the whole search inside. UTF-8 bytes in,
UTF-8 bytes out, on the device, without a network.

| | |
| --- | --- |
{table}

## Call it

```python
import numpy as np
from ai_edge_litert.interpreter import Interpreter

translate = Interpreter({file}).get_signature_runner("translate")
text_bytes = {example}.encode().ljust({max_bytes}, b"\\0")
result = translate(text=np.frombuffer(text_bytes, np.uint8))
print(result["text"].tobytes().rstrip(b"\\0").decode())
```

Refuse a text of more than {max_bytes:,} bytes before the call. Of one with more than
{max_source_tokens:,} tokens the score is NaN and the translation is empty.

## Evaluation

Not stated.

## Elsewhere

Files in float32 give the same translations on x86-64, on ARM and in browsers: 300 of
300 sentences of a model like this one. Files with few bits per weight round differently
on other processors. On ARM64 297 of 300 sentences of an int8 model had the translation
they have on x86-64; the others parted where two words were almost equally likely.

## Meant for

Single sentences like those it was trained on, where a wrong translation does no harm,
or where somebody reads it who knows both languages. It errs fluently: it leaves out,
makes up, and mistakes names and numbers. A text in another language gives nonsense, not
an error. It has not been tested for bias.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """Description of a translator in one file; `str` formats it for a terminal.

    An export makes it first, from the translator and its settings; the graph, the
    checks, the model card and the page read it.

    Args:
        format: str. Format of the description; changes when its fields do.
        version: str. Version of keras_vanilla that wrote the file.
        form: "text", "steps" or "inside". The inputs and outputs.
        name: str. Name of the model.
        source_language: str or None. A BCP-47 tag such as "de" or "pt-BR".
        target_language: str or None. The same.
        max_bytes: int or None. Longest text, in bytes of UTF-8; None if the input is
            not text.
        max_source_tokens: int. Longest text in tokens, including the end (S).
        max_output_tokens: int. Longest translation in tokens, including the end (L).
        beam_size: int. 1 means greedy search.
        length_penalty: float or None. None for greedy search.
        quantize: "int8", "int4", or None for float32.
        parameters: int. Number of the model's parameters.
        model_license: str or None. For example an SPDX identifier; None if not stated.
        data: str or None. The model's training data.
        data_license: str or None. License of the data.
        end_id: int or None. The id that ends each complete output; `ids` without it are
            cut off. None in files of version 0.5.0.
        oldest_runtime: str. The oldest runtime that is supported, "LiteRT 2.1".
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
    oldest_runtime: str = OLDEST_RUNTIME
    outputs: list = dataclasses.field(default_factory=list)
    no_loops: bool = False
    examples: list = dataclasses.field(default_factory=list)
    converted_from: str | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, field.type):
                raise TypeError(
                    f"`{field.name}` must be {field.type}. Received: {value!r}"
                )
            if isinstance(value, str):
                check_text(field.name, value)
        check_choice("form", self.form, tuple(FORMS))
        if self.takes_text and self.max_bytes is None:
            raise TypeError(
                f"`max_bytes` must be int for the form {self.form!r}. Received: None"
            )
        if not has_form(self.outputs, [str]):
            raise TypeError(f"`outputs` must be texts. Received: {self.outputs!r}")
        for name in ("source_language", "target_language"):
            check_language(name, getattr(self, name))
        checked_examples(self.examples)

    @classmethod
    def from_json(cls, path: Path, content: bytes) -> "Description":
        """Reads the description of a file.

        Args:
            path: path of the file, for errors.
            content: bytes. The JSON.
        Raises:
            ValueError: if it is damaged, or the format or form is not known.
        """
        try:
            fields = json.loads(content)
            written = fields["format"], fields.get("form")
            if written[0] in READABLE and written[1] != "ids":
                # Version 0.7.0 and earlier named versions of TensorFlow Lite, or none.
                if not str(fields.get("oldest_runtime")).startswith("LiteRT"):
                    fields["oldest_runtime"] = OLDEST_RUNTIME
                fields.pop("shortlist", None)
                return cls(**fields)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ValueError(
                f"{path} is damaged: its description cannot be read."
            ) from error
        raise ValueError(
            f"{path} has the format {written[0]!r} and the form {written[1]!r}, which "
            f"keras_vanilla {__version__} does not read. Version 0.7.0 reads the form "
            "'ids', and a newer version may read other formats."
        )

    def to_json(self) -> bytes:
        """Returns the description as JSON in UTF-8."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False).encode()

    @property
    def takes_text(self) -> bool:
        """True if the input of the file is text."""
        return self.form != "steps"

    @property
    def decoding(self) -> "DecodingConfig":
        """The search of the file, or greedy search if the app searches."""
        from keras_vanilla.decoding import DecodingConfig  # imports Keras

        settings = {"beam_size": self.beam_size, "no_loops": self.no_loops}
        if self.length_penalty is not None:
            settings["length_penalty"] = self.length_penalty
        return DecodingConfig(**settings)

    def excess(self, text: str, source_ids: Sequence[int]) -> str | None:
        """Describes the limit that a text exceeds, or returns None.

        Args:
            text: str.
            source_ids: sequence of int. The ids of the text.
        """
        for size, limit, unit in (
            (len(text.encode()), self.max_bytes, "bytes"),
            (len(source_ids), self.max_source_tokens, "tokens"),
        ):
            if limit is not None and size > limit:
                return f"{size} {unit}, but the file takes at most {limit}"
        return None

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
            "runs on": f"{self.oldest_runtime} and later",
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
        if self.form != "text":
            return "none: the app's own"
        search = "greedy"
        if self.beam_size > 1:
            search = f"beam {self.beam_size}, length penalty {self.length_penalty}"
        return f"{search}, without loops" if self.no_loops else search


def model_card(description: Description, name: str, content: bytes) -> str:
    """Returns the text of a model card.

    Args:
        description: Description of the file.
        name: str. Name of the file.
        content: bytes of the file.
    """
    table = {
        "file": f"{_plain(name)}, {len(content):,} bytes",
        "SHA-256": f"`{hashlib.sha256(content).hexdigest()}`",
    }
    for row, text in description.rows(NOT_STATED).items():
        table[row] = text if text == NOT_STATED else _plain(text)
    table["tokenizer"] = "SentencePiece, unigram"
    example = next(iter(description.examples), "Text to translate.")
    return CARD.format(
        title=_plain(description.name),
        languages=_plain(description.languages),
        table="\n".join(f"| {row} | {text} |" for row, text in table.items()),
        file=json.dumps(name, ensure_ascii=False),
        example=json.dumps(example, ensure_ascii=False),
        max_bytes=description.max_bytes,
        max_source_tokens=description.max_source_tokens,
    )


def _plain(text):
    """Returns Markdown that shows a text as it is, on one line."""
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split()))

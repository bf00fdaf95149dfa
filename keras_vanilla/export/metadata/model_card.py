"""The model card of a published `.tflite` file."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from keras_vanilla._atomic_write import atomic_write_text
from keras_vanilla._types import PathLike
from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.metadata.flatbuffer import sha256_of

if TYPE_CHECKING:
    from keras_vanilla.translation import Score

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

{evaluation}

## Elsewhere

{elsewhere}

## Meant for

Single sentences like those it was trained on, where a wrong translation does no harm,
or where somebody reads it who knows both languages. It errs fluently: it leaves out,
makes up, and mistakes names and numbers. A text in another language gives nonsense, not
an error. It has not been tested for bias.
"""

ELSEWHERE = {
    True: """\
Files in float32 give the same translations on x86-64, on ARM and in browsers: 300 of
300 sentences of a model like this one.""",
    False: """\
Files with few bits per weight round differently on other processors. On ARM64 297 of
300 sentences of an int8 model had the translation they have on x86-64; the others
parted where two words were almost equally likely.""",
}


def write_model_card(
    description: Description, file: PathLike, evaluation: "Score | None" = None
) -> Path:
    """Writes the model card of a file next to it: `x.md` for `x.tflite`.

    Args:
        description: Description of the file.
        file: path of the `.tflite` file, which exists.
        evaluation: Score or None, as returned by `keras_vanilla.translation.score`.
    Returns:
        Path of the card.
    Raises:
        FileNotFoundError: if there is no file.
        FileExistsError: if the card already exists.
    """
    file = Path(file)
    size, digest = file.stat().st_size, sha256_of(file)
    card = model_card_text(description, file.name, size, digest, evaluation)
    path = card_path(file)
    atomic_write_text(path, card, overwrite=False)
    return path


def card_path(file: PathLike) -> Path:
    """Returns the path of the model card of a file."""
    return Path(file).with_suffix(".md")


def model_card_text(
    description: Description,
    name: str,
    size: int,
    sha256: str,
    evaluation: "Score | None" = None,
) -> str:
    """Returns the text of a model card.

    Args:
        description: Description of the file.
        name: str. Name of the file.
        size: int. Size of the file in bytes.
        sha256: str. SHA-256 of the file, in hexadecimal.
        evaluation: Score or None.
    """
    about = description.rows(NOT_STATED)
    table = {"file": f"{_plain(name)}, {size:,} bytes", "SHA-256": f"`{sha256}`"}
    table |= {
        row: text if text == NOT_STATED else _plain(text) for row, text in about.items()
    }
    table["tokenizer"] = "SentencePiece, unigram"
    measured = "Not stated."
    if evaluation is not None:
        scores = f"BLEU {evaluation.bleu:.2f}, chrF {evaluation.chrf:.2f}"
        measured = f"{scores} (`{evaluation.signature}`)."
    example = next(iter(description.examples), "Text to translate.")
    return CARD.format(
        title=_plain(description.name),
        languages=_plain(description.languages),
        table="\n".join(f"| {row} | {text} |" for row, text in table.items()),
        file=json.dumps(name, ensure_ascii=False),
        example=json.dumps(example, ensure_ascii=False),
        max_bytes=description.max_bytes,
        max_source_tokens=description.max_source_tokens,
        evaluation=measured,
        elsewhere=ELSEWHERE[description.quantize is None],
    )


def _plain(text):
    """Returns Markdown that shows a text as it is, on one line."""
    return MARKUP.sub(r"\\\g<0>", " ".join(text.split()))

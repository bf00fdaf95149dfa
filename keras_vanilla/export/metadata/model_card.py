"""The model card of a published `.tflite` file."""

import hashlib
import json
import re

from keras_vanilla.export.metadata.description import Description

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

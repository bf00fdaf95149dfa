"""The page that goes with a published `.tflite` file."""

import json
from pathlib import Path

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
octets = "Text to translate.".encode().ljust({max_bytes}, b"\\0")
result = translate(text=np.frombuffer(octets, np.uint8))
print(result["text"].tobytes().rstrip(b"\\0").decode())
```

Refuse a text of more than {max_bytes:,} bytes before the call. Of one with more than
{max_source_tokens:,} tokens the score is NaN and the translation is empty.

## Evaluation

{evaluation}

## Meant for

Single sentences like those it was trained on, where a wrong translation does no harm,
or where somebody reads it who knows both languages. It errs fluently: it leaves out,
makes up, and mistakes names and numbers. A text in another language gives nonsense, not
an error. Nobody has looked for prejudice in what it says.
"""


def write_model_card(description, file, evaluation=None):
    """Writes the model card of a file beside it: `x.tflite` has `x.md`.

    Args:
        description: Description of the file.
        file: path of the `.tflite` file, which exists.
        evaluation: `Score` or None, such as `keras_vanilla.translation.score` returns.
    Returns:
        Path of the card.
    Raises:
        FileNotFoundError: if there is no file.
        FileExistsError: if there is a card already.
    """
    file = Path(file)
    table = {"file": f"`{file.name}`, {file.stat().st_size:,} bytes"}
    table |= description.rows(NOT_STATED) | {"tokenizer": "SentencePiece, unigram"}
    card = CARD.format(
        title=_cell(description.name),
        languages=description.languages,
        table="\n".join(f"| {name} | {_cell(text)} |" for name, text in table.items()),
        file=json.dumps(file.name, ensure_ascii=False),
        max_bytes=description.max_bytes,
        max_source_tokens=description.max_source_tokens,
        evaluation=_evaluation(evaluation),
    )
    path = file.with_suffix(".md")
    with open(path, "x", encoding="utf-8") as page:
        page.write(card)
    return path


def _evaluation(score):
    if score is None:
        return "Not stated."
    return f"BLEU {score.bleu:.2f}, chrF {score.chrf:.2f} (`{score.signature}`)."


def _cell(text):
    """The text in one cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")

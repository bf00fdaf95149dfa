"""The model card shows every text as it is, whatever Markdown makes of its signs."""

import ast
import hashlib
import html
import re

import described_file
from described_file import FACTS, LEAST
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from keras_vanilla.export.metadata.description import Description, model_card

TEXTS = st.text(st.sampled_from("ab1 \\`*_[]()<>|~&$#!:/-+.\n\té猫\"'"), min_size=1)


def rendered(card):
    """Title, cells by row and code of a card, by a Markdown renderer."""
    page = MarkdownIt("commonmark").enable("table").render(card)
    (title,) = re.findall("<h1>(.*?)</h1>", page)
    rows = re.findall("<tr>\n<td>(.*?)</td>\n<td>(.*?)</td>\n</tr>", page)
    (code,) = re.findall("<code class=.language-python.>(.*?)</code>", page, re.S)
    return html.unescape(title), dict(rows), html.unescape(code)


@given(TEXTS, TEXTS, TEXTS)
def test_any_text_is_shown_as_it_is(name, data, example):
    if not example.strip():
        example = "a"
    facts = {**FACTS, "name": name, "data": data, "examples": [example]}
    file_name = f"{name}.tflite".replace("/", "")
    card = model_card(Description(**facts), file_name, b"content")
    title, rows, code = rendered(card)

    def shown(text):
        return " ".join(text.split())

    assert title == shown(name)
    for row, text in {
        "name": name,
        "trained on": data or "not stated: it must be before the file is published",
        "examples": example,
        "file": f"{file_name}, 7 bytes",
    }.items():
        assert html.unescape(rows[row]) == shown(text)
    nodes = ast.walk(ast.parse(code))
    constants = {node.value for node in nodes if isinstance(node, ast.Constant)}
    assert {file_name, example} <= constants


def test_card_has_what_publisher_must_state():
    content = described_file.content()
    card = model_card(Description(**FACTS), "echo.tflite", content)
    assert card.startswith("# de-en\n")
    for line in (
        "de to en-GB",
        f"| echo.tflite, {len(content):,} bytes |",
        f"| SHA-256 | `{hashlib.sha256(content).hexdigest()}` |",
        "| 131 bytes of UTF-8, at most 40 tokens |",
        "| 7,654,321 parameters, int8 |",
        "| Apache-2.0 |",
        "| LiteRT 2.1 and later |",
        "| SentencePiece, unigram |",
        'Interpreter("echo.tflite")',
        "ljust(131,",
        "## Evaluation\n\nNot stated.\n",
    ):
        assert line in card
    assert card.casefold().count("not stated") == 1


def test_card_names_what_is_not_stated():
    card = model_card(Description(**LEAST), "echo.tflite", b"")
    must = "**not stated: it must be before the file is published** |\n"
    for name in ("model license", "trained on", "data license"):
        assert f"| {name} | {must}" in card

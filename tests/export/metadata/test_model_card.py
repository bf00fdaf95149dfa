"""The model card shows every text as it is, whatever Markdown makes of its signs."""

import ast
import hashlib
import html
import re

import described_file
import pytest
from described_file import FACTS, LEAST
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.metadata.model_card import model_card_text, write_model_card
from keras_vanilla.translation import Score

TEXTS = st.text(st.sampled_from("ab1 \\`*_[]()<>|~&$#!:/-+.\n\té猫\"'"), min_size=1)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "echo.tflite"
    path.write_bytes(described_file.content())
    return path


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
    card = model_card_text(Description(**facts), file_name, 7, "0f")
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


def test_card_has_what_a_publisher_must_state(file):
    signatures = {"signature": "nrefs:1", "chrf_signature": "nrefs:1|nc:6"}
    scores = Score(bleu=41.234, chrf=60.1, **signatures)
    path = write_model_card(Description(**FACTS), file, scores)
    card, content = path.read_text(encoding="utf-8"), file.read_bytes()
    assert path == file.with_suffix(".md") and card.startswith("# de-en\n")
    for line in (
        "de to en-GB",
        f"| echo.tflite, {len(content):,} bytes |",
        f"| SHA-256 | `{hashlib.sha256(content).hexdigest()}` |",
        "| 131 bytes of UTF-8, at most 40 tokens |",
        "| 7,654,321 parameters, int8 |",
        "| Apache-2.0 |",
        "| LiteRT 2.1 and later |",
        "| SentencePiece, unigram |",
        "BLEU 41.23, chrF 60.10 (`nrefs:1`).",
        'Interpreter("echo.tflite")',
        "ljust(131,",
    ):
        assert line in card
    assert "not stated" not in card.casefold()


def test_card_names_what_is_not_stated(file):
    card = write_model_card(Description(**LEAST), file).read_text(encoding="utf-8")
    must = "**not stated: it must be before the file is published** |\n"
    for name in ("model license", "trained on", "data license"):
        assert f"| {name} | {must}" in card
    assert "## Evaluation\n\nNot stated.\n" in card


def test_card_is_never_overwritten(file):
    file.with_suffix(".md").write_text("mine")
    with pytest.raises(FileExistsError):
        write_model_card(Description(**FACTS), file)
    assert file.with_suffix(".md").read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        write_model_card(Description(**FACTS), file.with_name("none.tflite"))

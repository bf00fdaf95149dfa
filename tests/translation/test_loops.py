"""What a translation says again and again is there three times at most."""

import random

import numpy as np
import pytest
from repeated_tokens import text_loops

from keras_vanilla.translation.batch_translation import BatchTranslator
from keras_vanilla.translation.loops import without_loops


def without_loops_by_hand(text):
    """The definition: units of bytes, compared one by one."""
    content = text.encode() + b" "
    while found := first_loop(content):
        begin, end = found
        content = content[:begin] + content[end:]
    return content[:-1].decode()


def first_loop(content):
    for size in range(2, 121):
        for end in range(4 * size, len(content) + 1):
            unit = content[end - size : end]
            is_word = any(byte >= 128 or chr(byte).isalpha() for byte in unit)
            characters = sum(not 128 <= byte < 192 for byte in unit)
            if content[end - 4 * size : end] == 4 * unit and is_word and characters > 1:
                return end - size, end
    return None


def texts_with_loops(count, seed=1):
    draw = random.Random(seed)
    for _ in range(count):
        text = ""
        for _ in range(draw.randint(1, 5)):
            unit = draw.choices(
                ["a", "b", " ", "é", "字", "1", "."], k=draw.randint(1, 9)
            )
            text += "".join(unit) * draw.choice([1, 1, 2, 3, 4, 5, 9])
        yield text


def test_it_is_what_the_definition_says():
    changed = 0
    for text in texts_with_loops(150):
        received = without_loops(text, "A source without a loop.")
        assert received == without_loops_by_hand(text)
        changed += received != text
    assert 50 < changed < 130


@pytest.mark.parametrize(
    "text, expected",
    [
        ("the the the the the cat", "the the the cat"),
        ("the the the cat", "the the the cat"),
        ("ab the the the the", "ab the the the"),  # the last without a space
        ("Bahaha haha haha haha haha", "Bahaha haha haha"),
        ("glued-the-the-the-the-the end", "glued-the-the-the end"),
        (9 * "これは長い文です。", 3 * "これは長い文です。"),
        (5 * "one long phrase of many words, ", 3 * "one long phrase of many words, "),
        ("1000000000 and 1 1 1 1 1", "1000000000 and 1 1 1 1 1"),
        ("wait......... ------------", "wait......... ------------"),
        ("", ""),
    ],
)
def test_three_are_left(text, expected):
    received = without_loops(text, "......... 111111111 ------------")
    assert received == expected
    if expected != text:
        assert text_loops("source", text) and not text_loops("source", received)


@pytest.mark.parametrize("source", ["nein nein nein nein", "lalalala", 4 * "字母"])
def test_what_its_source_repeats_a_translation_may(source):
    assert without_loops("no no no no no", source) == "no no no no no"


def test_other_pieces_are_the_same_text(trained_translator, monkeypatch):
    """Whatever the ids are: the text is looked at."""
    text = "rot rot rot rot rot"
    tokenizer = trained_translator.tokenizer

    def search_batch(self, sources, *others):  # without compiling a search for each
        ids = np.full((len(sources), self.config.n_best or 1, 1), tokenizer.end_id)
        return ids, None if self.config.is_greedy else np.zeros(ids.shape[:2])

    monkeypatch.setattr(BatchTranslator, "search_batch", search_batch)
    monkeypatch.setattr(tokenizer, "decode", lambda rows: [text for _ in rows])
    (free,) = trained_translator.translate(["one two"])
    (without,) = trained_translator.translate(["one two"], no_loops=True)
    assert (free, without) == (text, "rot rot rot")
    (n_best,) = trained_translator.translate_n_best(["one"], no_loops=True)
    assert [translation for translation, _ in n_best] == 4 * ["rot rot rot"]
    (split,) = trained_translator.translate(
        ["one two"], no_loops=True, on_too_long="split"
    )
    assert split == "rot rot rot"
    (repeated,) = trained_translator.translate(["one " * 5], no_loops=True)
    assert repeated == text

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_vanilla.data.sentences import cut_to_fit, sentences

TABLE = Path(__file__).parents[1] / "support" / "sentences.txt"
ROWS = [line for line in TABLE.read_text("utf-8").splitlines() if line[:1] not in "#"]


@pytest.mark.parametrize("row", ROWS)
def test_text_is_cut_where_a_sentence_ends(row):
    assert sentences(row.replace("|", "")) == row.split("|")


def test_empty_text_has_no_sentences():
    assert sentences("") == []


@given(st.text(alphabet='aB .!?。,\n"”5'))
def test_joined_sentences_are_the_text(text):
    assert "".join(sentences(text)) == text
    assert all(sentences(text))


@given(st.text(alphabet="ab, ;，é", max_size=60), st.integers(1, 7))
def test_cut_pieces_fit(text, longest):
    parts = cut_to_fit(text, lambda part: len(part) <= longest)
    assert "".join(parts) == text
    assert all(len(part) <= longest for part in parts)


def test_commas_are_cut_before_spaces():
    def short(part):
        return len(part.strip()) <= 12

    assert cut_to_fit("one two, three four", short) == ["one two, ", "three four"]
    assert cut_to_fit("one two three four", short) == ["one two ", "three four"]
    assert cut_to_fit("onetwothreefour", short) == ["onetwot", "hreefour"]


def test_single_character_is_not_cut():
    assert cut_to_fit("x", lambda part: False) == ["x"]

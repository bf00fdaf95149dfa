import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_vanilla.data.sentences import cut_to_fit, sentences


@pytest.mark.parametrize(
    "parts",
    [
        ["A dog runs. ", "A cat sleeps."],
        ["Who is there? ", "Nobody! ", "“Well…” ", "He left."],
        ["Dr. Smith met J. S. Bach at 5 p.m. on the 3. May."],
        ["Mr. Jones vs. Mrs. Jones is on p. 5 of the book. ", "So what?"],
        ["It costs 3.50 euros, e.g. here, etc. and so on."],
        ["Am 5. Mai, z.B. in Berlin, regnet es. ", "Dann nicht."],
        ["Is it so?  \t", "Yes."],
        ["Yahoo! Inc. was large. ", "Wow! ", "Indeed."],
        ["Am 3. Okt. Feiertag, am 4. Nov. keiner. ", "Im Okt. ", "Gut."],
        ["Come at 5 p.m. ", "Please bring tea."],
        ["It begins at 5 p.m. Monday, or at 9 a.m. EST on Tuesday."],
        ["¿Qué tal? ", "¡Muy bien! ", "¿Y tú?"],
        ["今日は晴れ。", "明日は雨！", "本当？"],
        ["他说：“好。”", "我走了。"],
        ["यह घर है। ", "वह पेड़ है।"],
        ["no mark at all"],
        [],
    ],
    ids=lambda parts: parts[0] if parts else "nothing",
)
def test_a_text_is_cut_where_a_sentence_ends(parts):
    assert sentences("".join(parts)) == parts


@given(st.text(alphabet='aB .!?。,\n"”5'))
def test_joined_sentences_are_the_text(text):
    assert "".join(sentences(text)) == text
    assert all(sentences(text))


@given(st.text(alphabet="ab, ;，é", max_size=60), st.integers(1, 7))
def test_parts_fit_and_joined_are_the_text(text, longest):
    parts = cut_to_fit(text, lambda part: len(part) <= longest)
    assert "".join(parts) == text
    assert all(len(part) <= longest for part in parts)


def test_it_cuts_at_a_comma_before_it_cuts_at_a_space_or_in_a_word():
    def short(part):
        return len(part.strip()) <= 12

    assert cut_to_fit("one two, three four", short) == ["one two, ", "three four"]
    assert cut_to_fit("one two three four", short) == ["one two ", "three four"]
    assert cut_to_fit("onetwothreefour", short) == ["onetwot", "hreefour"]


def test_what_cannot_be_cut_comes_back():
    assert cut_to_fit("x", lambda part: False) == ["x"]

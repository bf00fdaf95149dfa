"""Which pieces `no_loops` takes for numbers, and for what the source repeats."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_vanilla.decoding.loops import NUMBER
from keras_vanilla.tokenizer import CharacterTokenizer, Tokenizer
from keras_vanilla.translation.piece_texts import loop_guard

DIGITS = "0٠۰०০๐០０𝟎"  # zeros of nine scripts
WORDS = [
    "Ha ha ha ha, said the tree. One two three four! A house; a river -- and a bird"
]


@pytest.fixture(scope="module")
def tokenizers():
    """One whose pieces are characters, and one with bytes for what it does not know."""
    characters = sorted({*"".join(WORDS), *DIGITS, *"1,.-!！😂一〇万"} - {" "})
    of_bytes = Tokenizer.train(lines=WORDS * 9, vocabulary_size=320)
    return [CharacterTokenizer(characters), of_bytes]


def is_cut(tokenizer, source, text):
    """Whether a token of the text may not follow those before it."""
    guard = loop_guard(tokenizer)
    (source,), (ids,) = tokenizer.encode([source]), tokenizer.encode_target([text])
    repeated = guard.repeated_texts(np.array([source]), tokenizer.pad_id)
    said = np.array([[ids]], "int32")
    return any(
        ids[index] in np.array(guard.looping_tokens(said, np.int32(index), repeated))
        for index in range(1, len(ids))
    )


NUMBERS = [
    form.replace("0", zero)
    for zero in DIGITS
    for form in (
        "00000000",
        "1,000,000,000,000,000",
        "1.000.000.000.000.000",
        "1-0-0-0-0",
    )
] + ["一〇〇〇〇〇", "万万万万万", "1 000 000 000 000 000"]
LAUGH = "ha ha ha ha ha. A house"
CASES = [
    *(("one house", number, False) for number in NUMBERS),
    ("one house", "ha ha ha ha ha", True),
    ("one house", "-----", True),
    (LAUGH, "Ha ha ha ha ha ha", False),
    (LAUGH, "tree tree tree tree tree", True),
    (LAUGH, "-----", True),
    ("------- A house", "-------", False),
    ("------- A house", "tree tree tree tree tree", True),
    ("A house！！！！", "A house!!!!!!", False),
    ("😂😂😂😂", "😂😂😂😂😂", False),
    ("😂😂😂😂", "ha ha ha ha ha", True),
]


@pytest.mark.parametrize(("source", "text", "cut"), CASES)
def test_only_what_is_no_number_and_not_in_the_source_is_cut(
    tokenizers, source, text, cut
):
    assert [is_cut(each, source, text) for each in tokenizers] == [cut, cut]


@pytest.mark.parametrize(
    ("pieces", "are_numbers"),
    [
        (["一般", "十分", "▁第三", "千代子", "▁万が一", "▁", "▁tree", "<0xCE>"], False),
        (["一", "▁十", "三百", "▁二〇", "2024年", "▁½", "第〇", "Ⅳ.", "<0xE4>"], True),
    ],
)
def test_letters_that_are_numerals_are_numbers_only_among_themselves(
    pieces, are_numbers
):
    """一 and 千 are also parts of words."""
    tokenizer = SimpleNamespace(
        vocabulary_size=len(pieces),
        target_vocabulary_size=len(pieces),
        source_pieces=lambda ids: [pieces[id_] for id_ in ids],
        target_pieces=lambda ids: [pieces[id_] for id_ in ids],
        **{f"{name}_id": -1 for name in ("pad", "start", "end", "unknown")},
    )
    texts = loop_guard(tokenizer).target_texts
    assert (texts == NUMBER).tolist() == [are_numbers] * len(pieces)

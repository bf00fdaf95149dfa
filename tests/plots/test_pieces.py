import pytest
from word_reversal import dutch

from keras_vanilla.plots.pieces import source_names, source_of, target_names


def test_pieces_have_their_names_and_special_ids_theirs(trained_translator):
    translator = trained_translator
    ids = source_of(translator, "three houses")
    names = [source_names(translator.tokenizer)(i) for i in ids]
    assert names[-1] == "</s>"
    assert "".join(names[:-1]).replace("▁", " ").strip() == "three houses"
    target = translator.tokenizer.encode_target([dutch("red tree")])[0]
    named = [target_names(translator.tokenizer)(i) for i in [2, *target, 0]]
    assert "".join(named) == "<s>▁boom▁rood</s><pad>"


def test_an_id_that_stands_for_nothing_is_named_by_its_number(trained_translator):
    assert target_names(trained_translator.tokenizer)(10_000) == "<10000>"


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_a_text_without_a_piece_is_refused(trained_translator, text):
    with pytest.raises(ValueError, match="The text must have at least one piece"):
        source_of(trained_translator, text)

"""Names of ids: pieces, special ids, and ids without a piece."""

from word_reversal import dutch

from keras_vanilla.tokenizer.piece_names import source_names, target_names


def test_pieces_have_their_names_and_special_ids_theirs(trained_translator):
    translator = trained_translator
    ids = translator.encode(["three houses"])[0]
    names = [source_names(translator.tokenizer)(i) for i in ids]
    assert names[-1] == "</s>"
    assert "".join(names[:-1]).replace("▁", " ").strip() == "three houses"
    target = translator.tokenizer.encode_target([dutch("red tree")])[0]
    named = [target_names(translator.tokenizer)(i) for i in [2, *target, 0]]
    assert "".join(named) == "<s>▁boom▁rood</s><pad>"


def test_id_without_piece_is_named_by_number(trained_translator):
    assert target_names(trained_translator.tokenizer)(10_000) == "<10000>"

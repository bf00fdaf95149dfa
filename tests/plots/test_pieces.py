import pytest

from keras_vanilla.plots.pieces import source_of


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_a_text_without_a_piece_is_refused(trained_translator, text):
    with pytest.raises(ValueError, match="The text must have at least one piece"):
        source_of(trained_translator, text)

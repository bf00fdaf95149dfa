import gzip

import pytest

from keras_vanilla.data import FileLines
from keras_vanilla.data.corpus import read_lines
from keras_vanilla.tokenizer import Tokenizer

# Words of a few lines fill no vocabulary.
pytestmark = pytest.mark.filterwarnings("ignore:.* fills a vocabulary of")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a").write_bytes("\ufeffone\r\n\nthrée\u2028\n".encode())
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"four\nfive"))
    return tmp_path / "a", tmp_path / "b.gz"


def test_file_lines_are_read_again(files):
    stay = FileLines(*files)
    expected = ["one", "", "thrée\u2028", "four", "five"]
    for _ in range(2):
        assert list(stay) == [*read_lines(files[0]), *read_lines(files[1])] == expected
    assert len(stay) == 5


def test_tokenizer_of_file_lines_is_that_of_a_list(files):
    sizes = {"vocabulary_size": 272}
    one = Tokenizer.train(FileLines(*files), **sizes)
    other = Tokenizer.train(lines=list(FileLines(*files)), **sizes)
    assert one.source_model == other.source_model
    separate = [FileLines(files[0]), FileLines(files[1])]
    one = Tokenizer.train_separate(*separate, **sizes)
    other = Tokenizer.train_separate(*map(list, separate), **sizes)
    assert (one.source_model, one.target_model) == (
        other.source_model,
        other.target_model,
    )


def test_tokenizer_digest_covers_both_models():
    model, other = (
        Tokenizer.train(lines=[text], vocabulary_size=270).source_model
        for text in ("some words", "other words")
    )
    found = [Tokenizer(model), Tokenizer(model, other), Tokenizer(other, model)]
    assert len({tokenizer.digest for tokenizer in found}) == 3
    assert Tokenizer(model, other).digest == found[1].digest

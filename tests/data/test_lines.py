import gzip
import os

import pytest

from keras_vanilla.data import FileLines, TokenCache
from keras_vanilla.data.lines import Lines
from keras_vanilla.tokenizer import Tokenizer

# Words of a few lines fill no vocabulary.
pytestmark = pytest.mark.filterwarnings("ignore:.* fills a vocabulary of")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a").write_bytes("\ufeffone\r\n\nthrée\u2028\n".encode())
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"four\nfive"))
    return tmp_path / "a", tmp_path / "b.gz"


def test_lines_that_stay_in_files_are_those_read_from_them(files):
    stay = FileLines(*files)
    expected = ["one", "", "thrée\u2028", "four", "five"]
    for _ in range(2):
        assert list(stay) == list(Lines.read(*files)) == expected
    assert len(stay) == 5


def test_files_are_named_one_by_one(files):
    for wrong in ([], [[*files]]):
        with pytest.raises(TypeError, match="FileLines expects paths"):
            FileLines(*wrong)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_where_text_is_read_twice(tmp_path):
    paths = [tmp_path / "pipe", tmp_path / "other-pipe"]
    for path in paths:
        os.mkfifo(path)
    tokenizer = Tokenizer.train(["some words"], vocabulary_size=270)
    for read in (
        lambda: FileLines(*paths),
        lambda: TokenCache.make(*paths, tokenizer, tmp_path / "cache"),
    ):
        with pytest.raises(ValueError, match="pipe must be a file: .* more than once"):
            read()
    assert not (tmp_path / "cache").exists()


def test_a_tokenizer_of_files_is_that_of_their_lines(files):
    sizes = {"vocabulary_size": 272}
    one = Tokenizer.train(FileLines(*files), **sizes)
    other = Tokenizer.train(lines=list(Lines.read(*files)), **sizes)
    assert one.source_model == other.source_model
    separate = [FileLines(files[0]), FileLines(files[1])]
    one = Tokenizer.train_separate(*separate, **sizes)
    other = Tokenizer.train_separate(*map(list, separate), **sizes)
    assert (one.source_model, one.target_model) == (
        other.source_model,
        other.target_model,
    )


def test_a_tokenizers_digest_is_of_all_that_decides_its_ids():
    model, other = (
        Tokenizer.train(lines=[text], vocabulary_size=270).source_model
        for text in ("some words", "other words")
    )
    found = [Tokenizer(model), Tokenizer(model, other), Tokenizer(other, model)]
    assert len({tokenizer.digest for tokenizer in found}) == 3
    assert Tokenizer(model, other).digest == found[1].digest

import argparse

import pytest

from keras_vanilla.cli.corpora import (
    add_cache_option,
    add_corpus_options,
    read_cache,
    read_corpus,
    train_tokenizer,
)
from keras_vanilla.tokenizer import Tokenizer

# Words of a few lines fill no vocabulary.
pytestmark = pytest.mark.filterwarnings("ignore:.* fills a vocabulary of")


@pytest.fixture
def files(tmp_path):
    paths = {}
    for side in ("source", "target"):
        paths[side] = [str(tmp_path / f"{side}{shard}") for shard in (0, 1)]
        for shard, path in enumerate(paths[side]):
            with open(path, "w") as file:
                file.write("\n".join(f"{side} {shard} {line}" for line in range(7)))
    return [f"--{paths_of}" for paths_of in paths], paths


def parsed(*words, size=None, separate=None):
    parser = argparse.ArgumentParser()
    add_corpus_options(parser, shards=True)
    add_cache_option(parser)
    options = parser.parse_args(words)
    options.max_tokens, options.vocabulary_size = 64, size
    options.separate_vocabularies = separate
    return options


@pytest.fixture
def options(files, tmp_path):
    (source, target), paths = files
    words = [source, *paths["source"], target, *paths["target"]]
    return parsed(*words, "--cache", str(tmp_path / "cache"), size=285)


def test_shards_are_read_in_order_into_memory_or_a_cache(options, capsys):
    corpus = read_corpus(options, options.target, "train")
    assert [line.split()[1:] for line in corpus.sources] == [
        [str(shard), str(line)] for shard in (0, 1) for line in range(7)
    ]
    cache = read_cache(options, train_tokenizer(options))
    assert len(cache) == len(corpus) == 14
    assert "14 of 14 lines are tokenised" in capsys.readouterr().err


@pytest.mark.parametrize("separate", [None, True])
def test_the_tokenizer_of_a_cache_is_that_of_the_corpus(options, separate):
    options.separate_vocabularies = separate
    corpus = read_corpus(options, options.target, "train")
    sides = list(corpus.sources), list(corpus.targets)
    expected = (
        Tokenizer.train_separate(*sides, vocabulary_size=285)
        if separate
        else Tokenizer.train(lines=sides[0] + sides[1], vocabulary_size=285)
    )
    assert train_tokenizer(options).digest == expected.digest


def test_a_cache_is_of_files():
    options = parsed("--corpus", "tfds:any", "--cache", "x")
    with pytest.raises(ValueError, match="--cache is for --source and --target"):
        read_cache(options, None)
    with pytest.raises(ValueError, match="either --source with its translation"):
        read_cache(parsed("--cache", "x"), None)

import argparse
import os

import pytest

from keras_vanilla.cli.console import add_about_options
from keras_vanilla.cli.corpora import (
    TrainingInput,
    add_cache_option,
    add_corpus_options,
    add_validation_options,
)
from keras_vanilla.training import TrainingConfig, new_translator
from keras_vanilla.training.run_folder import RunFolder

# The words of a few lines do not fill a vocabulary.
pytestmark = pytest.mark.filterwarnings("ignore:.* fills a vocabulary of")


@pytest.fixture
def files(tmp_path):
    """Options that name two files on each side."""
    words = []
    for side in ("source", "target"):
        paths = [str(tmp_path / f"{side}{shard}") for shard in (0, 1)]
        for shard, path in enumerate(paths):
            with open(path, "w") as file:
                file.write("\n".join(f"{side} {shard} {line}" for line in range(7)))
        words += [f"--{side}", *paths]
    return words


def training_input(*words, **options):
    parser = argparse.ArgumentParser()
    add_corpus_options(parser, shards=True)
    add_cache_option(parser)
    add_validation_options(parser)
    add_about_options(parser)
    parser.set_defaults(start=None, tokenizer=None, output="run")
    return TrainingInput(parser.parse_args(words, argparse.Namespace(**options)))


def read(training_input, tmp_path, **settings):
    settings = {"max_tokens": 64, "vocabulary_size": 285, **settings}
    config = TrainingConfig(**settings)
    training_input.read(config, RunFolder(tmp_path / "run"))
    return training_input


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="needs paths of pipes")
def test_only_cache_refuses_pipes(tmp_path):
    words, readers = [], []
    for option, text in (("--source", b"one\ntwo"), ("--target", b"een\ntwee\n")):
        reader, writer = os.pipe()
        os.write(writer, text)
        os.close(writer)
        words += [option, f"/dev/fd/{reader}"]
        readers.append(reader)
    cached = training_input(*words, "--cache", str(tmp_path / "ids"))
    with pytest.raises(ValueError, match="must be a file: .* read more than once"):
        read(cached, tmp_path)
    corpus = read(training_input(*words), tmp_path).corpus
    assert list(corpus) == [("one", "een"), ("two", "twee")]
    for reader in readers:
        os.close(reader)


@pytest.fixture
def table(tmp_path):
    """A tab-separated table with names, and a CSV without."""
    (tmp_path / "t.tsv").write_text("id\ten\tnl\n1\tone\teen\n2\ttwo\ttwee\n")
    (tmp_path / "t.csv").write_text('1,"one, two","een, twee"\n')
    return str(tmp_path / "t.tsv"), str(tmp_path / "t.csv")


def test_tables_for_training_and_validation(table, tmp_path):
    words = ["--pairs", table[0], "--columns", "en", "nl"]
    named = read(training_input(*words, "--validation-pairs", table[0]), tmp_path)
    pairs = [("one", "een"), ("two", "twee")]
    assert list(named.corpus) == list(named.validation) == pairs
    words = ["--pairs", table[1], table[1], "--columns", "3", "2"]
    numbered = read(training_input(*words), tmp_path)
    assert list(numbered.corpus) == [("een, twee", "one, two")] * 2
    assert numbered.validation is None


def test_table_of_spreadsheet_without_bad_rows(tmp_path, capsys):
    text = "de;en\nWer, du?;Who, you?\nEr.\n" + "ja;yes;oh\n" * 7
    (tmp_path / "t.csv").write_bytes(text.encode("utf-16"))
    words = ["--pairs", str(tmp_path / "t.csv"), "--encoding", "utf-16"]
    words += ["--delimiter", ";", "--header", "--on-bad-rows", "skip"]
    corpus = read(training_input(*words), tmp_path).corpus
    assert list(corpus) == [("Wer, du?", "Who, you?")]
    told = capsys.readouterr().err
    assert "1 pairs are left out, expected 2" in told and "received 1: lines 3" in told
    assert "7 pairs" in told and "lines 4, 5, 6, 7, 8, 9, 10\n" in told


def test_files_are_validated_on_tables_and_tables_on_files(files, table, tmp_path):
    words = ["--validation-pairs", table[0], "--columns", "en", "nl"]
    assert len(read(training_input(*files, *words), tmp_path).validation) == 2
    words = ["--pairs", table[0], "--columns", "en", "nl"]
    sides = ["--validation-source", files[1], "--validation-target", files[4]]
    assert len(read(training_input(*words, *sides), tmp_path).validation) == 7


def test_one_file_on_both_sides_is_refused_in_memory_and_for_a_cache(files, tmp_path):
    words = ["--source", *files[1:3], "--target", files[4], files[2]]
    cache = ["--cache", str(tmp_path / "ids")]
    for given in (training_input(*words), training_input(*words, *cache)):
        with pytest.raises(ValueError, match="source1 and .*source1 must be a text"):
            read(given, tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"separate_vocabularies": True},
        {"robust": True, "vocabulary_size": 400},  # with noise
    ],
    ids=str,
)
def test_cache_has_tokenizer_and_lines_of_corpus(files, tmp_path, settings):
    corpus = read(training_input(*files), tmp_path, **settings).corpus
    assert [line.split()[1:] for line in corpus.sources] == [
        [str(shard), str(line)] for shard in (0, 1) for line in range(7)
    ]
    cached = training_input(*files, "--cache", str(tmp_path / "ids"))
    cached = read(cached, tmp_path, **settings)
    settings = {"preset": "tiny", "vocabulary_size": 285, **settings}
    expected = new_translator(corpus, **settings).tokenizer
    assert cached.tokenizer.digest == expected.digest
    assert len(cached.corpus) == len(corpus) == 14


CONTRADICTIONS = {
    "--source x --target y --cache ./run/": "two folders. Received: ./run/ for both$",
    "--cache x": "either --source with its translation",
    "--pairs x --validation-source x": "--validation-target must be given together",
    "--pairs x --cache x": "--cache is for --source and",
    "--pairs x --source x": "Give either --source with its",
    "--pairs x --target x": "^--pairs contains the translations: give no",
    "--source x --target y --columns 1 2": "--columns is for tables, such as",
    "--source x --target y --no-header": "--header is for tables, such as",
    "--source x --target y --on-bad-rows skip": "--on-bad-rows is for tables",
    "--pairs x --validation-pairs x --validation-source x --validation-target x": (
        "--validation-pairs contains the translations: give no --validation-source"
    ),
    "--source x": "--source needs the file of its translation",
}


@pytest.mark.parametrize("words", CONTRADICTIONS)
def test_contradicting_options_are_refused(words):
    with pytest.raises(ValueError, match=CONTRADICTIONS[words]):
        training_input(*words.split())
    with pytest.raises(ValueError, match="one file or two"):
        training_input("--pairs", "x", tokenizer=["a"] * 3)


def test_config_is_checked_before_the_corpus(tmp_path):
    absent = training_input("--source", "nowhere", "--target", "nowhere")
    with pytest.raises(ValueError, match="`max_length`, 512. Received: 600"):
        absent.read(TrainingConfig(max_tokens=600), RunFolder(tmp_path / "run"))

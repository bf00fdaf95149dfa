import io
import subprocess
import sys
import threading
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from teacher_forcing import log_probabilities
from word_reversal import dutch

from keras_vanilla import Translator
from keras_vanilla._progress import Progress
from keras_vanilla.data.sentences import cut_to_fit, sentences
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import compile_for_training
from keras_vanilla.translation import (
    Hypothesis,
    batch_translation,
    buckets,
)
from keras_vanilla.translation.batch_translation import BatchTranslator
from keras_vanilla.translation.long_texts import _join


def test_translates_unseen_sentences(trained_translator, unseen_sentences):
    texts = unseen_sentences[:100]
    right = [dutch(text) for text in texts]
    same = sum(map(str.__eq__, trained_translator.translate(texts), right))
    assert same >= 90


def test_results_are_in_the_order_of_texts(trained_translator, unseen_sentences):
    texts = unseen_sentences[:100]  # more than a batch, of mixed lengths
    expected = trained_translator.translate(texts)
    alone = [trained_translator.translate([text])[0] for text in texts[:10]]
    assert expected[:10] == alone
    assert trained_translator.translate(np.array(texts[::-1]))[::-1] == expected
    assert trained_translator.translate(iter(texts)) == expected


def test_texts_without_a_piece_have_empty_translations(trained_translator):
    texts = ["", "   ", "three houses", "\u200b"]
    translations = trained_translator.translate(texts)
    assert [translations[i] for i in (0, 1, 3)] == ["", "", ""]
    assert translations[2] == trained_translator.translate(["three houses"])[0]
    assert trained_translator.translate([]) == []
    assert trained_translator.translate_n_best(texts, beam_size=3)[0] == [("", 0.0)]


def test_translation_cut_at_its_longest_length_is_reported(trained_translator):
    with pytest.warns(UserWarning, match=r"1 of 2 translations .* texts 2$"):
        trained_translator.translate(["", "one two three four"], max_length=2)


@pytest.mark.full
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a warning of TensorFlow"
)
def test_fresh_process_loads_a_file_by_keras_without_retracing(
    trained_translator, trained_file
):
    """In a process of its own: TensorFlow counts over all models, and warns twice."""
    script = """
import sys, keras, keras_vanilla
translator = keras.saving.load_model(sys.argv[1])
print(translator.translate(['one two'])[0])
for beam_size in range(1, 7):
    for count in (1, 5, 11):
        translator.translate(count * ['one ' * count], beam_size=beam_size)
print('done')
"""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(trained_file)],
        capture_output=True,
        text=True,
        check=True,
    )
    (expected,) = trained_translator.translate(["one two"])
    assert result.stdout.splitlines() == [expected, "done"]
    assert "retracing" not in result.stderr


@pytest.mark.full
def test_file_of_a_compiled_model_has_no_optimizer(trained_translator, tmp_path):
    translator = trained_translator.copy()
    compile_for_training(translator.model)
    ids = np.array([[4, 5, 3]])
    inputs = {"source_ids": ids, "target_ids": np.array([[2, 4, 5]])}
    translator.model.train_on_batch(inputs, ids)
    paths = tmp_path / "compiled.keras", tmp_path / "plain.keras"
    for each, path in zip((translator, trained_translator), paths, strict=True):
        each.save(path)
    sizes = [path.stat().st_size for path in paths]
    assert abs(sizes[0] - sizes[1]) < 0.01 * sizes[1]
    loaded = Translator.load(paths[0]).model.get_weights()
    for ours, theirs in zip(translator.model.get_weights(), loaded, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_save_that_fails_leaves_the_file_before_it(
    trained_translator, tmp_path, monkeypatch
):
    path = tmp_path / "translator.keras"
    trained_translator.save(path)
    before = path.read_bytes()

    def full_disk(self, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Translator, "save_assets", full_disk)
    with pytest.raises(OSError, match="No space"):
        trained_translator.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# Beams, scores, many texts


def test_n_best_have_scores_of_the_model(trained_translator):
    text, settings = ["one two three four"], {"beam_size": 3, "length_penalty": 0.6}
    (source,) = trained_translator.encode(text)
    (found,) = trained_translator.stream(text, n_best=3, **settings)
    for each in found:
        log_probs = log_probabilities(trained_translator.model, source, each.ids)
        expected = log_probs.sum() / ((5 + len(each.ids)) / 6) ** 0.6
        assert each.score == pytest.approx(expected, abs=1e-5)  # of float32 logits
    pairs = [(each.text, each.score) for each in found]
    assert pairs == sorted(pairs, key=lambda pair: -pair[1]) and len(pairs) == 3
    assert trained_translator.translate_n_best(text, **settings) == [pairs]
    best = trained_translator.translate_n_best(text, **settings, n_best=1)
    assert best == [pairs[:1]]
    assert trained_translator.translate(text, **settings) == [pairs[0][0]]


def test_first_results_come_before_last_search(trained_translator, monkeypatch):
    monkeypatch.setattr(batch_translation, "WINDOW", 4)
    monkeypatch.setattr(buckets, "ROWS", 2)
    texts = ["one", "two three four", "", "five", "six", "ten"]
    progress = Progress("Translating", len(texts), "lines", io.StringIO())
    stream = trained_translator.stream(texts, progress=progress)
    first = next(stream)[0]
    assert progress.count == 4  # the first window
    assert first.text == trained_translator.translate(texts)[0]
    assert [found[0].text for found in stream] == trained_translator.translate(texts)[
        1:
    ]


def test_batches_that_are_searched_at_once_keep_their_order(
    trained_translator, monkeypatch
):
    texts = ["one", "two three four five", "six seven", "", "eight", "nine ten"]
    expected = trained_translator.translate(texts)
    search_batch = BatchTranslator.search_batch
    together = threading.Barrier(3)

    def search_beside_others(self, sources, *others):
        together.wait(timeout=60)
        return search_batch(self, sources, *others)

    monkeypatch.setattr(BatchTranslator, "search_batch", search_beside_others)
    monkeypatch.setattr(buckets, "ROWS", 2)  # three batches
    assert trained_translator.translate(texts) == expected


def test_error_of_one_batch_ends_the_others(trained_translator, monkeypatch):
    searched = []

    def search_batch(self, sources, *others):
        searched.append(len(sources))
        time.sleep(0.01)
        raise ValueError("broken")

    monkeypatch.setattr(BatchTranslator, "search_batch", search_batch)
    monkeypatch.setattr(buckets, "ROWS", 1)
    with pytest.raises(ValueError, match="^broken$"):
        trained_translator.translate(["one"] * 500)
    assert len(searched) < 500


def test_batches_have_fewer_rows_for_longer_sources_and_more_beams():
    sources = [[4] * length for length in (3, 500, 2, 500, 1) + 300 * (20,)]
    batches = list(buckets.length_buckets(sources, beam_size=4))
    assert sorted(sum(batches, [])) == list(range(305))
    lengths = [[len(sources[i]) for i in batch] for batch in batches]
    assert sum(lengths, []) == sorted(sum(lengths, []))
    most = [max(batch) * len(batch) * 4 for batch in lengths]
    assert max(most) <= buckets.POSITIONS and len(lengths[0]) == buckets.ROWS
    assert [len(batch) for batch in buckets.length_buckets([[4] * 10**6])] == [1]


@pytest.mark.parametrize("on_too_long", ["refuse", "split"])
def test_text_is_tokenised_once(trained_translator, monkeypatch, on_too_long):
    encoded, encode = [], Tokenizer.encode
    monkeypatch.setattr(
        Tokenizer,
        "encode",
        lambda self, lines: encoded.extend(lines) or encode(self, lines),
    )
    texts = ["one two", "red tree", ""]
    trained_translator.translate(texts, on_too_long=on_too_long)
    assert encoded == (texts if on_too_long == "refuse" else texts[:2])


# Long texts


@pytest.mark.parametrize(
    "text, space",
    [("one。two！", " "), ("one two.  Red tree!", "  "), ("one. Two", " ")],
)
def test_sentences_are_translated_one_by_one(trained_translator, text, space):
    one, two = trained_translator.translate(sentences(text))
    received = trained_translator.translate([text, ""], on_too_long="split")
    assert received == [f"{one}{space}{two}", ""]


@pytest.mark.parametrize(
    "sentences", [["one ten,", "red tree"], ["one ten, ", "red tree"]]
)
def test_splitter_returns_sentences(trained_translator, sentences):
    one, two = trained_translator.translate(["one ten,", "red tree"])
    settings = {"on_too_long": "split", "splitter": lambda text: sentences}
    received = trained_translator.translate([" one ten,  red tree"], **settings)
    assert received == [f"{one}  {two}"]


def test_no_space_joins_chinese_or_japanese_sentences():
    hypotheses = [Hypothesis(text, None, [], True) for text in ("晴れ。", "雨", "ok")]
    assert _join(["a.", "b.", "c."], hypotheses).text == "晴れ。雨ok"


def test_sentence_too_long_is_cut_with_a_warning(trained_translator):
    text = "one two three, " * 30
    with pytest.raises(ValueError, match="Text 1 has"):
        trained_translator.translate([text])
    with pytest.warns(
        UserWarning, match="1 of 2 texts have a sentence of more than 60"
    ):
        whole, other = trained_translator.translate([text, "ten"], on_too_long="split")
    assert other == trained_translator.translate(["ten"])[0]
    longest = trained_translator.model.max_length
    parts = cut_to_fit(
        text,
        lambda part: len(trained_translator.tokenizer.encode([part])[0]) <= longest,
    )
    assert len(parts) > 1 and all(part.endswith(", ") for part in parts)
    assert whole == " ".join(trained_translator.translate(parts))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_batch_that_exhausts_memory_is_halved(trained_translator, monkeypatch, error):
    search_batch, most = BatchTranslator.search_batch, 2

    def search_small_batch(self, sources, *others):
        if len(sources) > most:
            raise error
        return search_batch(self, sources, *others)

    monkeypatch.setattr(BatchTranslator, "search_batch", search_small_batch)
    texts = ["one", "two", "", "three", "four", "five"]
    expected = ["een", "twee", "", "drie", "vier", "vijf"]
    assert trained_translator.translate(texts) == expected
    most = 0
    with pytest.raises(type(error)):
        trained_translator.translate(texts)

import io
import subprocess
import sys
import threading
import time
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf
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


def test_results_come_in_the_order_of_the_texts(trained_translator, unseen_sentences):
    texts = unseen_sentences[:100]  # more than a batch, of mixed lengths
    alone = [trained_translator.translate([text])[0] for text in texts[:10]]
    assert trained_translator.translate(texts)[:10] == alone
    backwards = trained_translator.translate(texts[::-1])
    assert backwards[::-1] == trained_translator.translate(texts)


def test_texts_without_a_piece_translate_to_nothing(trained_translator):
    texts = ["", "   ", "three houses", "\u200b"]
    translations = trained_translator.translate(texts)
    assert [translations[i] for i in (0, 1, 3)] == ["", "", ""]
    assert translations[2] == trained_translator.translate(["three houses"])[0]
    assert trained_translator.translate([]) == []


def test_translation_cut_at_its_longest_length_is_reported(trained_translator):
    with pytest.warns(UserWarning, match=r"1 of 2 translations .* texts 2$"):
        trained_translator.translate(["", "one two three four"], max_length=2)


@pytest.mark.full
def test_archive_holds_everything_and_loads_by_keras_alone(
    trained_translator, tmp_path
):
    path = tmp_path / "translator.keras"
    trained_translator.save(path)
    texts = ["one two three", "small tree"]
    expected = trained_translator.translate(texts)
    assert keras.saving.load_model(path).translate(texts) == expected
    assert Translator.load(path).translate(texts) == expected
    assert list(tmp_path.iterdir()) == [path]  # nothing unfinished beside it


@pytest.mark.full
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a warning of TensorFlow"
)
def test_fresh_process_loads_it_with_one_import_and_warns_of_no_retracing(
    trained_translator, trained_file
):
    """In a process of its own: TensorFlow counts over all models, and warns twice."""
    script = (
        "import sys, keras, keras_vanilla\n"
        "translator = keras.saving.load_model(sys.argv[1])\n"
        "print(translator.translate(['one two'])[0])\n"
        "for beam_size in range(1, 7):\n"
        "    for count in (1, 5, 11):\n"
        "        translator.translate(count * ['one ' * count], beam_size=beam_size)\n"
        "print('done')\n"
    )
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
def test_compiled_model_leaves_no_optimizer_in_the_archive(
    trained_translator, tmp_path
):
    translator = trained_translator.copy()
    compile_for_training(translator.model)
    ids = np.array([[4, 5, 3]])
    weights = np.full((1, 3), 1 / 3, dtype="float32")
    inputs = {"source_ids": ids, "target_ids": np.array([[2, 4, 5]])}
    translator.model.train_on_batch(inputs, ids, weights)
    translator.save(tmp_path / "compiled.keras")
    trained_translator.save(tmp_path / "plain.keras")
    sizes = [
        (tmp_path / name).stat().st_size for name in ("compiled.keras", "plain.keras")
    ]
    assert abs(sizes[0] - sizes[1]) < 0.01 * sizes[1]
    loaded = Translator.load(tmp_path / "compiled.keras")
    for ours, theirs in zip(
        translator.model.get_weights(), loaded.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.full
def test_compiled_search_uses_the_weights_of_the_moment(trained_translator):
    translator = trained_translator.copy()
    before = translator.translate(["one two three"])
    translator.model.set_weights([0 * w for w in translator.model.get_weights()])
    with pytest.warns(UserWarning, match="without an end"):
        assert translator.translate(["one two three"]) != before


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


def test_damaged_archive_is_refused_in_one_sentence(trained_translator, tmp_path):
    path = tmp_path / "translator.keras"
    trained_translator.save(path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, b"" if name == "model.weights.h5" else content)
    with pytest.raises(ValueError, match="cannot be read as a translator: ") as refused:
        Translator.load(path)
    assert "\n" not in str(refused.value)


@pytest.mark.full
def test_file_of_a_bare_transformer_says_what_to_do(trained_translator, tmp_path):
    path = tmp_path / "model.keras"
    trained_translator.model.save(path)
    message = r"model.keras holds a Transformer.*no tokenizer.*Translator\(tokenizer, "
    with pytest.raises(ValueError, match=message):
        Translator.load(path)
    model = keras.saving.load_model(path)
    with pytest.raises(TypeError, match=r"a Transformer.*Translator\(tokenizer, model"):
        Translator.load(model)
    translator = Translator(trained_translator.tokenizer, model)
    assert translator.translate(["one"]) == trained_translator.translate(["one"])


# Beams, scores, many texts


@pytest.mark.full
def test_wider_beam_never_scores_worse(trained_translator, unseen_sentences):
    texts = unseen_sentences[:40]
    settings = {"length_penalty": 0.0, "n_best": 1}
    narrow = trained_translator.translate_n_best(texts, beam_size=1, **settings)
    wide = trained_translator.translate_n_best(texts, beam_size=6, **settings)
    gains = [w[0][1] - n[0][1] for w, n in zip(wide, narrow, strict=True)]
    # Where the search is not greedy it may still lose the best; never on the whole.
    assert sum(gains) >= -1e-4  # float32 sums
    assert [n[0][0] for n in narrow] == trained_translator.translate(texts)


@pytest.mark.full
def test_n_best_are_distinct_and_fall(trained_translator):
    (found,) = trained_translator.translate_n_best(
        ["one two three"], beam_size=5, n_best=4
    )
    texts, scores = zip(*found, strict=True)
    assert len(found) == 4 and len(set(texts)) > 1
    assert list(scores) == sorted(scores, reverse=True) and scores[0] < 0
    best = trained_translator.translate(["one two three"], beam_size=5)
    assert [texts[0]] == best


@pytest.mark.full
def test_score_is_the_log_probability_over_the_penalty(trained_translator):
    model, tokenizer = trained_translator.model, trained_translator.tokenizer
    text = "one two three four"
    (((translation, found),),) = trained_translator.translate_n_best(
        [text], beam_size=3, n_best=1, length_penalty=0.6
    )
    (target,) = tokenizer.encode_target([translation])
    inputs = {
        "source_ids": np.array(trained_translator.encode([text])),
        "target_ids": np.array([[model.start_id, *target[:-1]]]),
    }
    logits = np.asarray(model(inputs), dtype="float64")[0]
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    log_probability = logits[np.arange(len(target)), target].sum()
    expected = log_probability / ((5 + len(target)) / 6) ** 0.6
    assert found == pytest.approx(expected, abs=1e-5)  # sums of float32 logits


def test_text_without_a_piece_has_one_translation(trained_translator):
    texts = ["", "one"]
    assert trained_translator.translate_n_best(texts, beam_size=3)[0] == [("", 0.0)]


def test_first_results_come_before_the_last_texts_are_searched(
    trained_translator, monkeypatch
):
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


@pytest.mark.full
def test_search_is_compiled_once_for_many_sentences(trained_translator):
    translator = trained_translator.copy()
    traces = []
    encode = translator.model.encode
    translator.model.encode = lambda ids: traces.append(1) or encode(ids)
    for count in (3, 4, 3, 4):
        translator.translate(["one two three"] * count, beam_size=2)
    assert len(traces) <= 2  # Keras may look at the shapes once before


@pytest.mark.full
def test_model_that_computes_no_numbers_is_of_no_use(trained_translator):
    translator = trained_translator.copy()
    weights = [weight * np.nan for weight in translator.model.get_weights()]
    translator.model.set_weights(weights)
    with pytest.raises(ValueError, match="must be finite numbers"):
        translator.translate(["one"], beam_size=2)


def test_longer_the_sources_and_the_more_beams_the_fewer_rows():
    sources = [[4] * length for length in (3, 500, 2, 500, 1) + 300 * (20,)]
    batches = list(buckets.length_buckets(sources, beam_size=4))
    assert sorted(sum(batches, [])) == list(range(305))
    lengths = [[len(sources[i]) for i in batch] for batch in batches]
    assert sum(lengths, []) == sorted(sum(lengths, []))
    most = [max(batch) * len(batch) * 4 for batch in lengths]
    assert max(most) <= buckets.POSITIONS and len(lengths[0]) == buckets.ROWS
    assert [len(batch) for batch in buckets.length_buckets([[4] * 10**6])] == [1]


def test_as_many_hypotheses_as_beams_are_the_default(trained_translator):
    texts = ["one two three"]
    every = trained_translator.translate_n_best(texts, beam_size=3, n_best=3)
    assert trained_translator.translate_n_best(texts, beam_size=3) == every


# What is not for a translator


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


def test_texts_may_be_any_iterable(trained_translator):
    texts = ["one two", "red tree"]
    expected = trained_translator.translate(texts)
    assert trained_translator.translate(np.array(texts)) == expected
    assert trained_translator.translate(iter(texts)) == expected


# Long texts


def test_text_of_sentences_is_translated_one_by_one(trained_translator):
    one, two = trained_translator.translate(["one two.", "Red tree!"])
    (both,) = trained_translator.translate(["one two.  Red tree!"], on_too_long="split")
    assert both == f"{one}  {two}"
    assert trained_translator.translate(["", "one"], on_too_long="split")[0] == ""


@pytest.mark.parametrize(
    "sentences", [["one ten,", "red tree"], ["one ten, ", "red tree"]]
)
def test_function_may_say_what_the_sentences_are(trained_translator, sentences):
    one, two = trained_translator.translate(["one ten,", "red tree"])
    settings = {"on_too_long": "split", "splitter": lambda text: sentences}
    received = trained_translator.translate([" one ten,  red tree"], **settings)
    assert received == [f"{one}  {two}"]


@pytest.mark.parametrize(
    "text, space", [("one。two！", " "), ("one.  Two.", "  "), ("one. Two", " ")]
)
def test_sentences_keep_a_space_between_them(trained_translator, text, space):
    one, two = sentences(text)
    expected = space.join(trained_translator.translate([one, two]))
    assert trained_translator.translate([text], on_too_long="split") == [expected]


def test_no_space_joins_chinese_or_japanese_sentences():
    hypotheses = [Hypothesis(text, None, [], True) for text in ("晴れ。", "雨", "ok")]
    assert _join(["a.", "b.", "c."], hypotheses).text == "晴れ。雨ok"


def test_sentence_too_long_is_cut_and_that_is_said(trained_translator):
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
def test_batch_that_memory_cannot_hold_is_halved(
    trained_translator, monkeypatch, error
):
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

import math
import re
import shutil
import sys
import tempfile

import numpy as np
import pytest
import sentencepiece.sentencepiece_model_pb2 as sentencepiece_model
import tensorflow as tf
from word_reversal import english_sentences, padded

from keras_vanilla import cli, export
from keras_vanilla.export.checks.report import Difference, Report, TextDifference
from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.metadata.flatbuffer import unpacked, with_description
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation.translator import Translator

LENGTHS = {"max_bytes": 160, "max_source_length": 29, "max_length": 59}


def with_twin(translator, piece, factor):
    """A copy to which an id never used is `factor` times as good as a piece.

    Returns:
        The translator, the piece's id, the other id.
    """
    copy = translator.copy()
    original, twin = copy.tokenizer.encode_target([piece])[0][0], 11
    (table,) = copy.model.target_embedding.get_weights()
    table[twin] = factor * table[original]
    copy.model.target_embedding.set_weights([table])
    return copy, original, twin


@pytest.mark.full
def test_float32_files_pass(
    trained_translator, float32_file, saved_folder, unseen_sentences
):
    texts = ["", *unseen_sentences, "Grüße"]
    for path, kind in ((float32_file, "TFLite"), (saved_folder, "SavedModel")):
        report = export.verify(trained_translator, path, texts)
        assert report.passed
        assert (report.kind, report.quantized) == (kind, False)
        assert report.sentences == 202
        assert report.equal + report.near_ties == 202
        assert report.text_differences == ()
    assert float32_file.stat().st_size in _numbers(
        export.verify(trained_translator, float32_file, texts[:2])
    )
    files = [f for f in saved_folder.rglob("*") if f.is_file()]
    assert report.size == sum(len(f.read_bytes()) for f in files)


def _numbers(report):
    return {
        int(word) for word in str(report).replace(",", "").split() if word.isdigit()
    }


@pytest.fixture(scope="module")
def file_of_a_twin(trained_translator, tmp_path_factory):
    """It says a twin where the trained translator says "rood"."""
    path = tmp_path_factory.mktemp("twin") / "model.tflite"
    theirs, *_ = with_twin(trained_translator, "rood", 1 + 4e-6)
    export.tflite(theirs, path, quantize=None, **LENGTHS)
    return path


@pytest.mark.full
@pytest.mark.parametrize("step, near", [(4e-6, True), (1e-3, False)])
def test_each_difference_is_placed_and_measured(
    trained_translator, file_of_a_twin, step, near
):
    """Keras says one id where the file says its twin, by a known margin."""
    ours, original, twin = with_twin(trained_translator, "rood", 1 - step)
    texts = english_sentences(100, seed=5)
    report = export.verify(ours, file_of_a_twin, texts)
    sources = ours.encode(texts)
    ids = ours.search(sources)
    expected = [
        (line, row.tolist().index(original))
        for line, row in enumerate(ids, start=1)
        if original in row
    ]
    assert 5 < len(expected) < 100
    assert [(d.line, d.position) for d in report.differences] == expected
    inputs = {"source_ids": padded(sources), "target_ids": np.insert(ids, 0, 2, axis=1)}
    logits = np.asarray(ours.model(inputs))
    for d in report.differences:
        first, second = logits[d.line - 1, d.position, [original, twin]]
        assert math.isclose(d.gap, first - second, abs_tol=1e-5)
    assert report.near_ties == (len(expected) if near else 0)
    assert report.equal == 100 - len(expected)
    assert report.passed == near
    line, position = expected[0]
    assert f"line {line}, token {position + 1}: logits" in str(report)
    assert ("NOT PASSED" in str(report)) != near


@pytest.mark.full
def test_another_models_file_does_not_pass(
    trained_translator, float32_file, saved_folder, unseen_sentences
):
    other = trained_translator.copy()
    random = np.random.default_rng(0)
    noisy = [w + random.normal(0, 0.1, w.shape) for w in other.model.get_weights()]
    other.model.set_weights(noisy)
    for path in (float32_file, saved_folder):
        report = export.verify(other, path, unseen_sentences[:15])
        assert not report.passed
        assert len(report.differences) > 5 and report.near_ties == 0
    assert report.text_differences


def write_file(path, ids_of, text_of=lambda text: text, operators=()):
    """A described file whose outputs are functions of the bytes of the text."""
    module = tf.Module()
    module.run = tf.function(
        lambda text: {
            "text": tf.cast(text_of(text), tf.uint8),
            "ids": ids_of(text),
            "score": tf.constant(0.0),
        },
        [tf.TensorSpec([160], tf.uint8, name="text")],
    )
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, {"translate": module.run})
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=["translate"]
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        converter.target_spec.supported_ops += operators
        file = unpacked(converter.convert())
    limits = {"max_bytes": 160, "max_source_tokens": 29, "max_output_tokens": 59}
    description = Description(name="x", parameters=0, **limits)
    path.write_bytes(with_description(file, description))


def write_answers(path, answers):
    """A file that gives the ids and the text of a dict for the first letter."""
    table, texts = np.zeros((256, 59), "int32"), np.zeros((256, 20), "int32")
    for letter, (ids, text) in answers.items():
        table[ord(letter), : len(ids)] = ids
        texts[ord(letter), : len(text)] = list(text.encode())

    def row_of(values):
        return lambda text: tf.gather(values, tf.cast(text[0], tf.int32))

    write_file(path, row_of(table), row_of(texts))


@pytest.mark.full
def test_differences_that_are_no_choice_of_a_logit_are_never_ties(
    trained_translator, tmp_path
):
    texts = ["one two", "two two", "red two", "green two"]
    sources, end_id = trained_translator.encode(texts), trained_translator.model.end_id
    words = [
        row[: row.index(end_id)] for row in trained_translator.search(sources).tolist()
    ]
    assert list(map(len, words)) == [2, 2, 2, 2]
    said = [
        words[0],  # stops without an end
        [words[1][0], 10_000, end_id],  # no such id
        [],
        [*words[3], end_id, 7, 7],
    ]
    path = tmp_path / "model.tflite"
    answers = zip(said, trained_translator.translate(texts), strict=True)
    write_answers(path, dict(zip("otrg", answers, strict=True)))
    for text, position in zip(texts, (2, 1, 0), strict=False):
        report = export.verify(trained_translator, path, [text])
        assert report.differences == (Difference(1, position, math.inf, text),)
        assert not report.passed
    report = export.verify(trained_translator, path, texts[3:])
    assert report.passed and report.equal == 1  # what follows an end is not said


@pytest.mark.full
def test_shorter_outputs_are_compared_up_to_their_length(
    trained_translator, unseen_sentences, tmp_path
):
    path = tmp_path / "short.tflite"
    limits = {"max_length": 4, "check": "structure"}
    export.tflite(trained_translator, path, quantize=None, **limits)
    report = export.verify(trained_translator, path, unseen_sentences[:40])
    assert report.passed and report.equal == 40


@pytest.mark.full
def test_other_strings_from_the_same_ids_do_not_pass(trained_translator, tmp_path):
    loud = trained_translator.copy()
    tokenizer = Tokenizer(loud.tokenizer.source_model)
    quiet_text = tokenizer.detokenize_graph
    tokenizer.detokenize_graph = lambda ids: tf.strings.upper(quiet_text(ids))
    loud.tokenizer = tokenizer
    export.saved_model(loud, tmp_path / "model")
    texts = ["one two", "", "red"]
    report = export.verify(trained_translator, tmp_path / "model", texts)
    assert report.differences == ()
    assert report.text_differences == (
        TextDifference(1, "twee een", "TWEE EEN"),
        TextDifference(3, "rood", "ROOD"),
    )
    assert not report.passed
    assert "line 3: 'ROOD' instead of 'rood'" in str(report)


@pytest.fixture
def translator_with_ties(trained_translator):
    """Its pieces score by their length, so that many segmentations score the same."""
    proto = sentencepiece_model.ModelProto.FromString(
        trained_translator.tokenizer.source_model
    )
    for piece in proto.pieces:
        if piece.type == piece.NORMAL:
            piece.score = -1.1 * len(piece.piece)
    tokenizer = Tokenizer(proto.SerializeToString())
    return Translator(tokenizer, trained_translator.model)


@pytest.mark.full
def test_ties_of_the_tokenizer_are_listed_and_pass(translator_with_ties, tmp_path):
    texts = english_sentences(120, seed=6, lengths=[5])
    tokenizer = translator_with_ties.tokenizer
    pairs = zip(tokenizer.encode(texts), tokenizer.source_graph(texts), strict=True)
    other = [n for n, (a, b) in enumerate(pairs, 1) if a != b.numpy().tolist()]
    export.saved_model(translator_with_ties, tmp_path / "model")
    report = export.verify(translator_with_ties, tmp_path / "model", texts)
    assert report.text_differences
    for difference in report.text_differences:
        assert difference.line in other and difference.tie
    assert report.passed and "a tie of two segmentations" in str(report)


@pytest.mark.full
def test_another_segmentation_without_a_tie_does_not_pass(trained_translator, tmp_path):
    translator = trained_translator.copy()
    tokenizer = Tokenizer(translator.tokenizer.source_model)
    all_ids = tokenizer.source_graph
    tokenizer.source_graph = lambda texts: all_ids(texts)[:, 1:]
    translator.tokenizer = tokenizer
    export.saved_model(translator, tmp_path / "model")
    report = export.verify(translator, tmp_path / "model", ["red one"])
    (difference,) = report.text_differences
    assert not difference.tie and not report.passed


@pytest.mark.full
def test_file_with_other_operators_is_refused(trained_translator, tmp_path):
    path = tmp_path / "flex.tflite"
    write_file(
        path,
        lambda text: tf.bitwise.bitwise_and(tf.cast(text, tf.int32), 7),
        operators=[tf.lite.OpsSet.SELECT_TF_OPS],
    )
    with pytest.raises(ValueError, match="flex.tflite cannot run .*FlexBitwiseAnd"):
        export.verify(trained_translator, path, ["one"])


def test_verdicts():
    def report(near, far, quantized, sentences=100, **more):
        gaps = [1e-4] * near + [1.1e-4] * far
        differences = [Difference(n, 0, gap, "") for n, gap in enumerate(gaps, 1)]
        facts = {"inputs": sentences, "outputs": sentences, **more}
        precision = "int8" if quantized else "float32"
        facts |= {"precision": precision, "differences": tuple(differences)}
        return Report(kind="TFLite", size=1, sentences=sentences, **facts)

    assert report(near=100, far=0, quantized=False).passed
    assert not report(near=0, far=1, quantized=False).passed
    follows = TextDifference(1, "a", "b")  # line 1 has other ids
    assert report(1, 0, False, text_differences=[follows]).passed
    assert not report(0, 0, False, text_differences=[follows]).passed
    assert not report(0, 0, False, faults=("It is too large.",)).passed
    assert not report(0, 0, False, outputs=49).passed
    assert not report(0, 0, False, endless=51).passed
    assert report(0, 0, False, outputs=50, endless=50).passed


@pytest.mark.parametrize(
    "facts, expected",
    [
        ({"endless": 60}, "does not translate.* 60 of 60 outputs never end"),
        ({"outputs": 2}, "does not translate.* 60 different sentences have 2"),
        ({"faults": ("It is too large.",)}, "x.tflite has faults: It is too large"),
        (
            {"differences": (Difference(1, 0, 1.0, "one"),)},
            "x.tflite translates differently from .*export it again",
        ),
    ],
)
def test_command_says_what_is_wrong(
    trained_file, tmp_path, monkeypatch, capsys, facts, expected
):
    counts = {"sentences": 60, "inputs": 60, "outputs": 60}
    report = Report(kind="TFLite", size=1, precision="float32", **counts | facts)
    monkeypatch.setattr(export, "verify", lambda *_: report)
    for name in ("x.tflite", "lines"):
        (tmp_path / name).write_text("one\n")
    arguments = [trained_file, tmp_path / "x.tflite", "--source", tmp_path / "lines"]
    assert cli.main(["verify", *map(str, arguments)]) == 1
    error = capsys.readouterr().err
    assert re.search(expected, error)
    assert ("translates differently" in error) == ("differently" in expected)


@pytest.mark.parametrize("name", ["saved_model.pb", "*/*.index", "*/*.data*"])
def test_damaged_folder_is_refused(trained_translator, saved_folder, tmp_path, name):
    folder = tmp_path / "damaged"
    shutil.copytree(saved_folder, folder)
    (path,) = folder.glob(name)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="damaged cannot be read, or is cut short"):
        export.verify(trained_translator, folder, ["one"])


def test_files_of_something_else_are_refused(trained_translator, tmp_path):
    module = tf.Module()
    module.run = tf.function(lambda x: x + 1, [tf.TensorSpec([2], tf.int32)])
    tf.saved_model.save(module, str(tmp_path / "folder"))
    path = tmp_path / "file.tflite"
    path.write_bytes(
        tf.lite.TFLiteConverter.from_concrete_functions(
            [module.run.get_concrete_function()], module
        ).convert()
    )
    with pytest.raises(ValueError, match="file.* has no description"):
        export.verify(trained_translator, path, ["one"])
    with pytest.raises(ValueError, match="folder.* no signature translate, translate"):
        export.verify(trained_translator, tmp_path / "folder", ["one"])


def test_folder_with_our_signatures_and_other_inputs_is_refused(
    trained_translator, tmp_path
):
    module = tf.Module()
    module.run = tf.function(lambda x: {"y": x}, [tf.TensorSpec([2], tf.float32)])
    names = ("translate", "translate_ids")
    tf.saved_model.save(module, str(tmp_path), {name: module.run for name in names})
    with pytest.raises(ValueError, match="cannot run on this translator's ids"):
        export.verify(trained_translator, tmp_path, ["one"])


@pytest.mark.full
def test_files_of_a_smaller_vocabulary_are_refused(trained_translator, tmp_path):
    tokenizer = trained_translator.tokenizer
    small = Tokenizer.train(lines=["abc def"] * 9, vocabulary_size=268)
    assert small.vocabulary_size < tokenizer.vocabulary_size - 20
    model = Transformer(
        small.vocabulary_size,
        d_model=8,
        num_heads=2,
        d_ff=4,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_length=60,
    )
    export.saved_model(Translator(small, model), tmp_path / "folder")
    settings = {"quantize": None, "form": "steps", "check": "structure"}
    export.tflite(Translator(small, model), tmp_path / "file.tflite", **settings)
    for name in ("folder", "file.tflite"):
        with pytest.raises(ValueError, match=f"{name} cannot run on this translator's"):
            export.verify(trained_translator, tmp_path / name, ["stone small large"])


def test_without_litert_it_says_what_to_install(
    trained_translator, float32_file, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(ImportError, match="pip install ai-edge-litert"):
        export.verify(trained_translator, float32_file, ["one"])

import math
import re
import shutil
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
@pytest.mark.parametrize("kind", ["TFLite", "SavedModel"])
def test_float32_file_passes_for_its_model_only(
    trained_translator, float32_file, saved_folder, unseen_sentences, kind
):
    path = float32_file if kind == "TFLite" else saved_folder
    texts = ["", *unseen_sentences, "Grüße"]
    report = export.verify(trained_translator, path, texts)
    assert report.passed and (report.kind, report.quantized) == (kind, False)
    assert report.sentences == report.equal + report.near_ties == 202
    assert report.text_differences == ()
    files = [path, *path.rglob("*")]
    assert report.size == sum(f.stat().st_size for f in files if f.is_file())
    assert f"{report.size:,} bytes: passed" in str(report)
    other = trained_translator.copy()
    random = np.random.default_rng(0)
    noisy = [w + random.normal(0, 0.1, w.shape) for w in other.model.get_weights()]
    other.model.set_weights(noisy)
    report = export.verify(other, path, unseen_sentences[:15])
    assert not report.passed and report.text_differences
    assert len(report.differences) > 5 and report.near_ties == 0


@pytest.fixture(scope="module")
def file_of_twin(trained_translator, tmp_path_factory):
    """It says a twin where the trained translator says "rood"."""
    path = tmp_path_factory.mktemp("twin") / "model.tflite"
    theirs, *_ = with_twin(trained_translator, "rood", 1 + 4e-6)
    export.tflite(theirs, path, quantize=None, **LENGTHS)
    return path


@pytest.mark.full
@pytest.mark.parametrize("step, near", [(4e-6, True), (1e-3, False)])
def test_each_difference_is_placed_and_measured(
    trained_translator, file_of_twin, step, near
):
    """Keras says one id where the file says its twin, by a known margin."""
    ours, original, twin = with_twin(trained_translator, "rood", 1 - step)
    texts = english_sentences(100, seed=5)
    report = export.verify(ours, file_of_twin, texts)
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
@pytest.mark.parametrize("search", [{}, {"beam_size": 3}], ids=str)
def test_shorter_outputs_are_compared_up_to_their_length(
    trained_translator, unseen_sentences, tmp_path, search
):
    path = tmp_path / "short.tflite"
    limits = {"max_length": 4, "check": "structure"}
    export.tflite(trained_translator, path, quantize=None, **limits, **search)
    report = export.verify(trained_translator, path, unseen_sentences[:40])
    assert report.passed and report.equal + report.near_ties == 40
    assert report.endless == 0 and 0 < report.inputs < 40  # those that are not cut


@pytest.mark.full
def test_ties_of_tokenizer_are_listed_and_pass(trained_translator, tmp_path):
    """Pieces score by their length, so that many segmentations score the same."""
    proto = sentencepiece_model.ModelProto.FromString(
        trained_translator.tokenizer.source_model
    )
    for piece in proto.pieces:
        if piece.type == piece.NORMAL:
            piece.score = -1.1 * len(piece.piece)
    tokenizer = Tokenizer(proto.SerializeToString())
    translator = Translator(tokenizer, trained_translator.model)
    texts = english_sentences(120, seed=6, lengths=[5])
    pairs = zip(tokenizer.encode(texts), tokenizer.source_graph(texts), strict=True)
    other = [n for n, (a, b) in enumerate(pairs, 1) if a != b.numpy().tolist()]
    export.saved_model(translator, tmp_path / "model")
    report = export.verify(translator, tmp_path / "model", texts)
    assert report.text_differences and report.passed
    assert all(each.tie and each.line in other for each in report.text_differences)
    assert "a tie of two segmentations" in str(report)


@pytest.mark.full
def test_another_segmentation_without_tie_does_not_pass(trained_translator, tmp_path):
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


@pytest.mark.parametrize(
    "gaps, facts, passed",
    [
        ([1e-4] * 100, {}, True),
        ([1.1e-4], {}, False),
        ([1e-4], {"text_differences": (TextDifference(1, "a", "b"),)}, True),
        ([], {"text_differences": (TextDifference(1, "a", "b"),)}, False),
        ([], {"text_differences": (TextDifference(1, "a", "b", tie=True),)}, True),
        ([], {"faults": ("It is too large.",)}, False),
        ([], {"outputs": 50, "endless": 50}, True),
        ([], {"outputs": 49}, False),
        ([], {"endless": 51}, False),
    ],
)
def test_float32_passes_with_near_ties_alone(gaps, facts, passed):
    differences = [Difference(n, 0, gap, "") for n, gap in enumerate(gaps, 1)]
    facts = {"inputs": 100, "outputs": 100, "differences": tuple(differences), **facts}
    report = Report(kind="TFLite", size=1, precision="float32", sentences=100, **facts)
    assert report.passed == passed


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
    module, ours = tf.Module(), ("translate", "translate_ids")
    module.run = tf.function(lambda x: {"y": x}, [tf.TensorSpec([2], tf.float32)])
    run = module.run.get_concrete_function()
    tf.saved_model.save(module, str(tmp_path / "folder"))
    tf.saved_model.save(module, str(tmp_path / "ours"), dict.fromkeys(ours, module.run))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([run], module)
    (tmp_path / "file.tflite").write_bytes(converter.convert())
    for name, pattern in {
        "file.tflite": "file.* has no description",
        "folder": "folder.* no signature translate",
        "ours": "ours cannot run on this translator's ids",
    }.items():
        with pytest.raises(ValueError, match=pattern):
            export.verify(trained_translator, tmp_path / name, ["one"])

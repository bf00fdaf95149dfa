"""SavedModels of TensorFlow's own operators; `sentencepiece` says what is right."""

import random
import subprocess
import sys

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from keras import ops
from once_per_run import made_once
from tensorflow.core.protobuf import saved_model_pb2
from tiers import in_full

from keras_vanilla import export
from keras_vanilla.export.to_saved_model import CoreOperators, CoreTokenizer
from keras_vanilla.tokenizer import Tokenizer

# This package cannot be imported there; tensorflow-text can be if it is named.
ELSEWHERE = """
import sys
sys.modules.update(keras_vanilla=None, sentencepiece=None, tensorflow_text=None)
import tensorflow as tf
if sys.argv[2]:
    del sys.modules["tensorflow_text"]
    import tensorflow_text
translate = tf.saved_model.load(sys.argv[1]).signatures["translate"]
result = translate(tf.constant(sys.argv[3:]))
print(*(text.decode() for text in result["text"].numpy()), sep="\\n")
print(*result["too_long"].numpy())
"""
FOREIGN_PREFIXES = "Xla", "Sentencepiece"  # beginnings of operators' names


@pytest.fixture(scope="module")
def core_folder(trained_translator, tmp_path_factory):
    def make(path):
        export.saved_model(trained_translator, path, core_operators=True)

    return made_once(tmp_path_factory, "core_model", make)


@pytest.fixture(scope="module", params=["trained here", *in_full("of many names")])
def tokenizer(request, trained_translator):
    if request.param == "trained here":
        return trained_translator.tokenizer
    names = random.Random(0).sample(request.getfixturevalue("all_names"), 20_000)
    return Tokenizer.train(lines=names, vocabulary_size=4000)


@pytest.fixture(scope="module")
def in_graph(tokenizer):
    """Both directions, each traced once."""
    core, texts = CoreTokenizer(tokenizer, max_ids=60), tf.TensorSpec([None], tf.string)
    return tf.function(core.source_graph, [texts]), tf.function(core.detokenize_graph)


def fuzzed(count, seed):
    """Texts of characters from anywhere, white space and control characters too."""
    rng = random.Random(seed)
    ranges = [(1, 0x7F), (0x80, 0x2FF), (0x300, 0x2FFF), (0x3000, 0xD7FF)]
    ranges += [(0xE000, 0xFFFF), (0x1F300, 0x1FAFF), (0x10000, 0x10FFFF)]
    for _ in range(count):
        chosen = rng.choices(ranges, weights=[8, 3, 2, 2, 1, 1, 1], k=rng.randrange(40))
        yield "".join(chr(rng.randint(*limits)) for limits in chosen)


@pytest.mark.parametrize("count", [100, *in_full(1500)])
def test_ids_are_those_of_sentencepiece(tokenizer, in_graph, unseen_sentences, count):
    odd = ["", " ", "  two   spaces ", "\ttab\n", "🙂🙃", "a\u0301", "ﷺ", "▁▁x", "a\0b"]
    texts = [*unseen_sentences[:50], *odd, *fuzzed(count, seed=1)]
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    rows = in_graph[0](tf.constant(texts)).to_list()
    for text, row, expected in zip(texts, rows, peer.encode(texts), strict=True):
        assert row == [*expected, tokenizer.end_id], repr(text)


def test_strings_are_those_that_tokenizer_decodes(
    tokenizer, in_graph, unseen_sentences
):
    rows = [row[:59] for row in tokenizer.encode_target(unseen_sentences[:50])]
    length = max(map(len, rows))
    ids = np.array([row + [tokenizer.pad_id] * (length - len(row)) for row in rows])
    texts = in_graph[1](ids.astype("int32"))
    assert [text.decode() for text in texts.numpy()] == tokenizer.decode(rows)


@pytest.mark.full
def test_translations_are_keras_s(trained_translator, core_folder, unseen_sentences):
    import tensorflow_text  # noqa: F401  `verify` reads the other form too

    report = export.verify(trained_translator, core_folder, unseen_sentences[:60])
    assert report.passed and not report.differences, str(report)


def test_core_folder_has_tensorflow_operators_only(core_folder):
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((core_folder / "saved_model.pb").read_bytes())
    graph = saved.meta_graphs[0].graph_def
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    operators = {node.op for node in nodes}
    assert {"While", "DecodeRaw"} <= operators or {"StatelessWhile"} <= operators
    assert not [name for name in operators if name.startswith(FOREIGN_PREFIXES)]


@pytest.mark.full
@pytest.mark.parametrize(
    "folder, needed", [("core_folder", ""), ("saved_folder", "tensorflow_text")]
)
def test_folder_runs_without_this_package(
    trained_translator, unseen_sentences, tmp_path, request, folder, needed
):
    texts = [*unseen_sentences[:5], "", "one " * 60]
    folder = request.getfixturevalue(folder)
    result = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, folder, needed, *texts],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    *translations, too_long = result.stdout.splitlines()
    assert translations == [*trained_translator.translate(texts[:-1]), ""]
    assert too_long.split() == ["False"] * 6 + ["True"]


@pytest.mark.parametrize(
    ("start", "shape"),
    [((0, 2, 0), (2, 1, 4)), ((0, 0, 3), (2, 3, 1)), ((0, 0, 0), (2, 3, 4))],
)
def test_slices_are_written_as_keras_writes_them(start, shape):
    values, updates = np.arange(24.0).reshape(2, 3, 4), -np.ones(shape)
    written = CoreOperators().slice_update(values, start, updates)
    expected = ops.slice_update(values, start, updates)
    np.testing.assert_array_equal(written, expected)


def test_slices_along_two_axes_are_refused():
    with pytest.raises(NotImplementedError, match=r"\[0, 1\]"):
        CoreOperators().slice_update(np.zeros((2, 2)), (1, 1), np.ones((1, 1)))

"""Int8 files whose operators older runtimes have: the same results from older parts."""

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import export
from keras_vanilla.export.checks.structure import structure_faults
from keras_vanilla.export.conversion import convert
from keras_vanilla.export.metadata.flatbuffer import packed
from keras_vanilla.export.older_runtimes import oldest_runtime

IDS = np.array([[7, 0, 16, 7]], "int32")


class Lookup(tf.Module):
    """A table's rows, these times a matrix with a bias, and times the table."""

    encoder_layers = decoder_layers = ()
    output_projection = None

    def __init__(self):
        super().__init__()
        draw = np.random.default_rng(0)
        scales = draw.uniform(0.01, 9, (97, 1))  # of rows of very different size
        self.table = tf.Variable(scales * draw.normal(size=(97, 32)), dtype="float32")
        self.kernel = tf.Variable(draw.normal(size=(32, 61)), dtype="float32")
        self.bias = tf.Variable(draw.normal(size=61), dtype="float32")
        self.source_embedding = self.target_embedding = _Table()

    def signatures(self):
        spec = tf.TensorSpec(IDS.shape, tf.int32, name="ids")
        return {"run": tf.function(self._run, [spec], autograph=False)}

    def _run(self, ids):
        rows = self.source_embedding.lookup(self.table, ids)
        hidden = tf.nn.relu(tf.matmul(rows, self.kernel) + self.bias)
        return {
            "rows": rows,
            "hidden": hidden,
            "logits": tf.matmul(rows, self.table, transpose_b=True),
        }


class _Table:
    lookup = None


@pytest.fixture(scope="module")
def contents():
    module = Lookup()
    files = {
        oldest: convert(module, module, "int8", oldest) for oldest in ("2.13", "2.17")
    }
    return {"float32": convert(module, module), **files}


def outputs(content):
    runner = Interpreter(model_content=content).get_signature_runner("run")
    return runner(ids=IDS)


def versions(content):
    """The versions of the operators, by their names."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    return {names[code.builtinCode]: code.version for code in model.operatorCodes}


def test_the_results_are_those_of_int8_and_near_those_of_float32(contents):
    expected, newer, older = (
        outputs(contents[name]) for name in ("float32", "2.17", "2.13")
    )
    for name, value in expected.items():
        np.testing.assert_allclose(newer[name], older[name], rtol=1e-6)
        error = np.abs(older[name] - value).max(-1)
        assert (error <= 0.02 * np.abs(value).max(-1)).all() and error.any()
    assert (older["hidden"] == 0).any() and (older["hidden"] >= 0).all()


def test_no_operator_is_newer_than_stated(contents):
    for name, oldest, lookup, product in [
        ("2.17", "2.17", 3, 12),
        ("2.13", "2.13", 3, 9),
    ]:
        assert oldest_runtime(contents[name]) == oldest
        received = versions(contents[name])
        assert (received["EMBEDDING_LOOKUP"], received["FULLY_CONNECTED"]) == (
            lookup,
            product,
        )
    assert oldest_runtime(contents["float32"]) == "2.13"


def test_an_operator_that_is_not_known_states_nothing(contents):
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(contents["2.13"], 0))
    model.operatorCodes[0].version = 99
    assert oldest_runtime(packed(model)) is None


def test_each_matrix_is_in_the_file_once(contents):
    matrices = 97 * 32 + 32 * 61
    for name in ("2.17", "2.13"):
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(contents[name], 0))
        sizes = [len(b.data) for b in model.buffers if b.data is not None]
        assert sum(size for size in sizes if size > 1024) == matrices


def test_an_exported_file_states_its_runtime(int8_file):
    assert oldest_runtime(int8_file.read_bytes()) == "2.17"
    assert export.read_description(int8_file).oldest_runtime == "2.17"


@pytest.mark.full
def test_a_beam_needs_no_newer_runtime(trained_translator, tmp_path):
    """If it does: tests/benchmarks/old_runtimes.py tells which operator."""
    path = tmp_path / "beam.tflite"
    export.tflite(trained_translator, path, beam_size=4, check="structure")
    assert export.read_description(path).oldest_runtime == "2.17"


@pytest.mark.full
def test_a_translator_for_2_13_says_what_that_for_2_17_says(
    trained_translator, int8_file, unseen_sentences, tmp_path
):
    path = tmp_path / "older.tflite"
    limits = {"form": "ids", "max_source_length": 29, "max_length": 59}
    export.tflite(trained_translator, path, oldest_runtime="2.13", **limits)
    assert export.read_description(path).oldest_runtime == "2.13"
    assert structure_faults(path.read_bytes(), trained_translator.model) == []
    reports = [
        export.verify(trained_translator, file, unseen_sentences)
        for file in (path, int8_file)
    ]
    assert reports[0].equal == reports[1].equal


def test_a_runtime_that_is_not_known_is_refused(trained_translator, tmp_path):
    with pytest.raises(ValueError, match="oldest_runtime.*Received: '2.12'"):
        export.tflite(trained_translator, tmp_path / "x.tflite", oldest_runtime="2.12")
    with pytest.raises(ValueError, match="int8 or float32. Received: quantize='int4'"):
        export.tflite(
            trained_translator, tmp_path / "x.tflite", "int4", oldest_runtime="2.13"
        )

"""Int8 files whose operators TensorFlow Lite 2.17 has: the same results."""

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import export
from keras_vanilla._operators import current_operators
from keras_vanilla.export import conversion
from keras_vanilla.export.conversion import convert
from keras_vanilla.export.metadata.flatbuffer import packed, unpacked
from keras_vanilla.export.older_runtimes import oldest_runtime

IDS = np.array([[7, 0, 16, 7]], "int32")


class Lookup(tf.Module):
    """A table's rows, these times a matrix with a bias, and times the table."""

    encoder_layers = decoder_layers = ()

    def __init__(self):
        super().__init__()
        draw = np.random.default_rng(0)
        scales = draw.uniform(0.01, 9, (97, 1))  # of rows of very different size
        self.table = tf.Variable(scales * draw.normal(size=(97, 32)), dtype="float32")
        self.kernel = tf.Variable(draw.normal(size=(32, 61)), dtype="float32")
        self.bias = tf.Variable(draw.normal(size=61), dtype="float32")

    def signatures(self):
        spec = tf.TensorSpec(IDS.shape, tf.int32, name="ids")
        return {"run": tf.function(self._run, [spec], autograph=False)}

    def _run(self, ids):
        rows = current_operators().lookup(self.table, ids)
        hidden = tf.nn.relu(tf.matmul(rows, self.kernel) + self.bias)
        return {
            "rows": rows,
            "hidden": hidden,
            "logits": tf.matmul(rows, self.table, transpose_b=True),
        }


@pytest.fixture(scope="module")
def files():
    module = Lookup()
    return {name: convert(module, module, name) for name in (None, "int8")}


def outputs(file):
    runner = Interpreter(model_content=packed(file)).get_signature_runner("run")
    return runner(ids=IDS)


def versions(file):
    """The versions of the operators, by their names."""
    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    return {names[code.builtinCode]: code.version for code in file.operatorCodes}


@pytest.mark.full
def test_the_results_are_those_of_int8_and_near_those_of_float32(files, monkeypatch):
    expected, int8 = (outputs(files[name]) for name in (None, "int8"))
    with monkeypatch.context() as patch:
        patch.setattr(conversion, "replace_lookups", lambda file: None)
        module = Lookup()
        as_converted = outputs(convert(module, module, "int8"))
    for name, value in expected.items():
        np.testing.assert_allclose(int8[name], as_converted[name], rtol=1e-6)
        error = np.abs(int8[name] - value).max(-1)
        assert (error <= 0.02 * np.abs(value).max(-1)).all() and error.any()


def test_no_operator_is_newer_than_stated(files):
    assert oldest_runtime(files["int8"]) == "2.17"
    received = versions(files["int8"])
    assert (received["EMBEDDING_LOOKUP"], received["FULLY_CONNECTED"]) == (3, 12)
    assert oldest_runtime(files[None]) == "2.13"


def test_an_operator_that_is_not_known_states_nothing(files):
    newer = unpacked(packed(files["int8"]))
    newer.operatorCodes[0].version = 99
    assert oldest_runtime(newer) is None


def test_each_matrix_is_in_the_file_once(files):
    matrices = 97 * 32 + 32 * 61
    sizes = [
        len(b.data)
        for b in unpacked(packed(files["int8"])).buffers
        if b.data is not None
    ]
    assert sum(size for size in sizes if size > 1024) == matrices


def test_an_exported_file_states_its_runtime(int8_file):
    assert oldest_runtime(unpacked(int8_file.read_bytes())) == "2.17"
    assert export.read_description(int8_file).oldest_runtime == "2.17"

"""The numbers in int4 and int8 files, read by NumPy from the files themselves."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from text_form import TextForm

from keras_vanilla import export
from keras_vanilla.export.conversion import round_matrices
from keras_vanilla.export.metadata.flatbuffer import packed, unpacked
from keras_vanilla.models import fake_quantize
from keras_vanilla.models.fake_quantization import rounded

LARGEST = {"int4": 7, "int8": 127}
FILES = {"int4": "int4_file", "int8": "text_file"}
LIMITS = {"max_bytes": 160, "max_source_length": 29, "max_length": 59}
PRODUCT = schema.BuiltinOperator.FULLY_CONNECTED
WHOLE = np.arange(31 * 37).reshape(31, 37) % 15 - 7
SCALES = np.float32(2) ** (np.arange(31) % 4)
BETWEEN = np.where(np.abs(WHOLE) < 7, 0.4 * (WHOLE % 3 - 1), 0)  # rounded away
MATRIX = ((WHOLE + BETWEEN) * SCALES[:, None]).astype("float32")


def matrices(model):
    """The whole numbers (F, D) and scales (F,) of each quantised matrix of a file."""
    tensors = {
        tensor.buffer: tensor
        for graph in model.subgraphs
        for tensor in graph.tensors
        if tensor.type in (schema.TensorType.INT4, schema.TensorType.INT8)
        and model.buffers[tensor.buffer].data is not None
        and tensor.quantization.scale is not None
    }
    for number, tensor in tensors.items():
        octets = np.asarray(model.buffers[number].data, "uint8")
        if tensor.type == schema.TensorType.INT4:
            halves = np.stack([octets & 15, octets >> 4], axis=1).reshape(-1)
            whole = (halves[: np.prod(tensor.shape)] ^ 8).astype("int8") - 8
        else:
            whole = octets.view("int8")
        assert not np.any(tensor.quantization.zeroPoint)
        yield whole.reshape(tensor.shape), tensor.quantization.scale


def matrices_of(model):
    """The model's matrices, in float32, an output a row; tables as they are."""
    for weight in model.weights:
        values = np.asarray(weight)
        if weight.path.endswith("embeddings"):
            yield values
        elif weight.name == "kernel":
            joins_heads = weight.path.endswith("attention_output/kernel")
            inputs = values.shape[:2] if joins_heads else values.shape[:1]
            yield values.reshape(np.prod(inputs), -1).T


def rows(whole):
    return {row.tobytes() for row in whole.astype("int8")}


@pytest.fixture(scope="module")
def int4_file(trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("int4") / "int4.tflite"
    settings = {"quantize": "int4", "check": "structure", **LIMITS}
    export.tflite(trained_translator, path, **settings)
    return path


@pytest.mark.full
@pytest.mark.parametrize("mode", LARGEST)
def test_numbers_are_those_that_keras_rounds_to(trained_translator, request, mode):
    """However the matrices are arranged: each output's row is compared."""
    file = unpacked(request.getfixturevalue(FILES[mode]).read_bytes())
    in_file, in_keras, quotients = set(), set(), {}
    for whole, _ in matrices(file):
        in_file |= rows(whole)
    for matrix in matrices_of(trained_translator.model):
        whole, _ = rounded(matrix, -1, LARGEST[mode])
        in_keras |= rows(np.asarray(whole))
        matrix = matrix.astype("float64")
        exact = matrix * LARGEST[mode] / np.abs(matrix).max(axis=1, keepdims=True)
        quotients |= {np.rint(row).astype("int8").tobytes(): row for row in exact}
    assert len(in_file) > 1000
    for found in (in_file, in_keras):
        assert len(found) == len(quotients)
        others = [quotients[row] for row in quotients.keys() - found]
        for row in found - quotients.keys():
            assert any(is_rounding_of(row, other) for other in others)


def is_rounding_of(row, quotients):
    """Whether a row is rounded, a half in float32 to either side."""
    whole = np.frombuffer(row, "int8")
    return len(whole) == len(quotients) and np.all(
        np.abs(whole - quotients) <= 0.5 + 1e-4
    )


@pytest.mark.full
def test_int4_file_is_small_and_verified(trained_translator, int4_file):
    sizes = [whole.size for whole, _ in matrices(unpacked(int4_file.read_bytes()))]
    table = trained_translator.model.source_embedding.embeddings
    assert sizes.count(np.prod(table.shape)) == 1
    assert sum(sizes) > 0.98 * trained_translator.model.count_params()
    assert int4_file.stat().st_size < 0.5 * sum(sizes) + 800_000
    texts = ["one two three", "red house", "small green tree river"]
    report = export.verify(trained_translator, int4_file, texts)
    assert report.passed and str(report).startswith("TFLite, int4, ")
    assert export.read_description(int4_file).quantize == "int4"


@pytest.mark.full
@pytest.mark.parametrize("mode", LARGEST)
def test_file_translates_as_keras_with_same_roundings(
    trained_translator, unseen_sentences, request, mode
):
    translate = TextForm(request.getfixturevalue(FILES[mode]))
    texts = unseen_sentences[:170]
    simulated = trained_translator.copy()
    fake_quantize(simulated.model, mode)
    received = [translate(text)["text"] for text in texts]
    equal = sum(map(str.__eq__, received, simulated.translate(texts)))
    assert equal >= 0.99 * len(texts)


def test_matrix_of_product_has_scale_for_each_output():
    ((whole, scale),) = matrices(in_int4([PRODUCT]))
    np.testing.assert_array_equal(whole, WHOLE)
    np.testing.assert_array_equal(scale, SCALES)


def test_matrix_of_another_operator_is_not_rounded():
    assert not list(matrices(in_int4([PRODUCT, schema.BuiltinOperator.TRANSPOSE])))


def test_equal_scales_are_stored_once():
    files = in_int4([PRODUCT]), in_int4([PRODUCT, PRODUCT])
    sizes = [len(packed(file)) for file in files]
    assert sizes[1] - sizes[0] < 12 * len(MATRIX)


def in_int4(operators):
    """A rounded file of operators, each with a tensor of its own of one matrix."""
    graph = schema.SubGraphT(tensors=[], operators=[], inputs=[], outputs=[])
    model = schema.ModelT(version=3, operatorCodes=[], subgraphs=[graph])
    data = np.frombuffer(MATRIX.tobytes(), "uint8")
    model.buffers = [schema.BufferT(), schema.BufferT(data=data)]
    for place, code in enumerate(operators):
        x = schema.TensorT(shape=np.array([1, 37], "int32"), buffer=0)
        shape = np.array(MATRIX.shape, "int32")
        graph.tensors += [x, schema.TensorT(shape=shape, buffer=1)]
        model.operatorCodes.append(schema.OperatorCodeT(builtinCode=code))
        options = schema.FullyConnectedOptionsT()
        graph.operators.append(
            schema.OperatorT(
                opcodeIndex=place,
                inputs=np.array([2 * place, 2 * place + 1, -1], "int32"),
                outputs=np.array([2 * place], "int32"),
                builtinOptionsType=schema.BuiltinOptions.FullyConnectedOptions,
                builtinOptions=options,
            )
        )
    round_matrices(model, "int4")
    return model


@pytest.mark.full
def test_matrices_are_rounded_as_by_tensorflow(text_file, int8_file_on_jax):
    files = [unpacked(path.read_bytes()) for path in (text_file, int8_file_on_jax)]
    expected, received = ([whole for whole, _ in matrices(file)] for file in files)
    assert len(received) == len(expected) > 5
    for whole in received:
        others = [other for other in expected if other.shape == whole.shape]
        assert min(np.mean(whole != other) for other in others) < 1e-3

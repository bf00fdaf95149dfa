"""Matrices that a file stores twice or does not round, and outputs of loops."""

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiers import in_full

from keras_vanilla.export.conversion import structure_faults
from keras_vanilla.export.metadata.flatbuffer import unpacked

FILES = {"text_file": "int8", "float32_file": None}
AROUND = 700_000  # bytes of the tokenizer's tables and of the graph


@pytest.fixture(params=["text_file", *in_full("float32_file")])
def file(request):
    """The tables of a file, and how it is quantised."""
    content = request.getfixturevalue(request.param).read_bytes()
    return unpacked(content), FILES[request.param]


def table_of(file, translator):
    """The tensor of the embeddings, and their bytes."""
    shape = translator.model.source_embedding.embeddings.shape
    for tensor in file.subgraphs[0].tensors:
        data = file.buffers[tensor.buffer].data
        if data is not None and tuple(tensor.shape) == shape:
            return tensor, data


def add_table(file, tensor, data):
    file.subgraphs[0].tensors.append(
        schema.TensorT(shape=tensor.shape, buffer=len(file.buffers))
    )
    file.buffers.append(schema.BufferT(data=data))


def test_exported_files_have_no_fault(file, trained_translator, request):
    tables, quantize = file
    assert structure_faults(tables, trained_translator.model, quantize) == []
    weights = trained_translator.model.count_params() * (1.1 if quantize else 4.1)
    sizes = [len(b.data) for b in tables.buffers if b.data is not None]
    assert weights / 1.2 < sum(sizes) < weights + AROUND


def test_matrix_stored_twice_is_fault(file, trained_translator):
    tables, quantize = file
    tensor, data = table_of(tables, trained_translator)
    add_table(tables, tensor, data)
    (fault,) = structure_faults(tables, trained_translator.model, quantize)
    size = np.prod(tensor.shape)
    assert f"{size:,} numbers take {2 * len(data):,} bytes" in fault


@pytest.mark.parametrize("replaced", [False, True])
def test_matrix_in_float32_is_fault_in_int8_file(
    text_file, trained_translator, replaced
):
    tables = unpacked(text_file.read_bytes())
    tensor, data = table_of(tables, trained_translator)
    larger = np.zeros(4 * len(data), "uint8")
    if replaced:
        tables.buffers[tensor.buffer].data = larger
    else:
        add_table(tables, tensor, larger)
    assert structure_faults(tables, trained_translator.model, "int8")
    assert not replaced or not structure_faults(tables, trained_translator.model, None)


def test_no_output_is_result_of_loop(file):
    """Compiled models of LiteRT and LiteRT.js cannot read such outputs."""
    tables, _ = file
    codes = [code.builtinCode for code in tables.operatorCodes]
    (signature,) = tables.signatureDefs
    of_loops = {
        index
        for operator in tables.subgraphs[signature.subgraphIndex].operators
        if codes[operator.opcodeIndex] == schema.BuiltinOperator.WHILE
        for index in operator.outputs
    }
    assert of_loops
    assert of_loops.isdisjoint(output.tensorIndex for output in signature.outputs)

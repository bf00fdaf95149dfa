"""Matrices that a file stores twice, its size, and outputs of loops."""

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


def test_exported_files_have_no_fault(file, trained_translator):
    tables, quantize = file
    assert structure_faults(tables, trained_translator.model) == []
    weights = trained_translator.model.count_params() * (1.1 if quantize else 4.1)
    sizes = [len(b.data) for b in tables.buffers if b.data is not None]
    assert weights / 1.2 < sum(sizes) < weights + AROUND


def test_matrix_stored_twice_is_fault(file, trained_translator):
    tables, _ = file
    shape = trained_translator.model.source_embedding.embeddings.shape
    size = np.prod(shape)
    tensor = schema.TensorT(shape=np.array(shape), buffer=len(tables.buffers))
    tables.subgraphs[0].tensors.append(tensor)
    tables.buffers.append(schema.BufferT(data=np.zeros(4 * size, "uint8")))
    (fault,) = structure_faults(tables, trained_translator.model)
    assert f"of {size:,} numbers are in the file 2 times, and in the model 1" in fault


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

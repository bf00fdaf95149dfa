"""Faults in how a file is made are seen: each is put in on purpose."""

import re

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tiers import in_full

from keras_vanilla.export.checks.structure import structure_faults
from keras_vanilla.export.metadata.flatbuffer import packed, unpacked
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph


def faults(content, translator, change=None, tables=None):
    """Those of a file, with a change to its tables."""
    if tables is None:
        tables = TokenizerGraph(translator.tokenizer).nbytes
    file = unpacked(content)
    if change is not None:
        change(file)
        content = packed(file)
    file, types = unpacked(content), {t.type for g in file.subgraphs for t in g.tensors}
    quantize = "int8" if schema.TensorType.INT8 in types else None
    return structure_faults(file, len(content), translator.model, quantize, tables)


def matrices(model):
    """The constant matrices' tensors, the largest first."""
    found = {
        tensor.buffer: tensor
        for graph in model.subgraphs
        for tensor in graph.tensors
        if tensor.shape is not None
        and len(tensor.shape) == 2
        and model.buffers[tensor.buffer].data is not None
    }
    return sorted(found.values(), key=lambda tensor: -np.prod(tensor.shape))


def add_tensor(model, shape, data):
    tensor = schema.TensorT()
    tensor.shape, tensor.buffer = np.array(shape, "int32"), len(model.buffers)
    model.buffers.append(schema.BufferT())
    model.buffers[-1].data = data
    model.subgraphs[0].tensors.append(tensor)


@pytest.fixture(params=["text_file", *in_full("float32_file")])
def content(request):
    return request.getfixturevalue(request.param).read_bytes()


def test_exported_files_have_no_fault(content, trained_translator):
    assert faults(content, trained_translator) == []
    assert faults(content, trained_translator, lambda model: None) == []


def test_weight_that_is_stored_twice_is_found(content, trained_translator):
    def double(model):
        table = matrices(model)[0]
        add_tensor(model, table.shape, model.buffers[table.buffer].data)

    size = trained_translator.model.source_embedding.embeddings.shape
    (first, *_) = faults(content, trained_translator, double)
    assert f"Matrices of {np.prod(size):,} numbers are in the file 2 times" in first


def test_table_in_float32_beside_int8_is_found(text_file, trained_translator):
    def keep(model):
        table = matrices(model)[0]
        add_tensor(model, table.shape, np.zeros(4 * np.prod(table.shape), "uint8"))

    found = faults(text_file.read_bytes(), trained_translator, keep)
    assert "2 times, and in the model 1 times" in found[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda model: add_tensor(model, [700, 1, 1000], np.zeros(700_000, "uint8")),
        lambda model: setattr(model, "description", "x" * 1_000_000),
        lambda model: None,
    ],
    ids=["constant", "text", "tables of no tokenizer"],
)
def test_bytes_of_nothing_known_are_found(content, trained_translator, change, request):
    tables = 0 if "tables" in request.node.name else None
    (found,) = faults(content, trained_translator, change, tables)
    assert re.fullmatch(r"It has [\d,]+ bytes, more than [\d,]+\.", found)


def test_output_that_is_a_loops_result_is_found(content, trained_translator):
    loop = {}

    def give_the_loops_own(model):
        (signature,) = model.signatureDefs
        codes = [code.builtinCode for code in model.operatorCodes]
        whiles = [
            operator
            for operator in model.subgraphs[signature.subgraphIndex].operators
            if codes[operator.opcodeIndex] == schema.BuiltinOperator.WHILE
        ]
        signature.outputs[0].tensorIndex = whiles[-1].outputs[0]
        loop["name"] = signature.outputs[0].name.decode()

    (found,) = faults(content, trained_translator, give_the_loops_own)
    assert f"The output {loop['name']!r} is the result of a loop" in found

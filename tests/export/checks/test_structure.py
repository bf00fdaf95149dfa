"""Faults in how a file is made are seen: each is put in on purpose."""

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
    return structure_faults(unpacked(content), len(content), translator.model, tables)


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


def test_files_that_are_made_well_have_no_fault(content, trained_translator):
    assert faults(content, trained_translator) == []
    assert faults(content, trained_translator, lambda model: None) == []


def test_a_weight_that_is_there_twice_is_found(content, trained_translator):
    def double(model):
        table = matrices(model)[0]
        add_tensor(model, table.shape, model.buffers[table.buffer].data)

    size = trained_translator.model.source_embedding.embeddings.shape
    (first, *_) = faults(content, trained_translator, double)
    assert f"Matrices of {np.prod(size):,} numbers are in the file 2 times" in first


def test_a_table_in_float32_beside_int8_is_found(text_file, trained_translator):
    def keep(model):
        table = matrices(model)[0]
        add_tensor(model, table.shape, np.zeros(4 * np.prod(table.shape), "uint8"))

    found = faults(text_file.read_bytes(), trained_translator, keep)
    assert "2 times, and in the model 1 times" in found[0]
    assert "Its constants are" in found[1]


def test_constants_that_are_no_weight_are_found(content, trained_translator):
    def add(model):
        add_tensor(model, [700, 1, 1000], np.zeros(700_000, "uint8"))

    (found,) = faults(content, trained_translator, add)
    assert "Its constants are" in found and "more than" in found


def test_an_output_that_is_the_result_of_a_loop_is_found(content, trained_translator):
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


def test_much_that_is_no_constant_is_found(content, trained_translator):
    def talk(model):
        model.description = "x" * 1_000_000

    (found,) = faults(content, trained_translator, talk)
    assert "All that is not a constant takes 1," in found and "2 layers" in found


@pytest.mark.full
def test_tables_of_tokenizer_are_counted(content, trained_translator):
    (fault,) = faults(content, trained_translator, tables=0)
    assert "Its constants are" in fault

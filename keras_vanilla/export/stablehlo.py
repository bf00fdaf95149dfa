"""Forms to `.tflite` files through JAX and StableHLO, without TensorFlow."""

from collections.abc import Iterator
from typing import Any

import jax
from ai_edge_litert import schema_py_generated as schema
from jax import numpy as jnp
from keras import ops
from litert_converter import converter_api_ext as converter
from litert_converter.mlir import ir, passmanager
from litert_converter.mlir.dialects import func

from keras_vanilla._checks import first_line
from keras_vanilla._operators import use_operators
from keras_vanilla._types import Tensor
from keras_vanilla.export.conversion import not_builtin, round_matrices
from keras_vanilla.export.fused_projections import FusedProjections
from keras_vanilla.export.metadata.flatbuffer import unpacked
from keras_vanilla.models.transformer import Transformer

CONSTANTS = ("arith.constant", "tfl.pseudo_const", "tfl.no_value")


class StablehloOperators(FusedProjections):
    """Operators that StableHLO has and LiteRT runs; all shapes are fixed.

    Args:
        model: Transformer that computes in float32.
    """

    def gather(self, values: Tensor, indices: Tensor) -> Tensor:
        # Other modes check each index. What follows the count of a row may be negative,
        # which this mode clips in JAX, but not in the GATHER_ND that it becomes.
        indices = jnp.maximum(indices, 0)
        return jnp.take(jnp.asarray(values), indices, axis=0, mode="clip")

    def lookup(self, table: Tensor, ids: Tensor) -> Tensor:
        # The converter turns this name into EMBEDDING_LOOKUP.
        lookup = jax.lax.composite(
            lambda ids, table: self.gather(table, ids), "odml.embedding_lookup"
        )
        rows = lookup(ops.reshape(ids, (-1,)), ops.convert_to_tensor(table))
        return ops.reshape(rows, (*ids.shape, rows.shape[-1]))

    def sort(self, values: Tensor) -> Tensor:
        # LiteRT lacks STABLEHLO_SORT, which a `top_k` becomes whose indices are unused.
        order = ops.top_k(-values, k=values.shape[-1])[1]
        return ops.take_along_axis(values, order, axis=-1)


def convert_form(form: Any, model: Transformer, quantize: str | None) -> schema.ModelT:
    """Converts a form on JAX, see `conversion.convert`."""
    context = ir.Context()
    converter.prepare_mlir_context(context)
    with context, use_operators(StablehloOperators(model)):
        signatures = form.signatures().items()
        modules = [_lowered(name, *signature) for name, signature in signatures]
        module = converter.merge_modules(modules)  # weights are stored once
        passes, config = passmanager.PassManager(), converter.ConvertToTFLConfig()
        try:
            converter.run_convert_to_tfl_passes(module, passes, config)
        except ValueError as error:
            raise RuntimeError(
                f"LiteRT cannot convert the model: {first_line(error)}"
            ) from error
        _outline_loops(module)
        names = sorted({operation.name for operation in _operations(module.body)})
        if others := [n for n in names if n.startswith(("stablehlo.", "chlo."))]:
            raise RuntimeError(not_builtin(others))
        file = unpacked(converter.export_flatbuffer_to_bytes(module.operation))
    if quantize:
        round_matrices(file, quantize)
    return file


def _lowered(name, function, inputs):
    """A signature as a module of StableHLO."""
    inputs = {n: jax.ShapeDtypeStruct(x.shape, x.dtype) for n, x in inputs.items()}
    lowered = jax.jit(lambda inputs: function(**inputs), keep_unused=True).lower(inputs)
    module = ir.Module.parse(lowered.as_text(dialect="stablehlo"))
    main = ir.SymbolTable(module.operation)["main"]
    main.attributes["sym_name"] = ir.StringAttr.get(name)
    names = sorted(inputs), sorted(lowered.out_info)  # JAX sorts the keys of a dict
    converter.set_signature(main.operation, name, *names)
    return module


def _outline_loops(module):
    """Moves the condition and the body of each loop into functions.

    A flatbuffer needs them as subgraphs. The converter's library has the pass
    `tfl-while-loop-outline` for it, but does not register it.
    """
    loops = [each for each in _operations(module.body) if each.name == "tfl.while"]
    for number, loop in enumerate(reversed(loops)):  # inner loops first
        blocks = [region.blocks[0] for region in loop.regions]
        captured = list(dict.fromkeys(v for block in blocks for v in _captured(block)))
        operands = [*loop.operands, *captured]
        types = [value.type for value in operands]
        with loop.location:
            names = [
                _as_function(module, block, types, captured, f"loop_{number}_{part}")
                for block, part in zip(blocks, ("condition", "body"), strict=True)
            ]
            outlined = _loop_of_functions(loop, operands, types, names)
        for old, new in zip(loop.results, outlined.results, strict=False):
            old.replace_all_uses_with(new)
        loop.erase()


def _operations(block) -> Iterator[ir.Operation]:
    """All operations of a block, those of inner blocks after the one they are in."""
    for operation in block.operations:
        yield operation.operation
        for region in operation.regions:
            for inner in region.blocks:
                yield from _operations(inner)


def _captured(block):
    """The values from outside that a block uses; constants are copied into it."""
    operations, constants = list(_operations(block)), {}
    own = {*block.arguments}
    for operation in operations:
        own.update(operation.results)
        for region in operation.regions:
            own.update(x for inner in region.blocks for x in inner.arguments)
    for operation in operations:
        for index, value in enumerate(operation.operands):
            if value in own:
                continue
            if getattr(value.owner, "name", None) not in CONSTANTS:
                yield value
                continue
            if value not in constants:
                with ir.InsertionPoint.at_block_begin(block):
                    constants[value] = value.owner.clone().operation.results[0]
            operation.operands[index] = constants[value]


def _as_function(module, block, types, captured, name):
    """Moves a block of a loop into a function; returns the function's name."""
    is_body = name.endswith("body")
    arguments = [block.add_argument(x.type, ir.Location.current) for x in captured]
    for operation in _operations(block):
        for index, value in enumerate(operation.operands):
            if value in captured:
                operation.operands[index] = arguments[captured.index(value)]
    end = block.operations[len(block.operations) - 1].operation
    results = [*end.operands, *(arguments if is_body else [])]
    end.erase()
    with ir.InsertionPoint(block):
        func.ReturnOp(results)
    with ir.InsertionPoint(module.body):
        of_types = types, [value.type for value in results]
        function = func.FuncOp(name, of_types, visibility="private")
    block.append_to(function.regions[0])
    return name


def _loop_of_functions(loop, operands, types, names):
    """Creates a loop before another one, whose regions call functions."""
    with ir.InsertionPoint(loop):
        outlined = ir.Operation.create(
            "tfl.while",
            results=types,
            operands=operands,
            attributes={"is_stateless": ir.BoolAttr.get(False)},
            regions=2,
        )
    of_condition = [ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))]
    for region, name, results in zip(
        outlined.regions, names, (of_condition, types), strict=True
    ):
        block = region.blocks.append(
            *types, arg_locs=[ir.Location.current] * len(types)
        )
        with ir.InsertionPoint(block):
            call = func.CallOp(results, name, list(block.arguments))
            ir.Operation.create("tfl.yield", operands=list(call.operation.results))
    return outlined

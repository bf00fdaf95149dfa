"""Converts our Translator to a CTranslate2 folder, for batches on servers."""

import functools
from collections.abc import Mapping

import numpy as np

from keras_vanilla._checks import check_choice
from keras_vanilla._types import PathLike
from keras_vanilla.interop.ctranslate2_names import (
    ACTIVATIONS,
    EMBEDDINGS,
    OUTPUT,
    OUTPUT_BIAS,
    POSITIONS,
    STACKS,
    activation_number,
    fused_weights,
)
from keras_vanilla.interop.ctranslate2_tokenizer import sentencepiece_files
from keras_vanilla.interop.files.ctranslate2_file import (
    CTranslate2Model,
    quantize_int8,
    write_ctranslate2,
)
from keras_vanilla.interop.files.stored_arrays import LazyArrays, Reader
from keras_vanilla.interop.layer_weights import (
    model_variables,
    read_weights,
    sinusoids,
)
from keras_vanilla.interop.vocabularies import END, START, UNKNOWN, vocabularies
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator

QUANTIZATIONS = None, "int8", "float16"


def to_ctranslate2(
    translator: Translator, folder: PathLike, quantize: str | None = None
) -> None:
    """Writes a Translator as a folder that `ctranslate2.Translator` opens.

    CTranslate2 computes the same logits. Its inputs and outputs are tokens, which are
    pieces of the SentencePiece models in the folder: `source.spm` and `target.spm`, or
    `sentencepiece.model` for both languages. A pad that is never in an output and has
    the last id is omitted from the vocabulary; other forbidden ids get a bias of -inf.

    Args:
        translator: Translator with the paper's layers and a `Tokenizer`.
        folder: path that does not exist.
        quantize: "int8" or "float16" for smaller files; None for float32. CTranslate2
            converts each of them to its `compute_type` when it opens the folder.
    Raises:
        FileExistsError: if `folder` exists.
        ValueError: if CTranslate2 does not support the model, the tokenizer is not
            SentencePiece's or adds a language code to each text, two ids have the same
            token, or `quantize` has another value.
    Example:
        to_ctranslate2(Translator.load("translator.keras"), "server", "int8")
    """
    check_choice("quantize", quantize, QUANTIZATIONS)
    translator = translator.in_float32()
    model, tokenizer = translator.model, translator.tokenizer
    _check(model)
    tokens = vocabularies(tokenizer, "A CTranslate2 model")
    if _drops_pad(model):
        tokens = [side[:-1] for side in tokens]
    readers, aliases = _weights(model, len(tokens[0]), len(tokens[1]))
    readers = _quantized(readers, quantize) | _settings(model)
    start = END if model.start_id >= len(tokens[1]) else tokens[1][model.start_id]
    content = CTranslate2Model(
        LazyArrays(readers), aliases, _config(model, start), *tokens
    )
    write_ctranslate2(folder, content, sentencepiece_files(tokenizer))


def _check(model: Transformer) -> None:
    """Refuses a Transformer that CTranslate2 does not support."""
    for name in ("encoder_layer", "decoder_layer"):
        if getattr(model, name) is not None:
            raise ValueError(
                f"CTranslate2 supports only the paper's layers. Received: {name}="
                f"{getattr(model, name)!r}"
            )
    if activation_number(model.activation) is None:
        raise ValueError(
            f"CTranslate2 has the activations {', '.join(ACTIVATIONS)}. Received: "
            f"activation={model.activation!r}"
        )


def _drops_pad(model: Transformer) -> bool:
    """Returns True if the pad can be omitted from the vocabulary."""
    last = {model.source_vocabulary_size - 1, model.target_vocabulary_size - 1}
    from_pad = model.start_id == model.pad_id and not model.zero_pad
    return last == {model.pad_id} == set(model.forbidden_ids) and not from_pad


def _weights(
    model: Transformer, source_size: int, target_size: int
) -> tuple[dict[str, Reader], dict[str, str]]:
    """Returns functions that read the weights, by name, and aliases of tables."""
    variables = model_variables(model)
    readers, aliases = {}, {POSITIONS["encoder"]: POSITIONS["decoder"]}
    tables = {theirs: ours for ours, theirs in EMBEDDINGS.items()} | {OUTPUT: "output"}
    source, target = EMBEDDINGS.values()
    if model.share_embeddings:
        tables[target], aliases[source] = tables.pop(source), target
    if model.tie_output:
        del tables[OUTPUT]
        aliases[OUTPUT] = target
    for theirs, ours in tables.items():
        size = source_size if theirs == source else target_size
        readers[theirs] = functools.partial(_table, variables[ours], size)
    depths = {side: getattr(model, f"num_{side}_layers") for side in STACKS}
    parts = fused_weights(depths, model.encoder_norm is not None)
    for theirs, ours in parts.items():
        together = {name: variables[name] for name in ours}
        readers[theirs] = functools.partial(_one_below_the_other, together)
    readers[POSITIONS["decoder"]] = functools.partial(
        sinusoids, model.position_layout, model.max_length, model.d_model
    )
    forbids = any(id_ < target_size for id_ in model.forbidden_ids)
    if forbids or model.logits_bias is not None:
        readers[OUTPUT_BIAS] = functools.partial(_output_bias, model, target_size)
    return readers, aliases


def _table(variable, size):
    """Returns the first rows of a table, or the first values of a bias."""
    return read_weights({"table": variable})["table"][:size]


def _one_below_the_other(variables):
    return np.concatenate([array.T for array in read_weights(variables).values()])


def _output_bias(model, size):
    """Returns the bias of the logits, which forbids ids."""
    bias = np.zeros(size, "float32")
    if model.logits_bias is not None:
        bias = _table(model.logits_bias.bias, size).copy()
    bias[[id_ for id_ in model.forbidden_ids if id_ < size]] = -np.inf
    return bias


def _settings(model: Transformer) -> dict[str, Reader]:
    """Returns the settings among CTranslate2's variables, with its names and types."""
    both = {
        "num_heads": np.int16(model.num_heads),
        "pre_norm": np.int8(model.normalize_first),
        "activation": np.int8(activation_number(model.activation)),
        "scale_embeddings": np.int8(model.scale_embeddings),
    }
    no = np.int8(False)
    from_zeros = model.zero_pad and model.start_id == model.pad_id
    encoder = both | {"embeddings_merge": no, "multi_query_attention": no}
    decoder = both | {
        "alignment_layer": np.int16(-1),
        "alignment_heads": np.int16(1),
        "alibi": no,
        "alibi_use_positive_positions": no,
        "scale_alibi": no,
        "start_from_zero_embedding": np.int8(from_zeros),
    }
    named = {f"encoder/{name}": value for name, value in encoder.items()}
    named |= {f"decoder/{name}": value for name, value in decoder.items()}
    return {name: functools.partial(np.array, value) for name, value in named.items()}


def _config(model, start):
    return {
        "unk_token": UNKNOWN,
        "bos_token": START,
        "eos_token": END,
        "decoder_start_token": start,
        "add_source_bos": False,
        "add_source_eos": model.source_end,
        "layer_norm_epsilon": model.layer_norm_epsilon,
        "multi_query_attention": False,
    }


def _quantized(readers: Mapping[str, Reader], quantize: str | None) -> dict:
    """Returns readers of quantised weights; only matrices become int8, with scales."""
    if quantize is None:
        return dict(readers)
    if quantize == "float16":
        return {
            name: lambda read=read: read().astype("float16")
            for name, read in readers.items()
        }
    quantized = dict(readers)
    for name, read in readers.items():
        if name.endswith("/weight"):
            quantized[name] = lambda read=read: quantize_int8(read())[0]
            quantized[f"{name}_scale"] = lambda read=read: quantize_int8(read())[1]
    return quantized

"""A translator as one `.tflite` file: bytes of text in, bytes of text out."""

import os
from pathlib import Path

from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export.checks.probe_sentences import made_up_sentences
from keras_vanilla.export.checks.structure import faults
from keras_vanilla.export.checks.verification import verify
from keras_vanilla.export.conversion import convert
from keras_vanilla.export.metadata.description import Description, with_description
from keras_vanilla.export.metadata.model_card import write_model_card
from keras_vanilla.export.search_graph import translator_in_float32
from keras_vanilla.export.signatures import FORMS, Limits
from keras_vanilla.export.to_saved_model import check_target

CHECKS = ("all", "structure")
QUANTIZATIONS = ("int8", None)
USUAL_LENGTH = 128
# Of words in no order the best translation is hardly better than the next.
MADE_UP_GAP = 0.5  # between two logits


def tflite(
    translator,
    path,
    quantize="int8",
    beam_size=1,
    max_bytes=512,
    max_length=None,
    form="text",
    check="all",
    sample=None,
    max_source_length=None,
    length_penalty=0.6,
    **about,
):
    """Writes one `.tflite` file with the whole translation inside.

    Static shapes, which every runtime takes, and builtin operators only. By form, one
    signature or two:

        text     translate       text uint8 (max_bytes,) -> text uint8 (M,),
                                 ids int32 (L,), score float32 ()
        ids      translate_ids   source_ids int32 (1, S) -> ids int32 (1, L)
        steps    encode          source_ids int32 (1, S) -> the cache
                 decode_step     ids int32 (1,), index int32 (), the cache ->
                                 logits float32 (1, V), what changed of the cache

    with S = max_source_length and L = min(S + 50, max_length); see `forms`. "int8"
    keeps the matrices in one byte a number, and quantises what they are multiplied
    with as it comes. The text form describes itself, see `read_description`, and has a
    model card beside it: `x.tflite` and `x.md`.

    The file is checked before it has its name: how it is made, and what it says.

    Args:
        translator: Translator.
        path: path that ends with ".tflite"; written whole or not at all.
        quantize: "int8", or None for float32.
        beam_size: int. 1 is greedy search.
        max_bytes: int. Longest text, in bytes.
        max_length: int or None. Longest output in tokens, its end included; None means
            128, or the model's `max_length` where that is less.
        form: "text", "ids" or "steps".
        check: "all", or "structure" to leave out what the file says, of a model that is
            not trained.
        sample: list of str or None. Sentences to check it on, in the source language;
            None makes some up of frequent words.
        max_source_length: int or None. Longest source, as `max_length`.
        length_penalty: float. Of beam search.
        about: fields of `Description`: `name`, `source_language`, `target_language`,
            `model_license`, `data` and `data_license`, each a str.
    Raises:
        FileExistsError: if `path`, or the model card's, exists.
        FileNotFoundError: if its folder does not.
        ValueError: if an argument is unknown or out of its range, `path` does not end
            with ".tflite", or a tokenizer is no unigram model.
        RuntimeError: if the file does not pass the check, the graph needs other than
            builtin operators, or Keras does not run on TensorFlow.
    """
    path = Path(path)
    for name, value, choices in (
        ("quantize", quantize, QUANTIZATIONS),
        ("form", form, tuple(FORMS)),
        ("check", check, CHECKS),
    ):
        _check_choice(name, value, choices)
    DecodingConfig(beam_size=beam_size, length_penalty=length_penalty)
    _check_path(path, form)
    translator = translator_in_float32(translator)
    limits = _limits(translator.model, max_bytes, max_source_length, max_length)
    search = {"beam_size": beam_size, "length_penalty": length_penalty}
    description = _description(translator, path, limits, search, quantize, about)
    content = _content(translator, form, limits, search, quantize)
    if form == "text":
        content = with_description(content, description)
    _refuse(faults(content, translator))
    _write(path, content, check == "all" and (translator, limits, sample))
    if form == "text":
        write_model_card(description, path)


def _content(translator, form, limits, search, quantize):
    """The file's bytes."""
    tokenizer, model = translator.tokenizer, translator.model
    search = {} if form == "steps" else search
    return convert(FORMS[form](tokenizer, model, limits, **search), model, quantize)


def _description(translator, path, limits, search, quantize, about):
    return Description(
        **{"name": path.stem, **about},
        max_bytes=limits.max_bytes,
        max_source_tokens=limits.max_source_length,
        max_output_tokens=limits.output_length,
        beam_size=search["beam_size"],
        length_penalty=search["length_penalty"] if search["beam_size"] > 1 else None,
        quantize=quantize,
        parameters=translator.model.count_params(),
    )


def _write(path, content, behaviour):
    """The file gets its name when it has passed its checks."""
    unfinished = path.with_name(f".{path.stem}.unfinished.tflite")
    try:
        unfinished.write_bytes(content)
        if behaviour:
            _check_behaviour(unfinished, *behaviour)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _check_behaviour(path, translator, limits, sample):
    made_up = sample is None
    if made_up:
        longest = limits.max_bytes, limits.max_source_length
        sample = made_up_sentences(translator.tokenizer, *longest)
    least_gap = MADE_UP_GAP if made_up else 0.0
    _refuse(verify(translator, path, sample, least_gap=least_gap).reasons)


def _refuse(reasons):
    if reasons:
        raise RuntimeError(f"The file is not written: {' '.join(reasons)}")


def _check_path(path, form):
    if path.suffix != ".tflite":
        raise ValueError(f"A TFLite file's name ends with .tflite. Received: {path}")
    check_target(path)
    if form == "text":
        check_target(path.with_suffix(".md"))


def _check_choice(name, value, choices):
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {value!r}"
        )


def _limits(model, max_bytes, max_source_length, max_length):
    if max_bytes < 1:
        raise ValueError(f"`max_bytes` must be at least 1. Received: {max_bytes}")
    return Limits(
        max_bytes,
        _length("max_source_length", max_source_length, model),
        _length("max_length", max_length, model),
    )


def _length(name, length, model):
    if length is None:
        return min(USUAL_LENGTH, model.max_length)
    if not 1 <= length <= model.max_length:
        raise ValueError(
            f"`{name}` must be at least 1 and at most the model's `max_length`, "
            f"{model.max_length}. Received: {length}"
        )
    return length

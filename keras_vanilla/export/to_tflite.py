"""Exports a translator as one `.tflite` file, which maps text to text."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_vanilla._atomic_write import (
    atomic_path,
    atomic_write_text,
    refuse_unwritable,
)
from keras_vanilla._checks import check_integer
from keras_vanilla._types import PathLike
from keras_vanilla.decoding.hypothesis_end import longest_output
from keras_vanilla.export.checks.runners import TfliteFile
from keras_vanilla.export.checks.verification import (
    checked_sentences,
    compare,
    made_up_sentences,
    sources_for,
)
from keras_vanilla.export.config import ExportConfig
from keras_vanilla.export.conversion import (
    check_backend,
    check_translator,
    convert,
    in_target_language,
    structure_faults,
)
from keras_vanilla.export.metadata.description import Description, model_card
from keras_vanilla.export.metadata.flatbuffer import with_description
from keras_vanilla.export.signatures import FORMS, VOCABULARY, vocabulary_entry
from keras_vanilla.translation import Translator

USUAL_BYTES, USUAL_TOKENS = 512, 128


def tflite(
    translator: Translator,
    path: PathLike,
    config: ExportConfig | None = None,
    *,
    sample: Sequence[str] | None = None,
    say: Callable[[str], None] | None = None,
    **settings: Any,
) -> None:
    """Writes a translator with its search and tokenizer as one `.tflite` file.

    The file has static shapes, which every runtime supports, and only builtin
    operators. Each form has one or two signatures:

        text     translate       text uint8 (max_bytes,) -> text uint8 (M,),
                                 ids int32 (L,), score float32 ()
        steps    encode          source_ids int32 (1, S) -> the cache
                 decode_step     ids int32 (1,), index int32 (), the cache ->
                                 logits float32 (1, V), the part of the cache that
                                 changed

    with S = max_source_length and L = min(S + 50, max_length); see `signatures`. "int8"
    stores matrices with one byte per number, and quantises their inputs when the file
    runs. The file contains a description, see `read_description`, and ends with a
    checksum. For the text form a model card is written as well: `x.md` for `x.tflite`.

    All arguments are checked before the conversion. The structure of the file is
    checked, and its translations are compared with Keras's, before `path` is created.

    Args:
        translator: Translator.
        path: path that ends with ".tflite". The file is written atomically, and missing
            parent folders are created.
        config: ExportConfig, or None for int8 with greedy search.
        sample: list of str or None. Sentences in the source language to check the file
            with; None makes some up from frequent words.
        say: function that is called with a sentence before each step that takes a
            while, such as `print`; None says nothing.
        settings: fields of `config`, of its `decoding` and of its `about`, such as
            `quantize`, `beam_size` and `name`.
    Raises:
        FileExistsError: if `path` or the model card exists.
        NotADirectoryError, PermissionError: if the folder of `path` is none, or is
            read-only.
        TypeError: if `translator` is not a Translator, a setting is unknown or has the
            wrong type, or `sample` is not a list of str.
        ValueError: if a setting is out of its range, `path` does not end with
            ".tflite", `sample` is empty or has a sentence that is longer than the file
            takes, a tokenizer is not a unigram model, or the vocabulary has language
            codes, but not that of `target_language`.
        RuntimeError: if the file does not pass the check, the graph needs operators
            that are not builtin, or Keras runs on neither TensorFlow nor JAX.
        ImportError: if Keras runs on JAX, and litert-converter is not installed.
    """
    config, path = ExportConfig.of(config, **settings), Path(path)
    check_translator(translator)
    check_backend()
    if path.suffix != ".tflite":
        raise ValueError(f"A TFLite file's name ends with .tflite. Received: {path}")
    card = path.with_suffix(".md") if config.form == "text" else None
    for target in filter(None, (path, card)):
        refuse_unwritable(target)
    description = described(translator, path.stem, config)
    translator = in_target_language(
        translator.in_float32(), description.target_language
    )
    if sample is not None:
        sample = checked_sentences("sample", sample)
        sources_for(translator, description, sample)
    say = say or (lambda sentence: None)
    say(f"Converting the model to {path.name}.")
    content = _converted(translator, description)
    with contextlib.ExitStack() as undo:
        with atomic_path(path, overwrite=False, parents=True) as temporary:
            with open(temporary, "xb") as file:
                file.write(content)
            if config.check == "all":
                say(f"Comparing {path.name} with Keras.")
                _verify(translator, temporary, sample)
            if card is not None:
                text = model_card(description, path.name, content)
                atomic_write_text(card, text, overwrite=False)
                undo.callback(card.unlink)  # a retry needs the name
        undo.pop_all()


def described(translator: Translator, name: str, config: ExportConfig) -> Description:
    """Describes the file of a translator, before anything is converted.

    Args:
        translator: Translator.
        name: str. The model's name, unless the translator or the config has another.
        config: ExportConfig.
    Raises:
        ValueError: if a length exceeds that of the model, or an example of the config
            is longer than the file takes.
    """
    model, decoding = translator.model, config.decoding
    about = translator.about.updated(config.about)
    most = model.max_length
    source_tokens = config.max_source_length or min(USUAL_TOKENS, most)
    check_integer("max_source_length", source_tokens, 1, most)
    output_tokens = config.max_length or min(USUAL_TOKENS, most)
    check_integer("max_length", output_tokens, 1, most)
    description = Description(
        **{"name": name} | about.stated() | {"examples": []},
        form=config.form,
        max_bytes=None if config.form == "steps" else config.max_bytes or USUAL_BYTES,
        max_source_tokens=source_tokens,
        max_output_tokens=longest_output(source_tokens, output_tokens),
        beam_size=decoding.beam_size,
        length_penalty=None if decoding.is_greedy else decoding.length_penalty,
        quantize=config.quantize,
        parameters=model.count_params(),
        end_id=model.end_id,
        outputs=list(config.outputs),
        no_loops=decoding.no_loops,
    )
    examples = list(about.examples or ())
    sources = translator.tokenizer.encode(examples)
    if config.about.examples is not None:
        sources_for(translator, description, examples)
    pairs = zip(examples, sources, strict=True)
    short = [text for text, ids in pairs if not description.excess(text, ids)]
    return dataclasses.replace(description, examples=short)


def _converted(translator, description):
    """Returns the bytes of the file; checks the structure."""
    # A copy, because another thread may translate with the original meanwhile.
    copy = translator.copy()
    form = FORMS[description.form](copy, description)
    file = convert(form, copy.model, description.quantize)
    _refuse(structure_faults(file, translator.model))
    entries = {}
    if description.form == "inside":
        entries[VOCABULARY] = vocabulary_entry(translator.tokenizer)
    return with_description(file, description, entries)


def _verify(translator, path, sample):
    exported, remedy = TfliteFile(path), ""
    if sample is None:
        sample = made_up_sentences(translator, exported.description)
        remedy = (
            " The sentences were frequent pieces in random order; for a model that "
            "knows others, give some of its own as `sample` (--sample FILE)."
        )
    _refuse(compare(translator, exported, sample).reasons, remedy)


def _refuse(reasons, remedy=""):
    if reasons:
        raise RuntimeError(f"The file is not written: {' '.join(reasons)}{remedy}")

"""Exports a translator as one `.tflite` file, which maps text to text."""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_vanilla._atomic_write import atomic_path, atomic_write_text, refuse_existing
from keras_vanilla._types import PathLike
from keras_vanilla.export.checks.runners import TfliteFile
from keras_vanilla.export.checks.structure import structure_faults
from keras_vanilla.export.checks.verification import compare
from keras_vanilla.export.config import ExportConfig, Limits
from keras_vanilla.export.conversion import convert, require_tensorflow
from keras_vanilla.export.metadata.description import (
    TAKING_TEXTS,
    Description,
    with_description,
)
from keras_vanilla.export.metadata.model_card import card_path, model_card_text
from keras_vanilla.export.signatures import InsideForm, StepsForm, TextForm
from keras_vanilla.export.target_language import in_target_language
from keras_vanilla.translation import Translator

FORMS = {"text": TextForm, "steps": StepsForm, "inside": InsideForm}
USUAL = ExportConfig()


def tflite(
    translator: Translator,
    path: PathLike,
    config: ExportConfig = USUAL,
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
        config: ExportConfig. None means int8 with greedy search.
        sample: list of str or None. Sentences in the source language to check the file
            with; None makes some up from frequent words.
        say: function that is called with a sentence before each step that takes a
            while, such as `print`; None says nothing.
        settings: fields of `config`, of its `decoding` and of its `about`, such as
            `quantize`, `beam_size` and `name`.
    Raises:
        FileExistsError: if `path` or the model card exists.
        TypeError: if a setting is unknown or has the wrong type, or `sample` is one
            str.
        ValueError: if a setting is out of its range, `path` does not end with
            ".tflite", a sentence of `sample` is longer than the file takes, a
            tokenizer is not a unigram model, or the vocabulary has language codes,
            but not that of `target_language`.
        RuntimeError: if the file does not pass the check, the graph needs operators
            that are not builtin, or Keras does not run on TensorFlow.
    """
    if config is None:  # until 0.6.0 this was `quantize`, and None was float32
        raise TypeError(
            "`config` must be an ExportConfig; a file in float32 is written by "
            "quantize=None. Received: None"
        )
    config = ExportConfig.of(config, **settings)
    require_tensorflow()
    path = Path(path)
    card = card_path(path) if config.form == "text" else None
    if path.suffix != ".tflite":
        raise ValueError(f"A TFLite file's name ends with .tflite. Received: {path}")
    for target in filter(None, (path, card)):
        refuse_existing(target)
    limits = Limits.of_model(translator.model, config)
    description = _description(translator, path.stem, config, limits)
    translator = in_target_language(
        translator.in_float32(), description.target_language
    )
    if sample is not None:
        limits.refuse_longer(sample, translator.encode(sample))
    say = say or (lambda sentence: None)
    say(f"Converting the model to {path.name}.")
    content = _file_content(translator, limits, config, description)
    with contextlib.ExitStack() as undo:
        with atomic_path(path, overwrite=False, parents=True) as temporary:
            with open(temporary, "xb") as file:
                file.write(content)
            if config.check == "all":
                say(f"Comparing {path.name} with Keras.")
                exported = TfliteFile(temporary)
                report = compare(translator, exported, sample)
                _refuse(report.reasons, sample is None)
            if card is not None:
                digest = hashlib.sha256(content).hexdigest()
                text = model_card_text(description, path.name, len(content), digest)
                atomic_write_text(card, text, overwrite=False)
                undo.callback(card.unlink)  # a retry needs the name
        undo.pop_all()


def _description(translator, name, config, limits):
    """Returns the description of the file."""
    about = {"name": name} | translator.about.updated(config.about).stated()
    about["examples"] = _examples(translator, config.about.examples, limits)
    decoding = config.decoding
    return Description(
        **about,
        form=config.form,
        max_bytes=config.max_bytes if config.form in TAKING_TEXTS else None,
        max_source_tokens=limits.max_source_length,
        max_output_tokens=limits.output_length,
        beam_size=decoding.beam_size,
        length_penalty=None if decoding.is_greedy else decoding.length_penalty,
        quantize=config.quantize,
        parameters=translator.model.count_params(),
        end_id=translator.model.end_id,
        outputs=list(config.outputs),
        no_loops=decoding.no_loops,
    )


def _examples(translator, config_examples, limits):
    """Returns the config's examples, or the translator's that are short enough."""
    examples = translator.about.examples if config_examples is None else config_examples
    examples = list(examples or ())
    sources = translator.tokenizer.encode(examples)
    if config_examples is not None:
        limits.refuse_longer(examples, sources)
    pairs = zip(examples, sources, strict=True)
    return [example for example, source in pairs if limits.take(example, source)]


def _file_content(translator, limits, config, description):
    """Returns the bytes of the file; checks the structure."""
    # `convert` changes the operators of layers. A copy is used, because another thread
    # may translate with the original.
    copy = translator.copy()
    graph = FORMS[config.form](copy, limits, config)
    file = convert(graph, copy.model, config.quantize)
    content = with_description(file, description, graph.metadata)
    tables = graph.tokenizer.nbytes if graph.tokenizer else 0
    _refuse(structure_faults(file, len(content), translator.model, tables))
    return content


def _refuse(reasons, on_made_up_sentences=False):
    if not reasons:
        return
    remedy = ""
    if on_made_up_sentences:
        remedy = (
            " The sentences were frequent pieces in random order; for a model that "
            "knows others, give some of its own as `sample` (--sample FILE)."
        )
    raise RuntimeError(f"The file is not written: {' '.join(reasons)}{remedy}")

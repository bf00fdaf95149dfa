"""Compares an exported file's translations with those of Keras."""

import math
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sentencepiece
from keras import ops

from keras_vanilla._types import PathLike
from keras_vanilla.decoding.hypothesis_end import longest_output, until_end
from keras_vanilla.export.checks.report import (
    Difference,
    Report,
    TextDifference,
    compare_quality,
)
from keras_vanilla.export.checks.runners import (
    SavedModelFolder,
    TfliteFile,
    open_exported,
)
from keras_vanilla.export.conversion import (
    check_translator,
    in_target_language,
    structure_faults,
)
from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.metadata.flatbuffer import unpacked
from keras_vanilla.models import fake_quantize
from keras_vanilla.tokenizer.id_rows import checked_lines
from keras_vanilla.tokenizer.protocol import tokens_before_text
from keras_vanilla.tokenizer.training import SPACE_MARK
from keras_vanilla.translation import Translator
from keras_vanilla.translation.buckets import length_buckets

COUNT = 40  # of made-up sentences
FREQUENT = 1000  # pieces; a vocabulary begins with the most frequent


def verify(
    translator: Translator,
    path: PathLike,
    sentences: Sequence[str],
    references: Sequence[str] | None = None,
) -> Report:
    """Compares an exported file's translations with Keras's, and checks its structure.

    Both use the same sentences and the same search. Where the ids differ, Keras
    computes the gap between the two next logits after the common prefix (in beam
    search, between the two scores). A gap of up to 1e-4, or 0.5 in int8 and int4, is a
    near-tie that rounding decides. Keras computes in float32 here, as the files do, and
    translates into the file's `target_language` if sources can name one. For an int4
    file, it rounds weights and inputs as the file does, see
    `keras_vanilla.models.fake_quantize`. The structure of a `.tflite` file is checked
    as well, see `structure_faults`.

    The graph of a SavedModel is executed and can do anything that a program can. Verify
    only SavedModels from sources that you trust.

    Args:
        translator: Translator that was exported.
        path: path of a SavedModel folder or a `.tflite` file.
        sentences: list of str.
        references: list of str or None. Reference translations. If given, an int8 file
            is judged by BLEU and chrF, see `Report.reasons`.
    Returns:
        Report; `passed` is the verdict, and printing it shows every difference.
    Raises:
        FileNotFoundError: if `path` does not exist.
        TypeError: if `translator` is not a Translator, or `sentences` or `references`
            are not lists of str.
        ValueError: if there are no sentences, one is longer than the file takes, the
            number of `references` differs, or the file is damaged or cannot run on this
            translator's ids.
    """
    check_translator(translator)
    sentences = checked_sentences("sentences", sentences)
    if references is not None:
        references = checked_lines(references, "references")
        if len(references) != len(sentences):
            raise ValueError(
                "There must be one reference for each sentence. Received: "
                f"{len(references)} references and {len(sentences)} sentences"
            )
    path = Path(path)
    translator, exported = translator.in_float32(), open_exported(path)
    faults = ()
    if exported.kind == "TFLite":
        faults = structure_faults(unpacked(path.read_bytes()), translator.model)
    return compare(translator, exported, sentences, references, faults)


def checked_sentences(name: str, sentences: Sequence[str]) -> list[str]:
    """Checks sentences to compare a file on, and returns them as a list.

    Raises:
        TypeError: if they are not a list of str.
        ValueError: if there are none.
    """
    sentences = checked_lines(sentences, name)
    if not sentences:
        raise ValueError(f"`{name}` must hold at least one sentence. Received: []")
    return sentences


def sources_for(
    translator: Translator, description: Description, sentences: Sequence[str]
) -> list[list[int]]:
    """Returns the source ids of sentences for a file.

    Args:
        translator: Translator.
        description: Description of the file.
        sentences: list of str.
    Raises:
        ValueError: if a sentence is longer than the file takes.
    """
    sources = translator.tokenizer.encode(sentences)
    for number, pair in enumerate(zip(sentences, sources, strict=True), start=1):
        if excess := description.excess(*pair):
            raise ValueError(f"Sentence {number} has {excess}.")
    return sources


def compare(
    translator: Translator,
    exported: SavedModelFolder | TfliteFile,
    sentences: Sequence[str],
    references: Sequence[str] | None = None,
    faults: Sequence[str] = (),
) -> Report:
    """Compares translations, see `verify`.

    Args:
        translator: Translator that was exported; it computes in float32.
        exported: the opened folder or file.
        sentences: list of str.
        references: list of str or None.
        faults: sequence of str. Faults in the structure, for the report.
    Raises:
        ValueError: as in `verify`.
    """
    description = exported.description
    translator = in_target_language(translator, description.target_language)
    sources = sources_for(translator, description, sentences)
    if description.quantize == "int4":
        translator = translator.copy()
        fake_quantize(translator.model, "int4")
    pairs = sorted(_translate_both(translator, exported, sentences, sources))
    whole = [pair for pair in pairs if not pair.is_cut]
    if not any(pair.ends and pair.file_ids for pair in whole):
        whole = pairs  # not one ends: this is not due to the file's limit
    metrics = ()
    if references is not None:
        ids = [pair.keras_ids for pair in pairs], [pair.file_ids for pair in pairs]
        texts = map(translator.tokenizer.decode, ids)
        metrics = compare_quality(*texts, references)
    return Report(
        kind=exported.kind,
        size=exported.size,
        precision=description.quantize or "float32",
        sentences=len(pairs),
        differences=tuple(_differences(pairs, translator.model, description.decoding)),
        text_differences=tuple(
            TextDifference(
                pair.line,
                pair.keras_text,
                pair.file_text,
                exported.kind == "SavedModel"
                and _is_tie(translator.tokenizer, pair.sentence),
            )
            for pair in pairs
            if pair.file_text not in (None, pair.keras_text)
        ),
        faults=tuple(faults),
        endless=sum(not pair.ends for pair in whole),
        inputs=len({pair.sentence for pair in whole}),
        outputs=len({tuple(pair.keras_ids) for pair in whole}),
        milliseconds=tuple(exported.milliseconds),
        metrics=metrics,
    )


class _Pair(NamedTuple):
    """Keras's and the file's translation of one sentence; a file may output no text.

    `is_cut` is True for a translation without an end that is only limited by the file.
    """

    line: int
    sentence: str
    source: list[int]
    keras_ids: list[int]
    file_ids: list[int]
    keras_text: str
    file_text: str | None
    ends: bool
    is_cut: bool


def _translate_both(translator, exported, sentences, sources):
    """Yields a `_Pair` for each sentence, in a different order."""
    model, decoding = translator.model, exported.description.decoding
    blank = tokens_before_text(translator.tokenizer) + 1
    limit = exported.description.max_output_tokens
    rows = {False: {}, True: {}}  # by whether the file has the lower limit
    for index, source in enumerate(sources):
        is_limited = longest_output(len(source), model.max_length) > limit
        rows[is_limited][index] = source
    for is_limited, group in rows.items():
        settings = {"max_length": limit} if is_limited else {}
        for indices in length_buckets(group):
            texts, batch = (
                [sentences[i] for i in indices],
                [sources[i] for i in indices],
            )
            keras_ids = translator.search(batch, decoding, **settings)
            keras_texts = translator.tokenizer.decode(keras_ids)
            file_ids, file_texts = exported.translate(texts, batch, model)
            for row, index in enumerate(indices):
                ours, theirs = (
                    until_end(ids[row].tolist(), model) for ids in (keras_ids, file_ids)
                )
                # A text without pieces has no translation, and may not be searched.
                has_piece = len(batch[row]) > blank
                skipped = not has_piece and not theirs
                ends = skipped or model.end_id in [*ours, *theirs]
                yield _Pair(
                    line=index + 1,
                    sentence=texts[row],
                    source=batch[row],
                    keras_ids=[] if skipped else ours,
                    file_ids=theirs,
                    keras_text=keras_texts[row] if has_piece else "",
                    file_text=file_texts[row],
                    ends=ends,
                    is_cut=is_limited and not ends,
                )


def _differences(pairs, model, decoding):
    """Yields a `Difference` for each sentence with other ids."""
    for pair in pairs:
        if pair.keras_ids != pair.file_ids:
            position = len(os.path.commonprefix([pair.keras_ids, pair.file_ids]))
            if decoding.is_greedy:
                gap = _logit_gap(model, pair, position)
            else:
                gap = _score_gap(model, pair, decoding)
            yield Difference(pair.line, position, gap, pair.sentence)


def _logit_gap(model, pair, position):
    """Returns the gap between Keras's logits of the two ids after the common prefix."""
    if position in (len(pair.keras_ids), len(pair.file_ids)):
        return math.inf
    keras_id, file_id = pair.keras_ids[position], pair.file_ids[position]
    if not 0 <= file_id < model.target_vocabulary_size:
        return math.inf
    # No later id has an influence on the logits at the position.
    logits = _logits(model, pair.source, pair.keras_ids)[position]
    return abs(float(logits[keras_id]) - float(logits[file_id]))


def _score_gap(model, pair, decoding):
    """Returns the gap between Keras's scores of the two hypotheses."""
    hypotheses = pair.keras_ids, pair.file_ids
    if not all(hypotheses) or max(pair.file_ids) >= model.target_vocabulary_size:
        return math.inf
    scores = []
    for ids in hypotheses:
        logits = _logits(model, pair.source, ids[:-1])
        log_probs = ops.convert_to_numpy(ops.log_softmax(logits))
        log_prob = log_probs[np.arange(len(ids)), ids].sum(dtype="float64")
        scores.append(decoding.apply_length_penalty(log_prob, len(ids)))
    return abs(scores[0] - scores[1])


def _logits(model, source, target):
    """Returns the logits (T + 1, V) after each prefix of the target."""
    shown = [model.start_id, *target]  # nothing follows the last of the longest
    inputs = {
        "source_ids": np.array([source], "int32"),
        "target_ids": np.array([shown[: model.max_length]], "int32"),
    }
    return ops.convert_to_numpy(model(inputs))[0]


def _is_tie(tokenizer, text):
    """Returns True if sentencepiece and tensorflow-text differ, with equal scores."""
    in_python = tokenizer.encode([text])[0]
    try:
        in_graph = tokenizer.source_graph([text])[0].numpy().tolist()
    except ImportError:  # the folder has TensorFlow's own operators
        return False
    if in_python == in_graph:
        return False
    model = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    # Both libraries add float32 numbers, piece by piece.
    scores = [sum(map(model.get_score, ids[:-1])) for ids in (in_python, in_graph)]
    return math.isclose(*scores, rel_tol=1e-5)


def made_up_sentences(translator: Translator, description: Description) -> list[str]:
    """Makes up sentences to check a file with.

    They contain frequent words in random order; one is empty, and one has the maximum
    length.

    Args:
        translator: Translator.
        description: Description of the file, whose limits all sentences keep to.
    Returns:
        List of str.
    """
    tokenizer = translator.tokenizer
    rng = random.Random(0)
    pieces = tokenizer.source_pieces(range(min(FREQUENT, tokenizer.vocabulary_size)))
    words = [p[1:] for p in pieces if p.startswith(SPACE_MARK) and len(p) > 2]
    words = words or [piece for piece in pieces if piece.isalnum()] or ["a"]

    def fits(text):
        return description.excess(text, tokenizer.encode([text])[0]) is None

    texts = [" ".join(rng.choices(words, k=rng.randrange(1, 5))) for _ in range(COUNT)]
    longest = []
    while fits(" ".join([*longest, word := rng.choice(words)])):
        longest.append(word)
    return ["", " ".join(longest), *filter(fits, texts)]

"""Compares an exported file's translations with those of Keras."""

import dataclasses
import math
import random
from collections.abc import Sequence
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
from keras_vanilla.export.checks.structure import structure_faults
from keras_vanilla.export.config import Limits
from keras_vanilla.export.metadata.description import TAKING_TEXTS
from keras_vanilla.export.metadata.flatbuffer import unpacked
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph
from keras_vanilla.export.target_language import in_target_language
from keras_vanilla.models import fake_quantize
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
    search, between the two scores). A gap of up to 1e-4, or 0.5 in int8, is a near-tie
    that rounding decides. Keras computes in float32 here, as the files do, and
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
        TypeError: if `sentences` is one str.
        ValueError: if there are no sentences, one is longer than the file takes, the
            number of `references` differs, or the file is damaged or cannot run on this
            translator's ids.
        ImportError: if it is a `.tflite` file and ai-edge-litert is not installed.
    """
    translator = translator.in_float32()
    exported = open_exported(path)
    report = compare(translator, exported, sentences, references)
    if exported.kind == "TFLite":
        model, content = translator.model, exported.path.read_bytes()
        takes_texts = exported.form in TAKING_TEXTS
        tables = TokenizerGraph(translator.tokenizer).nbytes if takes_texts else 0
        faults = structure_faults(unpacked(content), len(content), model, tables)
        report.faults = tuple(faults)
    return report


def compare(
    translator: Translator,
    exported: SavedModelFolder | TfliteFile,
    sentences: Sequence[str] | None = None,
    references: Sequence[str] | None = None,
) -> Report:
    """Compares translations like `verify`, without checking the structure.

    Args:
        translator: Translator that was exported; it computes in float32.
        exported: the opened folder or file.
        sentences: as in `verify`; None uses made-up sentences.
        references: as in `verify`.
    Raises:
        TypeError, ValueError: as in `verify`.
    """
    translator = in_target_language(translator, exported.target_language)
    if exported.precision == "int4":
        translator = translator.copy()
        fake_quantize(translator.model, "int4")
    if sentences is None:
        sentences = made_up_sentences(translator, exported.limits)
    sources = translator.encode(sentences)
    if not sources:
        raise ValueError("`sentences` must hold at least one. Received: none")
    if references is not None and len(references) != len(sentences):
        raise ValueError(
            "There must be one reference for each sentence. Received: "
            f"{len(references)} references and {len(sentences)} sentences"
        )
    report = Report(
        exported.kind,
        exported.size,
        exported.precision != "float32",
        exported.custom_operators,
        has_texts=exported.form == "text",
        precision=exported.precision,
    )
    if report.custom_operators:
        return report
    exported.limits.refuse_longer(sentences, sources)
    pairs = sorted(_translate_both(translator, exported, sentences, sources))
    _fill(report, pairs, translator, exported)
    if references is not None:
        ids = [pair.keras_ids for pair in pairs], [pair.file_ids for pair in pairs]
        texts = map(translator.tokenizer.decode, ids)
        report.metrics = compare_quality(*texts, references)
    return report


class _Pair(NamedTuple):
    """Keras's and the file's translation of one sentence; a file may output no text.

    If the file's outputs are shorter than Keras's, `keras_ids` are from a search with
    the file's length, and `unlimited_ids` from one without that limit.
    """

    line: int
    sentence: str
    source: list[int]
    keras_ids: list[int]
    file_ids: list[int]
    keras_text: str
    file_text: str | None
    unlimited_ids: tuple[int, ...]
    unfinished: bool


def _translate_both(translator, exported, sentences, sources):
    """Yields a `_Pair` for each sentence, in a different order."""
    model, decoding = translator.model, exported.decoding
    before_text = tokens_before_text(translator.tokenizer)
    for indices in length_buckets(sources):
        texts, batch = [sentences[i] for i in indices], [sources[i] for i in indices]
        file_ids, file_texts = exported.translate(texts, batch, model)
        length = file_ids.shape[1]
        unlimited_ids = translator.search(batch, decoding)
        keras_ids = unlimited_ids[:, :length].copy()
        longest = [longest_output(len(source), model.max_length) for source in batch]
        stopped = [row for row, most in enumerate(longest) if most > length]
        if stopped and not decoding.is_greedy:
            # Under the limit, a beam search may find other hypotheses.
            limited = dataclasses.replace(decoding, max_length=length)
            stopped_batch = [batch[row] for row in stopped]
            limited_ids = translator.search(stopped_batch, limited)
            keras_ids[stopped] = limited_ids[:, : keras_ids.shape[1]]
        keras_texts = translator.tokenizer.decode(keras_ids)
        for row, index in enumerate(indices):
            # Otherwise the translation is empty.
            has_piece = len(batch[row]) > before_text + 1
            skipped = exported.form == "text" and not has_piece
            yield _Pair(
                index + 1,
                texts[row],
                batch[row],
                [] if skipped else until_end(keras_ids[row].tolist(), model),
                until_end(file_ids[row].tolist(), model),
                keras_texts[row] if has_piece else "",
                None if file_texts is None else file_texts[row],
                tuple(until_end(unlimited_ids[row].tolist(), model)),
                not skipped
                and model.end_id not in [*unlimited_ids[row], *file_ids[row]],
            )


def _fill(report, pairs, translator, exported):
    """Adds the results to the report; `pairs` are in order."""
    report.sentences = len(pairs)
    report.endless = sum(pair.unfinished for pair in pairs)
    report.inputs = len({pair.sentence for pair in pairs})
    report.outputs = len({pair.unlimited_ids for pair in pairs})
    report.milliseconds = list(exported.milliseconds)
    for pair in pairs:
        if pair.keras_ids != pair.file_ids:
            position = _first_difference(pair.keras_ids, pair.file_ids)
            if exported.decoding.is_greedy:
                gap = _logit_gap(translator.model, pair, position)
            else:
                gap = _score_gap(translator.model, pair, exported.decoding)
            report.differences.append(
                Difference(pair.line, position, gap, pair.sentence)
            )
        if pair.file_text not in (None, pair.keras_text):
            why = None, False
            if report.kind == "SavedModel":
                why = _segmentations(translator.tokenizer, pair.sentence)
            report.text_differences.append(
                TextDifference(pair.line, pair.keras_text, pair.file_text, *why)
            )


def _first_difference(keras_ids, file_ids):
    """The first position at which ids differ, or at which one of them ends."""
    for position, (a, b) in enumerate(zip(keras_ids, file_ids, strict=False)):
        if a != b:
            return position
    return min(len(keras_ids), len(file_ids))


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


def _segmentations(tokenizer, text):
    """Returns the pieces in Python and in the graph, and whether their scores tie.

    Returns (None, False) if the pieces are the same. sentencepiece and tensorflow-text
    resolve ties differently.
    """
    in_python = tokenizer.encode([text])[0]
    in_graph = tokenizer.source_graph([text])[0].numpy().tolist()
    if in_python == in_graph:
        return None, False
    both = in_python, in_graph
    model = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    pieces = tuple([model.id_to_piece(i) for i in ids[:-1]] for ids in both)
    scores = [sum(map(model.get_score, ids)) for ids in both]
    # Both libraries add float32 numbers, piece by piece.
    return pieces, math.isclose(*scores, rel_tol=1e-5)


def made_up_sentences(translator: Translator, limits: Limits) -> list[str]:
    """Makes up sentences to check a file with.

    They contain frequent words in random order; one is empty, and one has the maximum
    length.

    Args:
        translator: Translator.
        limits: Limits that all sentences keep to.
    Returns:
        List of str.
    """
    tokenizer = translator.tokenizer
    max_tokens = min(limits.max_source_length, translator.model.max_length)
    rng = random.Random(0)
    pieces = tokenizer.source_pieces(range(min(FREQUENT, tokenizer.vocabulary_size)))
    words = [p[1:] for p in pieces if p.startswith(SPACE_MARK) and len(p) > 2]
    words = words or [piece for piece in pieces if piece.isalnum()] or ["a"]

    def fits(text):
        tokens = len(tokenizer.encode([text])[0])
        return len(bytes(text, "utf-8")) <= limits.max_bytes and tokens <= max_tokens

    texts = [" ".join(rng.choices(words, k=rng.randrange(1, 5))) for _ in range(COUNT)]
    longest = []
    while fits(" ".join([*longest, word := rng.choice(words)])):
        longest.append(word)
    return ["", " ".join(longest), *filter(fits, texts)]

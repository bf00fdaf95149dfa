"""Does an exported file say what Keras says?"""

import math
from typing import NamedTuple

import numpy as np
import sentencepiece
from keras import ops

from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.decoding.hypothesis_end import until_end
from keras_vanilla.export.checks.report import Difference, Report, TextDifference
from keras_vanilla.export.checks.runners import open_exported
from keras_vanilla.export.checks.structure import faults
from keras_vanilla.export.search_graph import translator_in_float32
from keras_vanilla.translation.bucketing import length_buckets
from keras_vanilla.translation.evaluation import bleu_and_chrf


def verify(translator, path, sentences, references=None, least_gap=0.0):
    """Compares what an exported file says with what Keras says.

    Both get the same sentences and search alike. Where the two ids part, Keras is
    given their common beginning and says how far apart the two next logits are (of
    beam search, the two scores): up to 1e-4 it is a near-tie, which rounding decides.
    Keras computes in float32 here, as the files do. How a `.tflite` file is made is
    looked at as well, see `structure.faults`.

    Args:
        translator: Translator that was exported.
        path: path of a SavedModel folder or a `.tflite` file.
        sentences: list of str.
        references: list of str or None. Right translations, for BLEU of both.
        least_gap: float. In int8, differences of less than this between two logits do
            not count.
    Returns:
        Report; `passed` is the verdict, and printing it shows every difference.
    Raises:
        FileNotFoundError: if there is nothing at `path`.
        TypeError: if `sentences` is one str.
        ValueError: if there is no sentence, one is longer than the file takes,
            `references` are not as many, or the file is damaged or cannot run on this
            translator's ids.
        ImportError: if a `.tflite` file is to be run without ai-edge-litert.
    """
    translator = translator_in_float32(translator)
    sources = translator.encode(sentences)
    if not sources:
        raise ValueError("`sentences` must hold at least one. Received: none")
    if references is not None and len(references) != len(sentences):
        raise ValueError(
            "`references` must be as many as `sentences`. Received: "
            f"{len(references)} and {len(sentences)}"
        )
    exported = open_exported(path)
    report = Report(
        exported.kind, exported.size, exported.quantized, exported.custom_operators
    )
    report.least_gap = least_gap
    if exported.kind == "TFLite":
        report.faults = tuple(faults(exported.path.read_bytes(), translator))
    if report.custom_operators:
        return report
    _refuse_longer(sentences, sources, exported)
    answers = sorted(_answers(translator, exported, sentences, sources))
    _fill(report, answers, translator, exported, references)
    return report


class _Answer(NamedTuple):
    """What Keras and the file say to one sentence; a file may write no text."""

    line: int
    sentence: str
    source: list[int]
    ours: list[int]
    theirs: list[int]
    our_text: str
    their_text: str | None
    endless: bool


def _answers(translator, exported, sentences, sources):
    """Yields an `_Answer` for each sentence, in another order."""
    model, decode = translator.model, translator.tokenizer.decode
    for lines in length_buckets(sources):
        texts, rows = [sentences[i] for i in lines], [sources[i] for i in lines]
        theirs, their_texts = exported.answer(texts, rows, model)
        whole = translator.search(rows, DecodingConfig(**exported.search))
        ours = whole[:, : theirs.shape[1]]  # as far as the file goes
        our_texts = decode(ours)
        for place, line in enumerate(lines):
            spoken = len(rows[place]) > 1  # of nothing a translator makes nothing
            silent = exported.form == "text" and not spoken
            yield _Answer(
                line + 1,
                texts[place],
                rows[place],
                [] if silent else until_end(ours[place].tolist(), model),
                until_end(theirs[place].tolist(), model),
                our_texts[place] if spoken else "",
                None if their_texts is None else their_texts[place],
                not silent and model.end_id not in [*whole[place], *theirs[place]],
            )


def _fill(report, answers, translator, exported, references):
    """Puts what was found into the report; `answers` are in order."""
    theirs = [answer.theirs for answer in answers]
    report.sentences = len(answers)
    report.endless = sum(answer.endless for answer in answers)
    report.inputs = len({answer.sentence for answer in answers})
    report.outputs = len(set(map(tuple, theirs)))
    report.milliseconds = list(exported.milliseconds)
    for answer in answers:
        if answer.ours != answer.theirs:
            report.differences.append(
                _difference(translator.model, exported.search, answer)
            )
        if answer.their_text not in (None, answer.our_text):
            report.text_differences.append(_text_difference(translator, report, answer))
    if references is not None:
        decode = translator.tokenizer.decode
        texts = decode([answer.ours for answer in answers]), decode(theirs)
        report.bleu = tuple(bleu_and_chrf(t, references).bleu for t in texts)


def _refuse_longer(sentences, sources, exported):
    for number, pair in enumerate(zip(sentences, sources, strict=True), start=1):
        for has, takes, unit in (
            (len(pair[0].encode()), exported.max_bytes, "bytes"),
            (len(pair[1]), exported.longest_source, "tokens"),
        ):
            if has > takes:
                raise ValueError(
                    f"Sentence {number} has {has} {unit}, but {exported.path} takes at "
                    f"most {takes}."
                )


def _difference(model, search, answer):
    source, ours, theirs = answer.source, answer.ours, answer.theirs
    position = _first_difference(ours, theirs)
    if search["beam_size"] == 1:
        gap = _gap(model, source, ours, theirs, position)
    else:
        gap = _score_gap(model, source, ours, theirs, search["length_penalty"])
    return Difference(answer.line, position, gap, answer.sentence)


def _text_difference(translator, report, answer):
    """Of a SavedModel, whose tokenizer is another, with the segmentations."""
    segmentations, tie = None, False
    if report.kind == "SavedModel":
        segmentations, tie = _segmentations(translator.tokenizer, answer.sentence)
    return TextDifference(
        answer.line, answer.our_text, answer.their_text, segmentations, tie
    )


def _first_difference(ours, theirs):
    for position, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        if our != their:
            return position
    return min(len(ours), len(theirs))


def _gap(model, source, ours, theirs, position):
    """How far apart Keras sees the two ids after the beginning they share."""
    if position in (len(ours), len(theirs)):
        return math.inf
    if not 0 <= theirs[position] < model.target_vocabulary_size:
        return math.inf
    inputs = {
        "source_ids": np.array([source], "int32"),
        "target_ids": np.array([[model.start_id, *ours]], "int32"),
    }
    logits = np.asarray(model(inputs))[0, position]  # no later id has a part in it
    return abs(float(logits[ours[position]]) - float(logits[theirs[position]]))


def _score_gap(model, source, ours, theirs, length_penalty):
    """How far apart the scores of two hypotheses are, both by Keras."""
    if not ours or not theirs or max(theirs) >= model.target_vocabulary_size:
        return math.inf
    scores = []
    for ids in (ours, theirs):
        inputs = {
            "source_ids": np.array([source], "int32"),
            "target_ids": np.array([[model.start_id, *ids[:-1]]], "int32"),
        }
        logits = ops.convert_to_numpy(ops.log_softmax(model(inputs)))[0]
        log_prob = logits[np.arange(len(ids)), ids].sum(dtype="float64")
        scores.append(log_prob / ((5 + len(ids)) / 6) ** length_penalty)
    return abs(scores[0] - scores[1])


def _segmentations(tokenizer, text):
    """Its pieces in Python and in a graph if they differ, and if they score the same.

    Sentencepiece and tensorflow-text choose differently between equal scores.
    """
    ours = tokenizer.encode([text])[0]
    theirs = tokenizer.source_graph([text])[0].numpy().tolist()
    if ours == theirs:
        return None, False
    model = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    pieces = tuple([model.id_to_piece(i) for i in ids[:-1]] for ids in (ours, theirs))
    our_score, their_score = (sum(map(model.get_score, ids)) for ids in (ours, theirs))
    # Both add up float32 numbers, one piece after the other.
    return pieces, math.isclose(our_score, their_score, rel_tol=1e-5)

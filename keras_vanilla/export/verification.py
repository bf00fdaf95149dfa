"""Does an exported file say what Keras says?"""

import math

import numpy as np
import sentencepiece

from keras_vanilla.export.exported import open_exported
from keras_vanilla.export.report import Difference, Report, TextDifference
from keras_vanilla.export.search_graph import in_float32
from keras_vanilla.hypotheses import neighbours, padded, until_end
from keras_vanilla.translator import Translator


def verify(translator, path, sentences):
    """Compares what an exported file says with what Keras says.

    Both get the same source ids and search greedily. Where the two ids part, Keras is
    given their common beginning and says how far apart the two next logits are: up to
    1e-4 it is a near-tie, which rounding decides. A SavedModel is given the strings as
    well. Keras computes in float32 here, as the files do.

    Args:
        translator: Translator that was exported.
        path: path of a SavedModel folder or a `.tflite` file.
        sentences: list of str.
    Returns:
        Report; `passed` is the verdict, and printing it shows every difference.
    Raises:
        FileNotFoundError: if there is nothing at `path`.
        TypeError: if `sentences` is one str.
        ValueError: if there is no sentence, one is longer than the file takes, or the
            file is damaged or cannot run on this translator's ids.
        ImportError: if a `.tflite` file is to be run without ai-edge-litert.
    """
    translator = _in_float32(translator)
    sources = translator.encode(sentences)
    if not sources:
        raise ValueError("`sentences` must hold at least one. Received: none")
    exported = open_exported(path)
    report = Report(
        exported.kind, exported.size, exported.quantized, exported.custom_operators
    )
    if report.custom_operators:
        return report
    _refuse_longer(sources, exported)
    report.sentences = len(sources)
    for lines in neighbours(sources):
        rows = {line: sources[line] for line in lines}
        report.differences += _compare_ids(translator, exported, rows, sentences)
        if exported.kind == "SavedModel":
            texts = {line: sentences[line] for line in lines}
            report.text_differences += _compare_texts(translator, exported, texts)
    report.differences.sort(key=lambda difference: difference.line)
    report.text_differences.sort(key=lambda difference: difference.line)
    return report


def _in_float32(translator):
    model = in_float32(translator.model)
    if model is translator.model:
        return translator
    return Translator(translator.tokenizer, model)


def _refuse_longer(sources, exported):
    for number, source in enumerate(sources, start=1):
        if len(source) > (exported.longest_source or math.inf):
            raise ValueError(
                f"Sentence {number} has {len(source)} tokens, but {exported.path} "
                f"takes at most {exported.longest_source}."
            )


def _compare_ids(translator, exported, sources, sentences):
    """The differences of one batch; `sources` are source ids by line."""
    model = translator.model
    expected = translator.search(list(sources.values()))
    width = exported.longest_source or max(map(len, sources.values()))
    received = exported.translate_ids(
        padded(list(sources.values()), width, model.pad_id)
    )
    longest = received.shape[1]  # of the file; in Keras searches may go on
    for line, ours, theirs in zip(sources, expected, received, strict=True):
        ours = until_end(ours[:longest].tolist(), model)
        theirs = until_end(theirs.tolist(), model)
        if ours != theirs:
            position = _first_difference(ours, theirs)
            gap = _gap(model, sources[line], ours, theirs, position)
            yield Difference(line + 1, position, gap, sentences[line])


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


def _compare_texts(translator, exported, sentences):
    """The same for strings; `sentences` are by line."""
    texts = list(sentences.values())
    expected, received = translator.translate(texts), exported.translate(texts)
    for line, ours, theirs in zip(sentences, expected, received, strict=True):
        if ours != theirs:
            segmentations, tie = _segmentations(translator.tokenizer, sentences[line])
            yield TextDifference(line + 1, ours, theirs, segmentations, tie)


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

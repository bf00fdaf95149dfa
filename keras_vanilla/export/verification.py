"""Does an exported file say what Keras says?"""

import math
from dataclasses import dataclass, field

import numpy as np

from keras_vanilla.export.exported import cut, open_exported
from keras_vanilla.export.search_graph import in_float32
from keras_vanilla.translator import Translator

NEAR_TIE = 1e-4  # of two logits that rounding may put in either order
INT8_SHARE = 0.05  # of the sentences that may differ once weights are rounded to int8
ROWS = 64


@dataclass(frozen=True)
class Difference:
    """A sentence whose ids differ from Keras's.

    Attributes:
        line: int. Number of the sentence, from 1.
        position: int. Of the first different id, from 0.
        gap: float. How far apart the two ids' logits are there, in Keras; infinite
            where one sequence just goes on.
        text: str. The sentence.
    """

    line: int
    position: int
    gap: float
    text: str

    @property
    def near_tie(self):
        """Whether rounding alone explains the difference."""
        return self.gap <= NEAR_TIE


@dataclass(frozen=True)
class TextDifference:
    """A sentence whose translation, as text, differs from Keras's.

    Attributes:
        line: int. Number of the sentence, from 1.
        expected: str. What Keras says.
        received: str. What the file says.
        segmentations: pair of lists of str, or None. The sentence's pieces in Keras and
            in the file, where they differ.
        tie: bool. Whether the two segmentations have the same score.
    """

    line: int
    expected: str
    received: str
    segmentations: tuple | None = None
    tie: bool = False


@dataclass
class Report:
    """What `verify` found; `print` shows it.

    Attributes:
        kind: "SavedModel" or "TFLite".
        size: int. Bytes.
        quantized: bool.
        custom_operators: tuple of str. Operators that no plain runtime has; a file that
            has any was not run.
        sentences: int. How many were compared.
        differences: list of Difference.
        text_differences: list of TextDifference, of a SavedModel.
    """

    kind: str
    size: int
    quantized: bool
    custom_operators: tuple
    sentences: int = 0
    differences: list = field(default_factory=list)
    text_differences: list = field(default_factory=list)

    @property
    def equal(self):
        """Number of sentences with the same ids."""
        return self.sentences - len(self.differences)

    @property
    def near_ties(self):
        """Number of differences that rounding alone explains."""
        return sum(difference.near_tie for difference in self.differences)

    @property
    def passed(self):
        """Whether the file says what Keras says.

        Float32: each difference is a near-tie, or an exact tie of the tokenizer. Int8:
        at most one sentence in twenty differs.
        """
        if self.custom_operators:
            return False
        if self.quantized:
            return len(self.differences) <= INT8_SHARE * self.sentences
        return len(self.differences) == self.near_ties and self._texts_agree()

    def _texts_agree(self):
        explained = {difference.line for difference in self.differences}
        return all(d.tie or d.line in explained for d in self.text_differences)

    def __str__(self):
        precision = "int8" if self.quantized else "float32"
        lines = [
            f"{self.kind}, {precision}, {self.size:,} bytes: "
            + ("passed" if self.passed else "NOT passed")
        ]
        if self.custom_operators:
            names = ", ".join(self.custom_operators)
            return f"{lines[0]}\nnot run: {names} are not builtin operators"
        lines.append(
            f"{self.equal:,} of {self.sentences:,} sentences have the same ids, "
            f"{self.near_ties} differ by a near-tie, "
            f"{len(self.differences) - self.near_ties} by more"
        )
        lines += [
            f"  line {d.line}, position {d.position}, logits {d.gap:.2g} apart: {d.text}"
            for d in self.differences
        ]
        return "\n".join(lines + [_line(d) for d in self.text_differences])


def verify(translator, path, sentences):
    """Compares what an exported file says with what Keras says.

    The file and Keras get the same source ids and search greedily. Where their ids
    part, Keras gets the common beginning, and tells how far apart the two next ids
    are: up to 1e-4 it is a near-tie, which rounding decides. A SavedModel also gets
    the strings. Keras computes in float32 here, as the files do.

    Args:
        translator: Translator that was exported.
        path: path of a SavedModel folder or a `.tflite` file.
        sentences: list of str.
    Returns:
        Report; its `passed` is the verdict.
    Raises:
        FileNotFoundError: if there is nothing at `path`.
        TypeError: if `sentences` is one str.
        ValueError: if there is no sentence, one is longer than the file takes, or the
            file is damaged or is not of this model.
        ImportError: if a `.tflite` file is to be run without ai-edge-litert.
    """
    sentences = [sentences] if isinstance(sentences, str) else list(sentences)
    if not sentences:
        raise ValueError("`sentences` must hold at least one. Received: none")
    model = in_float32(translator.model)
    if model is not translator.model:
        translator = Translator(translator.tokenizer, model)
    file = open_exported(path, model.end_id, model.pad_id)
    report = Report(file.kind, file.size, file.quantized, file.custom_operators)
    if file.custom_operators:
        return report
    sources = translator.encode(sentences)
    _refuse_longer(sources, file)
    report.sentences = len(sentences)
    for rows in _batches(sources):
        pass
    return report


def _line(difference):
    return ""

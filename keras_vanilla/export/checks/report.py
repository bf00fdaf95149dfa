"""The result of a verification, and the verdict."""

from dataclasses import dataclass, field

import numpy as np

NEAR_TIE = 1e-4  # between two logits: rounding may put them in either order
INT8_SHARE = 0.05  # of sentences that may differ where weights are rounded to int8


@dataclass(frozen=True)
class Difference:
    """A sentence whose target ids differ from Keras's.

    Attributes:
        line: int. Number of the sentence, from 1.
        position: int. Of the first id that differs, from 0.
        gap: float. How far apart the two ids' logits are there, in Keras; infinite
            where one sequence is longer, or an id is outside the vocabulary.
        text: str. The sentence.
    """

    line: int
    position: int
    gap: float
    text: str

    @property
    def near_tie(self) -> bool:
        """Whether rounding alone explains the difference."""
        return self.gap <= NEAR_TIE

    def __str__(self):
        return (
            f"  line {self.line}, token {self.position + 1}: logits {self.gap:.2g} "
            f"apart: {self.text}"
        )


@dataclass(frozen=True)
class TextDifference:
    """A sentence whose translation, as text, differs from Keras's.

    Attributes:
        line: int. Number of the sentence, from 1.
        expected: str. Keras's translation.
        received: str. The file's.
        segmentations: pair of lists of str, or None. The sentence's pieces in Keras and
            in the file, where these differ.
        score_tie: bool. Whether the two segmentations score exactly the same, so that
            either is right.
    """

    line: int
    expected: str
    received: str
    segmentations: tuple[list[str], list[str]] | None = None
    score_tie: bool = False

    def __str__(self):
        shown = f"  line {self.line}: {self.received!r} instead of {self.expected!r}"
        if self.segmentations is None:
            return shown
        why = "an exact tie of" if self.score_tie else "NO tie of"
        ours, theirs = map(" ".join, self.segmentations)
        return f"{shown}, {why} the segmentations {ours!r} and {theirs!r}"


@dataclass
class Report:
    """The result of `verify`; printing it shows all.

    Attributes:
        kind: "SavedModel" or "TFLite".
        size: int. Bytes.
        quantized: bool. Whether weights are int8.
        custom_operators: tuple of str. Operators that a plain runtime lacks; a file
            with any of them was not run.
        sentences: int. Number of sentences compared.
        differences: list of Difference.
        text_differences: list of TextDifference; of files that write texts.
        faults: tuple of str. Faults in the file's structure.
        endless: int. Number of the file's outputs without an end.
        inputs: int. Number of different sentences.
        outputs: int. Number of different outputs of the file.
        milliseconds: list of float, a `.tflite` file's time for each sentence.
        bleu: pair of floats or None. Keras's BLEU and the file's.
        least_gap: float. In int8, differences of less than this between two logits do
            not count.
        has_texts: bool. Whether a `.tflite` file takes and gives texts.
    """

    kind: str
    size: int
    quantized: bool = False
    custom_operators: tuple[str, ...] = ()
    sentences: int = 0
    differences: list[Difference] = field(default_factory=list)
    text_differences: list[TextDifference] = field(default_factory=list)
    faults: tuple[str, ...] = ()
    endless: int = 0
    inputs: int = 0
    outputs: int = 0
    milliseconds: list[float] = field(default_factory=list)
    bleu: tuple[float, float] | None = None
    least_gap: float = 0.0
    has_texts: bool = False

    @property
    def equal(self) -> int:
        """Number of sentences with the same ids."""
        return self.sentences - len(self.differences)

    @property
    def near_ties(self) -> int:
        """Number of differences that rounding alone explains."""
        return sum(difference.near_tie for difference in self.differences)

    @property
    def passed(self) -> bool:
        """Whether the file translates as Keras does, and has no fault."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """Why the file does not pass, in sentences; none if it passes.

        In float32 each difference must be a near-tie, or a tie of the tokenizer; in
        int8 at most one sentence in twenty may differ. Of several sentences half must
        end, and have outputs of their own.
        """
        if self.custom_operators:
            names = ", ".join(self.custom_operators)
            return [f"It needs {names}, which are not builtin operators."]
        reasons = [*self.faults, *self._of_ids()]
        if not self._texts_explained():
            reasons.append("Texts differ where ids do not.")
        if self.sentences > 3 and self.endless > self.sentences / 2:
            reasons.append(f"{self.endless} of {self.sentences} outputs never end.")
        if self.inputs > 3 and self.outputs < self.inputs / 2:
            reasons.append(
                f"The source hardly matters: {self.inputs} different sentences have "
                f"{self.outputs} different translations."
            )
        return reasons

    def _of_ids(self):
        if self.quantized:
            count = sum(each.gap >= self.least_gap for each in self.differences)
            if count > INT8_SHARE * self.sentences:
                yield (
                    f"{count} of {self.sentences} sentences differ from Keras, more "
                    "than one in twenty."
                )
        elif self.near_ties < len(self.differences):
            count = len(self.differences) - self.near_ties
            yield f"{count} of {self.sentences} sentences differ by more than a tie."

    def _texts_explained(self):
        """Whether each different text follows from different ids."""
        lines = {difference.line for difference in self.differences}
        return all(
            text.score_tie or (text.segmentations is None and text.line in lines)
            for text in self.text_differences
        )

    def __str__(self):
        verdict = "passed" if self.passed else "NOT PASSED"
        precision = "int8" if self.quantized else "float32"
        lines = [f"{self.kind}, {precision}, {self.size:,} bytes: {verdict}"]
        lines += [f"  {reason}" for reason in self.reasons]
        if self.custom_operators:
            return "\n".join([*lines, "Not run."])
        beyond = len(self.differences) - self.near_ties
        lines.append(
            f"{self.equal:,} of {self.sentences:,} sentences have Keras's ids, "
            f"{self.near_ties} differ by a near-tie and {beyond} by more"
        )
        lines += map(str, self.differences)
        if self.text_differences:
            lines.append(f"{len(self.text_differences)} translations differ as text")
        lines += map(str, self.text_differences)
        return "\n".join([*lines, *self._figures()])

    def _figures(self):
        if self.bleu is not None:
            ours, theirs = self.bleu
            yield f"BLEU {theirs:.2f}, in Keras {ours:.2f} ({theirs - ours:+.2f})"
        if self.milliseconds:
            percent = np.percentile(self.milliseconds, (50, 90, 99))
            times = "/".join(f"{value:.1f}" for value in percent)
            yield f"{times} ms per sentence for 50/90/99 % of them, one thread"

"""The result of a verification, and the verdict."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from keras_vanilla.export.checks.quality import MetricComparison

# Between two logits that rounding may put in either order.
NEAR_TIE = 1e-4
NEAR_TIE_AT_8_BITS = 0.5  # weights, and the inputs of their products, in 8 bits
FAR_SHARE = 0.05  # of an int8 file's sentences that may differ by more


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
        quantized: bool. Whether weights are int8 or int4.
        custom_operators: tuple of str. Operators that a plain runtime lacks; a file
            with any of them was not run.
        sentences: int. Number of sentences compared.
        differences: list of Difference.
        text_differences: list of TextDifference; of files that write texts.
        faults: tuple of str. Faults in the file's structure.
        endless: int. Number of the file's outputs without an end.
        inputs: int. Number of different sentences.
        outputs: int. Number of different translations of them, in Keras.
        milliseconds: list of float, a `.tflite` file's time for each sentence.
        metrics: tuple of MetricComparison; empty without references.
        has_texts: bool. Whether a `.tflite` file takes and gives texts.
        precision: str. That of the weights, if they are quantised.
        shortlist: int or None. Number of the file's candidates, if Keras had the whole
            vocabulary instead.
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
    metrics: tuple[MetricComparison, ...] = ()
    has_texts: bool = False
    precision: str = "int8"
    shortlist: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON takes it, but for gaps that are infinite."""
        verdict = {"passed": self.passed, "reasons": self.reasons, "equal": self.equal}
        counts = {"near_ties": self.near_ties, "far": self.far}
        return verdict | counts | dataclasses.asdict(self)

    @property
    def equal(self) -> int:
        """Number of sentences with the same ids."""
        return self.sentences - len(self.differences)

    @property
    def near_ties(self) -> int:
        """Number of differences that rounding alone explains."""
        most = NEAR_TIE_AT_8_BITS if self.quantized else NEAR_TIE
        return sum(difference.gap <= most for difference in self.differences)

    @property
    def far(self) -> int:
        """Number of differences by more than a near-tie."""
        return len(self.differences) - self.near_ties

    @property
    def passed(self) -> bool:
        """Whether the file translates as Keras does, and has no fault."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """Why the file does not pass, in sentences; none if it passes.

        In float32 each difference must be a near-tie, or a tie of the tokenizer. A file
        of int8, or of candidates that Keras did not have, is judged by what its users
        lose: with references neither BLEU nor chrF may be lower than Keras's by more
        than 0.3, or it must be chance: not significant, and no more sentences different
        than without references. Without references one sentence in twenty, and two
        standard deviations more, may differ by more than a near-tie (in int8 one at 8
        bits). Of several sentences half must end, and have translations of their own.
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
        if not self.quantized and self.shortlist is None:
            if self.far:
                share = f"{self.far} of {self.sentences} sentences"
                yield f"{share} differ by more than a tie."
            return
        lower = [metric for metric in self.metrics if metric.is_lower]
        if self.metrics and not lower:
            return
        for metric in lower:
            if metric.is_significantly_lower:
                yield f"The translations are worse than Keras's: {metric}."
        if self.far > _most_far(self.sentences):
            yield (
                f"{self.far} of {self.sentences} sentences, more than one in twenty, "
                f"differ by more than {self._tie}."
            )

    @property
    def _tie(self):
        return "a near-tie at 8 bits" if self.quantized else "a near-tie"

    def _texts_explained(self):
        """Whether each different text follows from different ids."""
        lines = {difference.line for difference in self.differences}
        return all(
            text.score_tie or (text.segmentations is None and text.line in lines)
            for text in self.text_differences
        )

    def __str__(self):
        verdict = "passed" if self.passed else "NOT PASSED"
        precision = self.precision if self.quantized else "float32"
        if self.shortlist is not None:
            precision += f", {self.shortlist} candidates"
        lines = [f"{self.kind}, {precision}, {self.size:,} bytes: {verdict}"]
        lines += [f"  {reason}" for reason in self.reasons]
        if self.custom_operators:
            return "\n".join([*lines, "Not run."])
        lines.append(
            f"{self.equal:,} of {self.sentences:,} sentences have Keras's ids, "
            f"{self.near_ties} differ by {self._tie} and {self.far} by more"
        )
        lines += map(str, self.differences)
        if self.text_differences:
            lines.append(f"{len(self.text_differences)} translations differ as text")
        lines += map(str, self.text_differences)
        return "\n".join([*lines, *self._figures()])

    def _figures(self):
        yield from map(str, self.metrics)
        if self.milliseconds:
            percent = np.percentile(self.milliseconds, (50, 90, 99))
            times = "/".join(f"{value:.1f}" for value in percent)
            yield f"{times} ms per sentence for 50/90/99 % of them, one thread"


def _most_far(sentences):
    """One sentence in twenty, and two standard deviations of that number."""
    return FAR_SHARE * sentences + 2 * math.sqrt(
        FAR_SHARE * (1 - FAR_SHARE) * sentences
    )

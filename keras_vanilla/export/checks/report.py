"""The result of a verification, and the verdict."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_LOSS = 0.3  # of BLEU or chrF: too little to notice
SIGNIFICANT = 0.05  # p-value below which a loss is more than chance
RESAMPLES = 1000
# The largest gap between two logits that rounding can reorder.
NEAR_TIE = 1e-4
NEAR_TIE_AT_8_BITS = 0.5  # weights, and the inputs of their products, in 8 bits
FAR_SHARE = 0.05  # of an int8 file's sentences that may differ by more


@dataclass(frozen=True)
class MetricComparison:
    """The value of a metric for an exported file and for Keras.

    Attributes:
        name: "BLEU" or "chrF".
        keras: float, 0 to 100.
        file: float, the same.
        p_value: float. Of the difference, by paired bootstrap resampling.
    """

    name: str
    keras: float
    file: float
    p_value: float

    def __str__(self):
        return (
            f"{self.name} {self.file:.2f}, in Keras {self.keras:.2f} "
            f"({self.file - self.keras:+.2f}, p = {self.p_value:.3f})"
        )


def compare_quality(
    keras_texts: Sequence[str], file_texts: Sequence[str], references: Sequence[str]
) -> tuple[MetricComparison, ...]:
    """Computes BLEU and chrF of both, and the significance of their difference.

    Args:
        keras_texts: list of str. Keras's translations.
        file_texts: list of str. The file's translations.
        references: list of str. Reference translations.
    Returns:
        Tuple of MetricComparison.
    Source: Koehn 2004, "Statistical Significance Tests for Machine Translation
        Evaluation", as in sacreBLEU.
    """
    from sacrebleu.metrics import BLEU, CHRF
    from sacrebleu.significance import PairedTest

    metrics = {"BLEU": BLEU(force=True), "chrF": CHRF()}
    systems = [("Keras", keras_texts), ("file", file_texts)]
    _, scores = PairedTest(systems, metrics, [references], "bs", RESAMPLES)()
    del scores["System"]  # a column of names; the others are in the metrics' order
    is_same = list(keras_texts) == list(file_texts)  # the p-value is not defined
    return tuple(
        MetricComparison(name, keras.score, file.score, 1.0 if is_same else p_value)
        for name, (keras, file) in zip(metrics, scores.values(), strict=True)
        for p_value in [float(file.p_value)]
    )


@dataclass(frozen=True)
class Difference:
    """A sentence whose target ids differ from Keras's.

    Attributes:
        line: int. Number of the sentence, from 1.
        position: int. Of the first id that differs, from 0.
        gap: float. Difference between Keras's logits of the two ids there; infinite if
            one sequence is longer, or an id is outside the vocabulary.
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
        received: str. The file's translation.
        tie: bool. Whether the tokenizers of Keras and of a SavedModel segment the
            sentence differently, with equal scores, so that both are correct.
    """

    line: int
    expected: str
    received: str
    tie: bool = False

    def __str__(self):
        why = ", a tie of two segmentations" if self.tie else ""
        return (
            f"  line {self.line}: {self.received!r} instead of {self.expected!r}{why}"
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of `verify`, which can be printed.

    Attributes:
        kind: "SavedModel" or "TFLite".
        size: int. Size in bytes.
        precision: "float32", "int8" or "int4".
        sentences: int. Number of sentences compared.
        differences: tuple of Difference.
        text_differences: tuple of TextDifference, for files that output text.
        faults: tuple of str. Faults in the file's structure.
        endless: int. Number of outputs without an end, in the file and in Keras.
        inputs: int. Number of distinct sentences.
        outputs: int. Number of distinct translations by Keras.
        milliseconds: tuple of float. Time per sentence of a `.tflite` file.
        metrics: tuple of MetricComparison; empty without references.
    """

    kind: str
    size: int
    precision: str
    sentences: int
    differences: tuple[Difference, ...] = ()
    text_differences: tuple[TextDifference, ...] = ()
    faults: tuple[str, ...] = ()
    endless: int = 0
    inputs: int = 0
    outputs: int = 0
    milliseconds: tuple[float, ...] = ()
    metrics: tuple[MetricComparison, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as a dict for JSON; its gaps may be infinite."""
        verdict = {"passed": self.passed, "reasons": self.reasons, "equal": self.equal}
        counts = {"near_ties": self.near_ties, "far": self.far}
        return verdict | counts | dataclasses.asdict(self)

    @property
    def quantized(self) -> bool:
        """True if weights are int8 or int4."""
        return self.precision != "float32"

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
        """Number of differences larger than a near-tie."""
        return len(self.differences) - self.near_ties

    @property
    def passed(self) -> bool:
        """True if the file translates as Keras does and has no faults."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """The reasons why the file does not pass, as sentences; empty if it passes.

        In float32, each difference must be a near-tie or a tie of the tokenizer. A
        quantised file may differ more. With references, it passes if neither BLEU nor
        chrF is more than 0.3 below Keras's. A larger loss must not be significant, and
        the limit without references applies as well: one sentence in twenty, plus two
        standard deviations, may differ by more than a near-tie (at 8 bits if
        quantised). The model must translate too, see `model_faults`.
        """
        return [*self.faults, *self._losses(), *self.model_faults]

    @property
    def model_faults(self) -> list[str]:
        """The reasons that lie in the model, whose translations the file repeats.

        If there are several sentences, at least half of the outputs must end, and at
        least half of the translations must be distinct.
        """
        reasons = []
        if self.sentences > 3 and self.endless > self.sentences / 2:
            reasons.append(f"{self.endless} of {self.sentences} outputs never end.")
        if self.inputs > 3 and self.outputs < self.inputs / 2:
            reasons.append(
                f"The source hardly matters: {self.inputs} different sentences have "
                f"{self.outputs} different translations."
            )
        return reasons

    def _losses(self) -> Iterator[str]:
        """Yields a sentence for each way in which translations differ too much."""
        lower = [each for each in self.metrics if each.keras - each.file > MOST_LOSS]
        for metric in lower:
            if self.quantized and metric.p_value < SIGNIFICANT:
                yield f"The translations are worse than Keras's: {metric}."
        most = 0
        if self.quantized:
            deviation = math.sqrt(FAR_SHARE * (1 - FAR_SHARE) * self.sentences)
            most = FAR_SHARE * self.sentences + 2 * deviation
        if self.far > most and (lower or not self.quantized or not self.metrics):
            yield (
                f"{self.far} of {self.sentences} sentences differ by more than "
                f"{self._tie}."
            )
        lines = {difference.line for difference in self.differences}
        if not all(text.tie or text.line in lines for text in self.text_differences):
            yield "Texts differ where ids do not."

    @property
    def _tie(self):
        return "a near-tie at 8 bits" if self.quantized else "a near-tie"

    def __str__(self):
        verdict = "passed" if self.passed else "NOT PASSED"
        lines = [f"{self.kind}, {self.precision}, {self.size:,} bytes: {verdict}"]
        lines += [f"  {reason}" for reason in self.reasons]
        lines.append(
            f"{self.equal:,} of {self.sentences:,} sentences have Keras's ids, "
            f"{self.near_ties} differ by {self._tie} and {self.far} by more"
        )
        lines += map(str, self.differences)
        if self.text_differences:
            lines.append(f"{len(self.text_differences)} translations differ as text")
        lines += map(str, [*self.text_differences, *self.metrics])
        if self.milliseconds:
            percent = np.percentile(self.milliseconds, (50, 90, 99))
            times = "/".join(f"{value:.1f}" for value in percent)
            lines.append(f"{times} ms per sentence for 50/90/99 % of them, one thread")
        return "\n".join(lines)

"""Compares BLEU and chrF of an exported file and of Keras."""

from collections.abc import Sequence
from dataclasses import dataclass

MOST_LOSS = 0.3  # of BLEU or chrF: too little to notice
SIGNIFICANT = 0.05  # p-value below which a loss is more than chance
RESAMPLES = 1000


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

    @property
    def is_lower(self) -> bool:
        """True if the file loses more than `MOST_LOSS`."""
        return self.keras - self.file > MOST_LOSS

    @property
    def is_significantly_lower(self) -> bool:
        """True if `is_lower` and the loss is significant."""
        return self.is_lower and self.p_value < SIGNIFICANT

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
    test = PairedTest(
        [("Keras", keras_texts), ("file", file_texts)],
        metrics,
        [references],
        test_type="bs",
        n_samples=RESAMPLES,
    )
    _, scores = test()
    del scores["System"]  # a column of names; the others are in the metrics' order
    is_same = list(keras_texts) == list(file_texts)  # undefined for equal texts
    return tuple(
        MetricComparison(
            name, keras.score, file.score, 1.0 if is_same else float(file.p_value)
        )
        for name, (keras, file) in zip(metrics, scores.values(), strict=True)
    )

"""Whether another machine says what this one says, with the same `.tflite` file."""

from itertools import takewhile

import numpy as np

from keras_vanilla import export

REQUIRED = {"float32": 1.0, "int8": 0.97}  # of the lines


def exported(translator, folder, **settings):
    """The path of a file of each precision."""
    files = {name: folder / f"{name}.tflite" for name in REQUIRED}
    for name, path in files.items():
        quantize = None if name == "float32" else name
        export.tflite(
            translator, path, quantize=quantize, check="structure", **settings
        )
    return files


class Comparison:
    """The translations of lines here and there; `str` is a report of the differences.

    Args:
        translator: Translator, which computes the logit gaps: at the first token that
            differs, the logit of the token from here minus that from there.
        lines: list of str.
        here, there: lists of str, their translations.
    Attributes:
        different: list of (number of the line, from 1, here, there, logit gap).
        share: float. Of the lines, those that are the same.
    """

    def __init__(self, translator, lines, here, there):
        self.count = len(lines)
        self.different = [
            (number, a, b, logit_gap(translator, line, a, b))
            for number, (line, a, b) in enumerate(
                zip(lines, here, there, strict=True), start=1
            )
            if a != b
        ]
        self.share = 1 - len(self.different) / self.count

    def __str__(self):
        same = self.count - len(self.different)
        rows = [f"{same} of {self.count} the same, {self.share:.1%}"]
        for number, a, b, gap in self.different:
            rows += [f"  line {number}", f"    here   {a}", f"    there  {b}"]
            rows += [f"    logit gap {gap:.3f}"]
        return "\n".join(rows)


def is_enough(precision, comparison):
    """Whether as many lines are the same as must be."""
    return comparison.share >= REQUIRED[precision]


def report(translator, lines, here, there):
    """Prints the comparisons, by precision; whether all are enough.

    Args:
        translator, lines: as of a `Comparison`.
        here, there: dicts of lists of str, the translations by precision.
    """
    comparisons = {
        name: Comparison(translator, lines, here[name], there[name]) for name in here
    }
    for name, comparison in comparisons.items():
        print(f"{name}: {comparison}")
    return all(is_enough(*item) for item in comparisons.items())


def logit_gap(translator, line, here, there):
    """How much higher the first token that differs is here, in Keras's logits."""
    model, tokenizer = translator.model, translator.tokenizer
    (source_ids,) = tokenizer.encode([line])
    a, b = tokenizer.encode_target([here, there])
    pairs = zip(a, b, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    inputs = {
        "source_ids": np.array([source_ids], "int32"),
        "target_ids": np.array([[model.start_id, *a[:same]]], "int32"),
    }
    logits = np.asarray(model(inputs))[0, -1]
    return float(logits[a[same]] - logits[b[same]])

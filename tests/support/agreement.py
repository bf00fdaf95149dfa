"""Whether another machine says what this one says, with the same `.tflite` file."""

from itertools import islice, takewhile

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import export

REQUIRED = {"float32": 1.0, "int8": 0.97}  # of the lines


def first_lines(path, count):
    """The first lines of a file."""
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, count)]


def exported(translator, folder, **settings):
    """The path of a file of each precision."""
    files = {name: folder / f"{name}.tflite" for name in REQUIRED}
    for name, path in files.items():
        quantize = None if name == "float32" else name
        export.tflite(
            translator, path, quantize=quantize, check="structure", **settings
        )
    return files


def translated(path, lines):
    """Each line's translation by this machine's LiteRT, in one thread."""
    run = Interpreter(str(path), num_threads=1).get_signature_runner("translate")
    (size,) = run.get_input_details()["text"]["shape"]
    padded = (line.encode().ljust(size, b"\0") for line in lines)
    texts = (run(text=np.frombuffer(text, "uint8"))["text"] for text in padded)
    return [text.tobytes().rstrip(b"\0").decode() for text in texts]


class Comparison:
    """The translations of lines here and there; `str` is a report of the differences.

    Args:
        translator: Translator, which computes the logit gaps: at the first token that
            differs, the logit of the token from here minus that from there.
        lines: list of str.
        here, there: lists of str, their translations.
    Attributes:
        different: list of (line, here, there, logit gap).
        share: float. Of the lines, those that are the same.
    """

    def __init__(self, translator, lines, here, there):
        self.count = len(lines)
        self.different = [
            (line, a, b, logit_gap(translator, line, a, b))
            for line, a, b in zip(lines, here, there, strict=True)
            if a != b
        ]
        self.share = 1 - len(self.different) / self.count

    def __str__(self):
        same = self.count - len(self.different)
        rows = [f"{same} of {self.count} the same, {self.share:.1%}"]
        for line, a, b, gap in self.different:
            rows += [f"  {line}", f"    here   {a}", f"    there  {b}"]
            rows += [f"    logit gap {gap:.3f}"]
        return "\n".join(rows)


def is_enough(precision, comparison):
    """Whether as many lines are the same as must be."""
    return comparison.share >= REQUIRED[precision]


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

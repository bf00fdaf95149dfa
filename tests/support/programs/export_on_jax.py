"""Exports a translator on JAX, in a process without TensorFlow: PATH FOLDER."""

import re
import sys
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_vanilla import Translator, export
from keras_vanilla.export.stablehlo import convert_form

LIMITS = {"max_source_length": 29, "max_length": 59}
SETTINGS = {
    "float32": {"quantize": None, "max_bytes": 160, "check": "all"},
    "int8": {"max_bytes": 160},
    "beams": {
        "quantize": None,
        "max_bytes": 160,
        "beam_size": 4,
        "outputs": ["alignment", "confidence"],
    },
    "inside": {"form": "inside", "max_bytes": 160, "quantize": None},
}
BYTES = np.arange(9, dtype="uint8")


def main(path, folder):
    translator = Translator.load(path)
    for name, settings in SETTINGS.items():
        settings = {"check": "structure", **LIMITS, **settings}
        export.tflite(translator, Path(folder) / f"{name}.tflite", **settings)
    for function, words in [
        (ops.sort, r"builtin operators only.* stablehlo\.sort"),
        (
            lambda x: ops.take(BYTES, ops.cast(x, "int32")),
            "cannot convert .*tfl.select",
        ),
    ]:
        try:
            convert_form(Form(function), translator.model, None)
        except RuntimeError as error:
            assert re.search(words, str(error)), error
        else:
            raise AssertionError(words)
    assert "tensorflow" not in sys.modules


class Form:
    """A form of one function of numbers."""

    def __init__(self, function):
        self._function = function

    def signatures(self):
        inputs = {"x": keras.KerasTensor((4,), "float32")}
        return {"translate": (lambda x: {"y": self._function(x)}, inputs)}


if __name__ == "__main__":
    main(*sys.argv[1:])

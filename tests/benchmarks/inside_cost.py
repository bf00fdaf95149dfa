"""What a file of the form 'inside' costs: its size, its encoder and a step.

    python tests/benchmarks/inside_cost.py MODEL.keras --text "Ein Hund rennt."

Of the float32 and the int8 file the size beside that of the text form, and the median
milliseconds of 20 calls of each signature, by LiteRT in two threads.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import Translator, export

CALLS = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a .keras file")
    parser.add_argument("--text", required=True)
    args = parser.parse_args()
    translator = Translator.load(args.model)
    for quantize in (None, "int8"):
        with tempfile.TemporaryDirectory() as folder:
            sizes = {}
            for form in ("text", "inside"):
                path = Path(folder, f"{form}.tflite")
                settings = {"form": form, "quantize": quantize, "check": "structure"}
                export.tflite(translator, path, **settings)
                sizes[form] = path.stat().st_size / 1e6
            encode, step = times(path, args.text)
        print(
            f"{quantize or 'float32'}: {sizes['inside']:.1f} MB (text form "
            f"{sizes['text']:.1f}), encode {encode:.1f} ms, a step {step:.2f} ms"
        )


def times(path, text):
    """Milliseconds of the two signatures."""
    interpreter = Interpreter(str(path), num_threads=2)
    encode = interpreter.get_signature_runner("encode")
    step = interpreter.get_signature_runner("decode_step")
    (size,) = encode.get_input_details()["text"]["shape"]
    octets = np.frombuffer(text.encode().ljust(size, b"\0"), "uint8")
    encoded = encode(text=octets)
    given = {
        name: encoded.get(name, np.zeros(tensor["shape"], tensor["dtype"]))
        for name, tensor in step.get_input_details().items()
    }
    return median(lambda: encode(text=octets)), median(lambda: step(**given))


def median(call):
    call()
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        taken.append(1e3 * (time.perf_counter() - began))
    return np.median(taken)


if __name__ == "__main__":
    main()

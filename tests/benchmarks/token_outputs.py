"""What `outputs=("alignment", "confidence")` costs a `.tflite` file in time and size.

    python tests/benchmarks/token_outputs.py MODEL.keras --source test.de

The files with and without translate each sentence in turns, in one thread. The time of
a sentence is the least processor time of nine calls.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import model_and_lines
import numpy as np
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import Translator, export

OUTPUTS = ((), ("alignment", "confidence"))
REPETITIONS = 9


def main():
    args = model_and_lines.parser(__doc__, lines=40).parse_args()
    translator = Translator.load(args.model)
    lines = model_and_lines.first_lines(args.source, args.lines)
    for beam_size in (1, 4):
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / f"{len(outputs)}.tflite" for outputs in OUTPUTS]
            for path, outputs in zip(paths, OUTPUTS, strict=True):
                settings = {"beam_size": beam_size, "outputs": outputs}
                export.tflite(translator, path, check="structure", **settings)
            without, with_outputs = least_times(paths, lines)
            more = paths[1].stat().st_size - paths[0].stat().st_size
        print(
            f"int8, beam {beam_size}: {without:.2f} and {with_outputs:.2f} ms per "
            f"sentence, {with_outputs / without:.3f} of the time, {more:,} bytes more"
        )


def least_times(paths, lines):
    """For each file the milliseconds per sentence."""
    runs = [
        Interpreter(str(path), num_threads=1).get_signature_runner("translate")
        for path in paths
    ]
    (size,) = runs[0].get_input_details()["text"]["shape"]
    least = np.full((len(runs), len(lines)), np.inf)
    for _ in range(REPETITIONS):
        for place, line in enumerate(lines):
            text = np.frombuffer(line.encode().ljust(size, b"\0"), "uint8")
            for row, run in enumerate(runs):
                began = time.process_time()
                run(text=text)
                least[row, place] = min(least[row, place], time.process_time() - began)
    return 1e3 * least.mean(axis=1)


if __name__ == "__main__":
    main()

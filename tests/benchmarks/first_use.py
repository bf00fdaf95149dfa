"""What a process computes before its first result, beside another version.

    python tests/benchmarks/first_use.py [--other CHECKOUT] [--turns 3]

A first translation, training step or export is mostly the time in which TensorFlow
traces a graph. Each row is the CPU time of one of them (medians), without the imports.
Each turn starts one process per version, so that a busy machine slows both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description="Measures first results.")
    parser.add_argument("--other", type=Path, help="a checkout of another version")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured()))
        return
    versions = {"here": ROOT, "other": options.other and options.other.resolve()}
    versions = {name: path for name, path in versions.items() if path}
    turns = {name: [] for name in versions}
    for _ in range(options.turns):
        for name, path in versions.items():
            turns[name].append(in_a_process(path))
    print(f"{'CPU seconds, medians':32}" + "".join(f"{name:>9}" for name in versions))
    for row in turns["here"][0]:
        medians = [statistics.median(t[row] for t in turns[n]) for n in versions]
        cells = "".join(f"{seconds:9.2f}" for seconds in medians)
        print(
            f"{row:32}{cells}" + f"{medians[0] / medians[-1]:9.2f}" * bool(medians[1:])
        )


def in_a_process(checkout):
    result = subprocess.run(
        [sys.executable, __file__, "--measure"],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def measured():
    """CPU seconds of each first result."""
    import keras

    from keras_vanilla import Transformer, Translator, export, training

    translator = Translator.from_preset("en-fr")
    text = "My brother has two black cats."
    model = Transformer.from_preset("small", source_vocabulary_size=1000)
    model.compile(
        training.transformer_optimizer(model.d_model),
        training.SmoothedCrossentropy(),
        jit_compile=False,
    )
    ids = keras.ops.convert_to_numpy(keras.ops.ones((2, 9), dtype="int32"))
    batch = {"source_ids": ids, "target_ids": ids}, ids
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.tflite"
        return {
            "translation, greedy": cpu_time(lambda: translator.translate([text])),
            "translation, 4 beams": cpu_time(
                lambda: translator.translate([text], beam_size=4)
            ),
            "training step, preset small": cpu_time(
                lambda: model.train_on_batch(*batch)
            ),
            "export of en-fr in int8": cpu_time(
                lambda: export.tflite(translator, path, check="structure")
            ),
        }


def cpu_time(function):
    times = os.times()
    begin = times.user + times.system
    function()
    times = os.times()
    return times.user + times.system - begin


if __name__ == "__main__":
    main()

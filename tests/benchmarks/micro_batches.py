"""The memory that the paper's batch takes, in one piece and in micro-batches.

    python tests/benchmarks/micro_batches.py

Trains two steps on a batch of about 25,000 source and as many target tokens on
TensorFlow, in a fresh process for each number of micro-batches. "peak" is the process's
largest resident memory; "before" is that with the model and its optimizer made, before
the first step. "step" is the second one's time, the first makes the graph.
"""

import argparse
import json
import resource
import subprocess
import sys
import time


def main():
    options = parse()
    if options.run is not None:
        print(json.dumps(measured(options, options.run)))
        return
    rows = options.tokens // options.width
    print(
        f"{options.preset}, {options.vocabulary_size} pieces, {rows} x {options.width} "
        "positions a side"
    )
    print(f"{'micro-batches':14}{'before MB':>12}{'peak MB':>12}{'step s':>10}")
    for count in options.counts:
        command = [sys.executable, __file__, *sys.argv[1:], "--run", str(count)]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        before, peak, seconds = json.loads(run.stdout.splitlines()[-1])
        print(f"{count:<14}{before:12.0f}{peak:12.0f}{seconds:10.1f}", flush=True)


def parse():
    parser = argparse.ArgumentParser(
        description="Measures the memory of one training step."
    )
    parser.add_argument("--preset", default="small")
    parser.add_argument("--vocabulary-size", type=int, default=8000)
    parser.add_argument("--tokens", type=int, default=25_000)
    parser.add_argument("--width", type=int, default=50)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--run", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def measured(options, count):
    """Megabytes before and at the peak, and seconds of the second step."""
    import numpy as np

    from keras_vanilla import Transformer
    from keras_vanilla.training import SmoothedCrossentropy, transformer_optimizer

    model = Transformer.from_preset(
        options.preset, source_vocabulary_size=options.vocabulary_size
    )
    optimizer = transformer_optimizer(model.d_model)
    loss = SmoothedCrossentropy(0.1)
    model.compile(optimizer, loss, micro_batches=count, jit_compile=False)
    optimizer.build(model.trainable_variables)
    shape = (options.tokens // options.width, options.width)
    ids = np.random.default_rng(0).integers(4, options.vocabulary_size, shape)
    inputs = {"source_ids": ids, "target_ids": ids}
    weights = np.ones(shape, "float32")
    before = megabytes()
    for _ in range(2):
        start = time.perf_counter()
        model.train_on_batch(inputs, ids, weights)
    return before, megabytes(), time.perf_counter() - start


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

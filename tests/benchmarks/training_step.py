"""Milliseconds of a training step, beside four other models of the same size.

    python tests/benchmarks/training_step.py --sizes small base --lengths 32 512

Each model runs in a process of its own; they take turns, so that a busy machine slows
all of them. `ratio` is our time over theirs; `tokens/s` counts the target's. `peak` is
the share of the rate at which the same library multiplies matrices of 2048 rows and
columns, measured in the same turns: the step's matrix products at that rate, over its
time. `GiB` is the largest memory of the process.
Packages that are not installed are left out: pip install ".[parity]" brings them.

On a GPU, where TensorFlow need not be installed:

    python tests/benchmarks/training_step.py --backend jax --tokens 25600 \\
        --sizes base big --lengths 32 --precisions bfloat16 --vocabulary 32000
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from training_peers import PEERS

from keras_vanilla.models.presets import preset_sizes

PACKAGES = {"keras_hub": "keras_hub", "torch": "torch", "torch_compiled": "torch"}


def main():
    options = parse()
    count = f"{options.tokens:,} source and as many target tokens per step"
    print(f"{count}, {options.vocabulary:,} pieces, Keras on {options.backend}")
    for size in options.sizes:
        for length in options.lengths:
            for precision in options.precisions:
                compare(size, length, precision, options)


def parse():
    parser = argparse.ArgumentParser(description="Times training steps.")
    parser.add_argument("--sizes", nargs="+", default=["small", "base"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[32, 512])
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--no-masks", action="store_true", help="in the peers")
    parser.add_argument("--backend", default="tensorflow")
    return parser.parse_args()


def compare(size, length, precision, options):
    settings = {
        "sizes": preset_sizes(size),
        "batch": options.tokens // length,
        "length": length,
        "vocabulary": options.vocabulary,
        "precision": precision,
        "masks": not options.no_masks,
    }
    workers = {
        peer: started(peer, settings, options.backend)
        for peer in options.peers
        if importlib.util.find_spec(PACKAGES.get(peer, "keras"))
    }
    print(f"\n{size}, {settings['batch']} x {length}, {precision}")
    names = "ms", "ratio", "tokens/s", "GFLOP/s", "peak", "GiB"
    print(" " * 16 + "".join(f"{name:>10}" for name in names))
    for peer, worker in list(workers.items()):
        if not worker.stdout.readline():
            print(f"{peer:16}  does not run")
            del workers[peer]
    turns = [turn(workers) for _ in range(options.turns)]
    work = products(settings)
    for peer in workers:
        seconds = statistics.median(each[peer]["seconds"] for each in turns)
        ours = statistics.median(each[options.peers[0]]["seconds"] for each in turns)
        rate = statistics.median(each[peer]["rate"] for each in turns)
        speed = options.tokens / seconds
        row = f"{1e3 * seconds:10.0f}{ours / seconds:10.2f}{speed:10,.0f}"
        row += f"{work / seconds:10.0f}{work / seconds / rate:10.0%}"
        print(f"{peer:16}{row}{turns[-1][peer]['memory']:10.2f}", flush=True)
    for worker in workers.values():
        worker.communicate()


def started(peer, settings, backend):
    """A worker, which makes itself ready."""
    command = [sys.executable, str(Path(__file__).with_name("training_peers.py"))]
    return subprocess.Popen(
        [*command, json.dumps({"peer": peer, **settings})],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "KERAS_BACKEND": backend},
        text=True,
    )


def turn(workers):
    """A step of each, and the rate of its library's matrix products."""
    results = {}
    for peer, worker in workers.items():
        results[peer] = asked(worker, "step") | {"rate": asked(worker, "matrix")}
    return results


def asked(worker, what):
    worker.stdin.write(what + "\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def products(settings):
    """GFLOP of a step's matrix products: forward, and twice that backward."""
    sizes, length = settings["sizes"], settings["length"]
    tokens = settings["batch"] * length
    width, inner = sizes["d_model"], sizes["d_ff"]
    projections = 4 * width**2
    attention = 2 * length * width  # queries x keys, and weights x values
    encoder = projections + attention + 2 * width * inner
    decoder = 2 * (projections + attention) + 2 * width * inner
    per_token = (
        sizes["num_encoder_layers"] * encoder
        + sizes["num_decoder_layers"] * decoder
        + width * settings["vocabulary"]
    )
    return 1e-9 * 3 * 2 * tokens * per_token


if __name__ == "__main__":
    main()

"""Lines a second of whole files: each kind of model, with one worker and with two.

    python tests/benchmarks/bulk_translation.py MODEL.keras INPUT [--repeats 8]
    python tests/benchmarks/bulk_translation.py MODEL.keras --made-up 1000000

The second form translates short made-up lines with two workers of Ray, kills one of
them with SIGKILL on the way, and checks that there are as many lines out as in. The
seconds are those of the whole command, so those in which Ray and the models start are
in them; the rate is of what follows the first file.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARDS = 8
WORDS = "one two three red green house tree river small large 1 2 3 4 5".split()


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        if options.made_up:
            survive(Path(folder), options)
        else:
            compare(Path(folder), options)


def parse():
    parser = argparse.ArgumentParser(description="Times translation of whole files.")
    parser.add_argument("model")
    parser.add_argument("input", nargs="?")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--made-up", type=int)
    parser.add_argument("--kinds", nargs="+")
    return parser.parse_args()


def compare(folder, options):
    """The table of kinds and workers."""
    lines = Path(options.input).read_text(encoding="utf-8").splitlines()
    for number in range(SHARDS):
        text = "\n".join(lines * max(1, options.repeats // SHARDS)) + "\n"
        (folder / f"part-{number}.txt").write_text(text, encoding="utf-8")
    print(
        f"{'':24}{'workers':>8}{'threads':>8}{'lines':>9}{'seconds':>9}{'lines/s':>9}"
    )
    for kind, model in models(Path(options.model), folder).items():
        if options.kinds and kind not in options.kinds:
            continue
        for workers in (1, 2):
            seconds, rate, total = timed(folder, model, workers, 2 // workers)
            row = f"{workers:8}{2 // workers:8}{total:9,}{seconds:9.0f}{rate:9.0f}"
            print(f"{kind:24}{row}", flush=True)


def models(path, folder):
    """The translator as each kind of model, in float32 where nothing is said."""
    from keras_vanilla import Translator
    from keras_vanilla.export import tflite

    translator = Translator.load(path).in_float32()
    paths = {
        "keras": folder / "float32.keras",
        "tflite int8": folder / "int8.tflite",
    }
    translator.save(paths["keras"])
    tflite(translator, paths["tflite int8"], quantize="int8", check="structure")
    return paths


def timed(folder, model, workers, threads):
    """Seconds of a run, lines/s after its first windows, and lines."""
    out = folder / f"out-{model.name}-{workers}"
    begin = time.perf_counter()
    process = started(folder, model, out, workers, threads)
    first = None
    while process.poll() is None:
        time.sleep(0.1)
        if first is None and done(out):
            first = time.perf_counter(), done(out)
    seconds = time.perf_counter() - begin
    total = done(out)
    check(folder, out, total)
    return seconds, (total - first[1]) / (begin + seconds - first[0]), total


def survive(folder, options):
    """A million made-up lines, and a worker that is killed."""
    draw = random.Random(0)
    for number in range(SHARDS):
        lengths = draw.choices(range(1, 5), k=options.made_up // SHARDS)
        texts = [" ".join(draw.choices(WORDS, k=length)) for length in lengths]
        (folder / f"part-{number}.txt").write_text("\n".join(texts) + "\n")
    kind = (options.kinds or ["tflite int8"])[0]
    model = models(Path(options.model), folder)[kind]
    out = folder / "out"
    begin = time.perf_counter()
    process = started(folder, model, out, 2, 1)
    while done(out) < options.made_up // 4:
        time.sleep(0.5)
    lock = sorted(out.glob(".translating/*/.lock"))[-1]
    worker = int(lock.read_text().split()[1])
    os.kill(worker, signal.SIGKILL)
    print(f"killed worker {worker} in {lock.parent.name}, after {done(out):,} lines")
    process.wait()
    seconds, total = time.perf_counter() - begin, done(out)
    check(folder, out, total)
    rate = total / seconds
    print(f"{kind}: {total:,} lines in and out, {seconds:.0f} s, {rate:.0f} lines/s")


def started(folder, model, out, workers, threads):
    command = [sys.executable, "-m", "keras_vanilla", "translate", str(model)]
    command += ["--input", str(folder / "part-*.txt"), "--output-dir", str(out)]
    command += ["--keep-going"]
    command += ["--engine", "ray", "--workers", str(workers)]
    return subprocess.Popen([*command, "--threads", str(threads)])


def done(out):
    """The lines that are translated."""
    return sum(path.read_bytes().count(b"\n") for path in out.glob("part-*"))


def check(folder, out, total):
    """As many lines in each file out as in."""
    counts = []
    for path in sorted(folder.glob("part-*.txt")):
        count = path.read_bytes().count(b"\n")
        assert (out / path.name).read_bytes().count(b"\n") == count, path
        counts.append(count)
    assert sum(counts) == total, (sum(counts), total)


if __name__ == "__main__":
    main()

"""Memory per pair and speed of the input pipeline, on generated pairs.

    python tests/benchmarks/pipeline_memory.py FOLDER

Text is generated into FOLDER (0.2 GB per million pairs, cache included), in files of
500,000 lines of which every fifth is gzipped. A token cache is made of it; its speed is
compared with `sentencepiece` alone, which encodes lines of the same text in the same
process. Then fresh processes, one after the other, plan the batches, draw the first
hundred, draw a hundred more across the end of the first epoch, and draw a hundred from
a `ParallelCorpus` of the first file in memory, for comparison.

Memory is the anonymous part of the resident memory (RssAnon), sampled every 5 ms: pages
of a mapped file are the system's cache of that file, and given up when memory is short.
"""

import argparse
import contextlib
import gzip
import itertools
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

LINES_PER_FILE = 500_000
STEPS = 100
MOST = 16  # bytes per pair
PHASES = "plan and first steps", "across an epoch's end"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help="one turn, as JSON")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.folder)))
        return
    counts = 10_000, options.pairs
    folders = [options.folder / str(pairs) for pairs in counts]
    for pairs, folder in zip(counts, folders, strict=True):
        make(pairs, folder)
    turns = [[in_fresh_process(f) for f in folders] for _ in range(options.turns)]
    raise SystemExit(not report(counts, turns))


def make(pairs, folder):
    from keras_vanilla.data import FileLines, TokenCache
    from keras_vanilla.tokenizer import Tokenizer

    folder.mkdir(parents=True, exist_ok=True)
    files = [generate(folder, n, pairs) for n in range(-(-pairs // LINES_PER_FILE))]
    sources, targets = zip(*files, strict=True)
    model = folder.parent / "tokenizer.model"
    if not model.exists():
        lines = FileLines(sources[0], targets[0])
        model.write_bytes(Tokenizer.train(lines, vocabulary_size=4000).source_model)
    tokenizer = Tokenizer.from_files(model)
    started = time.monotonic()
    cache = TokenCache.make(sources, targets, tokenizer, folder / "cache")
    speed = 2 * pairs / (time.monotonic() - started)
    alone = sentencepiece_speed(model, sources[0])
    size = sum(path.stat().st_size for path in (folder / "cache").iterdir())
    print(
        f"{len(cache):,} pairs in {len(files)} files: a cache of {size / 1e6:,.0f} MB, "
        f"{speed:,.0f} lines/s, {speed / alone:.2f} of sentencepiece alone",
        flush=True,
    )


def sentencepiece_speed(model, path):
    """Lines/s of `sentencepiece` on the first lines of a file, on all cores."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in itertools.islice(file, 200_000)]
    started = time.monotonic()
    for first in range(0, len(lines), 10_000):
        processor.encode(lines[first : first + 10_000])
    return len(lines) / (time.monotonic() - started)


def generate(folder, number, pairs):
    """Writes two files: phrases drawn by a seed, each line with its number."""
    draw = random.Random(number)
    syllables = ["".join(two) for two in itertools.product("bdfglmnprst", "aeiou")]
    words = ["".join(draw.choices(syllables, k=k % 4 + 1)) for k in range(4000)]
    phrases = [" ".join(draw.choices(words, k=k % 12 + 1)) for k in range(8192)]
    lines = range(number * LINES_PER_FILE, min(pairs, (number + 1) * LINES_PER_FILE))
    paths = []
    for side in ("source", "target"):
        suffix = ".gz" if number % 5 == 4 else ""
        paths.append(folder / f"{side}-{number:02d}.txt{suffix}")
        drawn = draw.choices(phrases, k=len(lines))
        write = gzip.open if suffix else open
        with write(paths[-1], "wt", encoding="utf-8") as file:
            file.writelines(f"{n} {p}\n" for n, p in zip(lines, drawn, strict=True))
    return paths


def in_fresh_process(folder):
    command = [sys.executable, __file__, "--measure", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measured(folder):
    """Growth of memory (bytes) in each phase, and seconds per batch."""
    from keras_vanilla.data import ParallelCorpus, TokenCache, batches
    from keras_vanilla.tokenizer import Tokenizer

    tokenizer = Tokenizer.from_files(folder.parent / "tokenizer.model")
    before = anonymous_memory()
    with peak_memory() as first_peak:
        started = time.monotonic()
        data = batches(TokenCache(folder / "cache"), tokenizer)
        planned = time.monotonic() - started
        seconds = draw(data)
    with peak_memory() as second_peak:
        data.start_at(max(0, data.steps_per_epoch - STEPS // 2))
        draw(data)
    files = [folder / f"{side}-00.txt" for side in ("source", "target")]
    in_memory = draw(batches(ParallelCorpus.from_files(*files), tokenizer))
    return {
        "growth": [first_peak[0] - before, second_peak[0] - before],
        "plan": planned,
        "first": seconds[0],
        "batch": statistics.median(seconds[1:]),
        "in_memory": statistics.median(in_memory[1:]),
        "steps": data.steps_per_epoch,
    }


def report(counts, turns):
    """Prints each turn, and whether the growth in each phase is at most `MOST`."""
    kept = True
    for number, turn in enumerate(turns, start=1):
        print(f"turn {number}")
        for pairs, found in zip(counts, turn, strict=True):
            print(
                f"  {pairs:9,} pairs: {found['steps']:,} steps per epoch, checked and "
                f"planned in {found['plan']:.2f} s; the first batch after "
                f"{found['first']:.2f} s, then {1000 * found['batch']:.2f} ms each "
                f"(median), {found['batch'] / found['in_memory']:.2f} of the time of a "
                "corpus in memory"
            )
        growths = zip(*(found["growth"] for found in turn), strict=True)
        for phase, (few, many) in zip(PHASES, growths, strict=True):
            growth = (many - few) / (counts[1] - counts[0])
            kept &= growth <= MOST
            print(f"  {phase}: {growth:.1f} bytes per pair")
    print(f"at most {MOST} bytes per pair: {'kept' if kept else 'BROKEN'}")
    return kept


def draw(data):
    """Seconds that each of the first steps took."""
    seconds, before = [], time.monotonic()
    for _ in itertools.islice(data, STEPS):
        seconds.append(time.monotonic() - before)
        before = time.monotonic()
    return seconds


@contextlib.contextmanager
def peak_memory():
    """A list that holds the largest anonymous memory of the block (bytes)."""
    peak, ended = [anonymous_memory()], threading.Event()

    def sample():
        while not ended.wait(0.005):
            peak[0] = max(peak[0], anonymous_memory())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield peak
    finally:
        ended.set()
        sampler.join()


def anonymous_memory():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


if __name__ == "__main__":
    main()

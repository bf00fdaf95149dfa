"""Memory of the input pipeline, a pair, from 10,000 to 5 million generated pairs.

    python tests/benchmarks/pipeline_memory.py FOLDER

Text is generated into FOLDER (1.4 GB, cache included), in shards of 500,000 lines of
which every fifth is gzipped, and a token cache made of it by two processes. Then fresh
processes, one after the other, plan the batches, draw the first hundred, draw a hundred
more across the end of the first epoch, and train a tiny model for a hundred steps. The
kernel's peak of resident memory is set back before the first of these, so that what
`import tensorflow` took for a moment hides nothing, and read after each.
"""

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

PAIRS = 10_000, 5_000_000
SHARD = 500_000
STEPS = 100
MOST = 16  # bytes a pair
PHASES = "plan and first steps", "across an epoch's end", "training"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help="one turn, as JSON")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.folder)))
        return
    folders = [options.folder / str(pairs) for pairs in PAIRS]
    for pairs, folder in zip(PAIRS, folders, strict=True):
        make(pairs, folder)
    turns = [[in_fresh_process(f) for f in folders] for _ in range(options.turns)]
    raise SystemExit(not report(turns))


def make(pairs, folder):
    from keras_vanilla.data import TokenCache
    from keras_vanilla.tokenizer import Tokenizer

    folder.mkdir(parents=True, exist_ok=True)
    shards = [generate(folder, n, pairs) for n in range(-(-pairs // SHARD))]
    sources, targets = zip(*shards, strict=True)
    lines = sum(Path(path).stat().st_size for path in (*sources, *targets))
    model = folder.parent / "tokenizer.model"
    if not model.exists():
        files = [sources[0], targets[0]]
        tokenizer = Tokenizer.train(files=files, vocabulary_size=4000)
        model.write_bytes(tokenizer.source_model)
    tokenizer = Tokenizer.from_files(model)
    started = time.monotonic()
    cache = TokenCache.make(sources, targets, tokenizer, folder / "cache", processes=2)
    seconds = time.monotonic() - started
    size = sum(path.stat().st_size for path in (folder / "cache").iterdir())
    print(
        f"{len(cache):,} pairs in {len(shards)} shards, {lines / 1e6:,.0f} MB: a cache "
        f"of {size / 1e6:,.0f} MB in {seconds:.1f} s, {pairs / seconds:,.0f} pairs/s",
        flush=True,
    )


def generate(folder, number, pairs):
    """The two files of a shard: phrases drawn by a seed, each line with its number."""
    import gzip

    draw = random.Random(number)
    syllables = ["".join(two) for two in itertools.product("bdfglmnprst", "aeiou")]
    words = ["".join(draw.choices(syllables, k=k % 4 + 1)) for k in range(4000)]
    phrases = [" ".join(draw.choices(words, k=k % 12 + 1)) for k in range(8192)]
    lines = range(number * SHARD, min(pairs, (number + 1) * SHARD))
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
    """Peaks of memory (bytes) after each phase, and the times of the first."""
    from keras_vanilla.data import TokenCache, batches
    from keras_vanilla.models.transformer import Transformer
    from keras_vanilla.tokenizer import Tokenizer
    from keras_vanilla.training import compile_for_training

    tokenizer = Tokenizer.from_files(folder.parent / "tokenizer.model")
    smallest = TokenCache.open(folder.parent / str(PAIRS[0]) / "cache")
    draw(batches(smallest, tokenizer))  # what TensorFlow allocates once
    forget_peak()
    started = time.monotonic()
    dataset = batches(TokenCache.open(folder / "cache"), tokenizer)
    planned = time.monotonic()
    seconds = draw(dataset)
    peaks = [peak()]
    dataset.start_at(max(0, dataset.steps_per_epoch - STEPS // 2))
    draw(dataset)
    peaks.append(peak())
    size = tokenizer.vocabulary_size
    model = Transformer.from_preset(
        "tiny", source_vocabulary_size=size, target_vocabulary_size=size
    )
    compile_for_training(model)
    dataset.start_at(0)
    history = model.fit(dataset, steps_per_epoch=STEPS, verbose=0).history
    return {
        "peaks": [*peaks, peak()],
        "plan": planned - started,
        "first": seconds[0],
        "batch": statistics.median(seconds[1:]),
        "steps": dataset.steps_per_epoch,
        "loss": history["token_crossentropy"][0],
    }


def report(turns):
    """Prints every turn, and whether the growth of each is at most `MOST`."""
    kept = True
    for number, turn in enumerate(turns, start=1):
        print(f"turn {number}")
        for pairs, found in zip(PAIRS, turn, strict=True):
            peaks = ", ".join(f"{size / 1e6:.1f}" for size in found["peaks"])
            print(
                f"  {pairs:9,} pairs: {found['steps']:,} steps an epoch, planned in "
                f"{found['plan']:.2f} s; the first batch after {found['first']:.2f} s, "
                f"then {1000 * found['batch']:.2f} ms each (median); peaks {peaks} MB; "
                f"cross-entropy of the steps trained {found['loss']:.3f}"
            )
        peaks = zip(*(found["peaks"] for found in turn), strict=True)
        for phase, (few, many) in zip(PHASES, peaks, strict=True):
            growth = (many - few) / (PAIRS[1] - PAIRS[0])
            kept &= growth <= MOST
            print(f"  {phase}: {growth:.1f} bytes a pair")
    print(f"at most {MOST} bytes a pair: {'kept' if kept else 'BROKEN'}")
    return kept


def draw(dataset):
    """How long each of the first steps took."""
    seconds, before = [], time.monotonic()
    for _ in itertools.islice(dataset, STEPS):
        seconds.append(time.monotonic() - before)
        before = time.monotonic()
    return seconds


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def peak():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


if __name__ == "__main__":
    main()

"""Lines a second: many at once, one at a time, and many at once in CTranslate2.

    python tests/benchmarks/translation_speed.py MODEL.keras INPUT

Each way is run once before it is timed, so that nothing is compiled while the clock
runs. They take turns, so that a busy machine slows all; the ratios are of medians.
CTranslate2 has the same weights in float32, if it is installed, and as many threads.
"""

import argparse
import importlib.util
import os
import statistics
import tempfile
import time
from pathlib import Path

LEAST = 5.0  # times the lines/s of one at a time
LENGTH_PENALTY = 1.0  # the default of CTranslate2


def main():
    options = parse()
    from keras_vanilla import Translator

    translator = Translator.load(options.model).in_float32()
    with open(options.input, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file][: options.lines]
    few = lines[:: max(1, len(lines) // options.alone)][: options.alone]
    print(f"{len(lines)} lines at once, {len(few)} of them one at a time; lines/s")
    names = "at once", "alone", "ratio", "CTranslate2", "ratio"
    print(f"{'beam':>6}" + "".join(f"{name:>12}" for name in names))
    broken = False
    for beam_size in options.beam_size:
        rates = speeds(translator, lines, few, beam_size, options.turns)
        together, alone, *peer = rates
        row = f"{beam_size:6}{together:12.1f}{alone:12.1f}{together / alone:12.2f}"
        row += "".join(f"{rate:12.1f}{together / rate:12.2f}" for rate in peer)
        print(row, flush=True)
        broken |= together / alone < LEAST
    print(f"at least {LEAST} times: {'BROKEN' if broken else 'kept'}")
    raise SystemExit(broken)


def parse():
    parser = argparse.ArgumentParser(description="Times translation of many lines.")
    parser.add_argument("model")
    parser.add_argument("input")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--alone", type=int, default=50)
    parser.add_argument("--beam-size", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--turns", type=int, default=3)
    return parser.parse_args()


def speeds(translator, lines, few, beam_size, turns):
    """Lines/s of each way, medians over the turns."""

    def together():
        translator.translate(lines, beam_size=beam_size)

    def alone():
        for line in few:
            translator.translate([line], beam_size=beam_size)

    runs = {together: lines, alone: few}
    if importlib.util.find_spec("ctranslate2"):
        runs[in_ctranslate2(translator, lines, beam_size)] = lines
    for run in runs:
        run()
    seconds = [[timed(run) for run in runs] for _ in range(turns)]
    medians = [statistics.median(column) for column in zip(*seconds, strict=True)]
    counts = map(len, runs.values())
    return [count / median for count, median in zip(counts, medians, strict=True)]


def in_ctranslate2(translator, lines, beam_size):
    """What translates the lines in CTranslate2."""
    import ctranslate2
    from sentencepiece import SentencePieceProcessor

    from keras_vanilla.interop import to_ctranslate2

    tokenizer = translator.tokenizer
    source, target = (
        SentencePieceProcessor(model_proto=model)
        for model in (tokenizer.source_model, tokenizer.target_model)
    )
    with tempfile.TemporaryDirectory() as folder:
        to_ctranslate2(translator, Path(folder, "model"))
        runtime = ctranslate2.Translator(
            str(Path(folder, "model")), intra_threads=os.cpu_count()
        )
    settings = {"beam_size": beam_size, "length_penalty": LENGTH_PENALTY}
    settings |= {"max_batch_size": 2048, "batch_type": "tokens"}

    def translate():
        results = runtime.translate_batch(
            source.encode(lines, out_type=str), max_input_length=0, **settings
        )
        return target.decode([result.hypotheses[0] for result in results])

    return translate


def timed(run):
    since = time.perf_counter()
    run()
    return time.perf_counter() - since


if __name__ == "__main__":
    main()

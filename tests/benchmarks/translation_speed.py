"""Lines a second: many at once against one at a time, the same lines, in turns.

    python tests/benchmarks/translation_speed.py MODEL.keras INPUT

Each way is run once before it is timed, so that nothing is compiled while the clock
runs. The two take turns, so that a busy machine slows both; the ratio is of medians.
"""

import argparse
import statistics
import time

LEAST = 5.0  # times the lines/s of one at a time


def main():
    options = parse()
    from keras_vanilla import Translator

    translator = Translator.load(options.model)
    with open(options.input, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file][: options.lines]
    few = lines[:: max(1, len(lines) // options.alone)][: options.alone]
    print(f"{len(lines)} lines at once, {len(few)} of them one at a time; lines/s")
    print(f"{'beam':>6}{'at once':>10}{'alone':>10}{'ratio':>8}")
    broken = False
    for beam_size in options.beam_size:
        together, alone = speeds(translator, lines, few, beam_size, options.turns)
        print(f"{beam_size:6}{together:10.1f}{alone:10.1f}{together / alone:8.2f}")
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
    """Lines/s of both ways, medians over the turns."""

    def together():
        translator.translate(lines, beam_size=beam_size)

    def alone():
        for line in few:
            translator.translate([line], beam_size=beam_size)

    for run in (together, alone):
        run()
    seconds = [[timed(together), timed(alone)] for _ in range(turns)]
    medians = [statistics.median(column) for column in zip(*seconds, strict=True)]
    return len(lines) / medians[0], len(few) / medians[1]


def timed(run):
    since = time.perf_counter()
    run()
    return time.perf_counter() - since


if __name__ == "__main__":
    main()

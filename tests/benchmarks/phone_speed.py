"""Text to text: a `.tflite` file beside SentencePiece + CTranslate2.

    python tests/benchmarks/phone_speed.py --presets small base --output table.txt

A translator's path, such as `opus-mt.keras`, stands for a preset as well.

One sentence at a time, of n tokens, its end included, to n tokens: lengths are forced,
and both have the same weights (see `phone_files.py`). The two take turns, so that a
busy machine slows both; the ratio is of medians, with the interval that holds it in 95
of 100 resamplings of the turns. `--clock cpu` counts what a busy machine makes the two
wait for no more, and adds up the threads. Memory is what a fresh process grows by (see
`phone_peers.py`). Needs ctranslate2, of the extra `parity`. A `--folder` keeps the
files for the next run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import phone_files
import phone_peers

WARM_UP = 5
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
PAUSE = 0.02  # threads of OpenMP spin for a while after a call
HEADER = (
    f"{'preset':15}{'weights':8}{'beam':>4}{'threads':>8}{'tokens':>7}"
    f"{'LiteRT ms':>11}{'p90':>8}{'CTranslate2':>13}{'p90':>8}{'ratio':>7}  95 %"
)


def main():
    options = parse()
    # The weights' converter is among the tests' own modules.
    sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))
    with tempfile.TemporaryDirectory() as temporary:
        table = rows(options, Path(options.folder or temporary))
        for row in table:
            print(row, flush=True)
            if options.output:
                with open(options.output, "a", encoding="utf-8") as file:
                    print(row, file=file)


def parse():
    parser = argparse.ArgumentParser(description="Times exported files, text to text.")
    parser.add_argument("--presets", nargs="+", default=["small", "base"])
    parser.add_argument("--quantize", nargs="+", default=["int8", "none"])
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--lengths", type=int, nargs="+", default=[5, 20, 50, 100, 200])
    parser.add_argument("--runs", type=int, default=30, help="calls of each")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--source", help="text, instead of made words")
    parser.add_argument("--folder", help="keeps the files; those there are used")
    parser.add_argument("--output", help="file that the table is added to")
    return parser.parse_args()


def rows(options, root):
    """The table, row by row."""
    lines = source_lines(options.source)
    limits = phone_files.limits(max(options.lengths))
    yield f"{options.runs} calls of each in turns, {options.clock} clock"
    yield ", ".join(f"{name} {value}" for name, value in limits.items())
    yield HEADER
    for preset in options.presets:
        for weights in options.quantize:
            folder = root / f"{Path(preset).stem}-{limits['max_length']}" / weights
            quantize = None if weights == "none" else weights
            phone_files.make(folder, preset, quantize, options.beams, limits, lines)
            texts = {
                n: phone_files.text_of(folder, n, limits["max_bytes"], lines)
                for n in options.lengths
            }
            for beam_size in options.beams:
                label = f"{Path(preset).stem:15}{weights:8}{beam_size:4}"
                yield from timed_rows(options, folder, beam_size, texts, label)
                yield from memory_rows(folder, beam_size, texts, label)


def source_lines(path):
    if path is None:
        return phone_files.made_lines()
    return Path(path).read_text(encoding="utf-8").splitlines()


def timed_rows(options, folder, beam_size, texts, label):
    for threads in options.threads:
        peers = [
            peer(folder, beam_size, threads) for peer in phone_peers.PEERS.values()
        ]
        for length, text in texts.items():
            times = in_turns(peers, text, length, options)
            yield f"{label}{threads:8}{length:7}" + compared(times)


def memory_rows(folder, beam_size, texts, label):
    for name, peer in phone_peers.PEERS.items():
        command = [sys.executable, phone_peers.__file__, name, folder, str(beam_size)]
        output = subprocess.run(
            command,
            input=json.dumps(list(texts.values())),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        opened, first, all_ = [
            f"+{size:.0f} ({mapped:.0f})" for size, mapped in json.loads(output)
        ]
        yield (
            f"{label} {name}: {peer.size(folder, beam_size) / 1e6:.1f} MB on disk; "
            f"MiB of memory (of files in it): {opened} opened, {first} after a call, "
            f"{all_} after one of each length"
        )


def in_turns(peers, text, length, options):
    """Milliseconds of each call: an array (runs, 2)."""
    now, times = CLOCKS[options.clock], []
    for _ in range(WARM_UP + options.runs):
        times.append([])
        for peer in peers:
            time.sleep(PAUSE)
            since = now()
            _, tokens = peer(text)
            times[-1].append(1e3 * (now() - since))
            if tokens != length:
                raise RuntimeError(f"{peer.name} said {tokens} tokens, not {length}")
    return np.array(times[WARM_UP:])


def compared(times):
    """Medians and 90th percentiles of both, their ratio and its interval."""
    medians, slow = np.median(times, axis=0), np.percentile(times, 90, axis=0)
    draws = np.random.default_rng(0).integers(len(times), size=(2000, len(times)))
    resampled = np.median(times[draws], axis=1)  # (draws, 2)
    low, high = np.percentile(resampled[:, 0] / resampled[:, 1], [2.5, 97.5])
    return (
        f"{medians[0]:11.2f}{slow[0]:8.2f}{medians[1]:13.2f}{slow[1]:8.2f}"
        f"{medians[0] / medians[1]:7.2f}  {low:.2f}-{high:.2f}"
    )


if __name__ == "__main__":
    main()

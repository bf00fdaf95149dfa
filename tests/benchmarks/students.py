"""Size, time and BLEU of a teacher's and its students' files, as a table and a picture.

    python tests/benchmarks/students.py FOLDER teacher/translator.keras \
        phone/translator.keras phone-tiny/translator.keras \
        --source test2016.de --reference test2016.en --picture students.png

The first model is the one that the others are compared with. All of a model is measured
on its `.tflite` files of the form "text", in one thread of LiteRT:

- MB: the file on disk, greedy.
- ms: a text of 20 tokens, its end included, to 20 tokens (lengths are forced, see
  `phone_files.py`), greedy. All files take turns; the median of the processor's time,
  and the file of the first model in the same weights, divided by it.
- BLEU: cased (sacreBLEU's defaults), of all lines, greedy and with 5 beams.
- tokens: of a reference, its end included. A smaller vocabulary needs more of them.

What is in FOLDER already is used again, so that the command continues where it was
stopped. A model is named after its folder.
"""

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import phone_files
import phone_peers

BEAM_SIZE, LENGTH, WARM_UP = 5, 20, 3
HEADER = (
    f"{'model':<16}{'weights':<10}{'parameters':>12}{'MB':>7}{'ms':>7}{'times':>7}"
    f"{'greedy':>8}{'5 beams':>9}{'tokens':>8}"
)


def main():
    options = parsed()
    found = []
    for path in options.models:
        for weights in options.weights:
            found.append(made(path, weights, options))
    for row, times in zip(found, in_turns(found, options.runs), strict=True):
        row["ms"] = float(np.median(times))
    first = {row["weights"]: row["ms"] for row in reversed(found)}
    first.update((row["weights"], row["ms"]) for row in found[: len(options.weights)])
    print(HEADER)
    for row in found:
        print(
            f"{row['model']:<16}{row['weights']:<10}{row['parameters']:>12,}"
            f"{row['mb']:7.2f}{row['ms']:7.2f}{first[row['weights']] / row['ms']:7.2f}"
            f"{row['bleu']['1']:8.2f}{row['bleu'][str(BEAM_SIZE)]:9.2f}"
            f"{row['tokens']:8.1f}"
        )
    if options.picture:
        picture(found).savefig(options.picture, dpi=150)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("folder", type=Path)
    add("models", type=Path, nargs="+", metavar="MODEL.keras")
    add("--source", type=Path, required=True)
    add("--reference", type=Path, required=True)
    add("--weights", nargs="+", default=["int8", "int4"])
    add("--runs", type=int, default=100, help="calls of each")
    add("--picture", type=Path, help="file that the picture is written to")
    return parser.parse_args()


def made(path, weights, options):
    """What is known of a model's files without a clock; makes what is not there."""
    name = path.parent.name
    folder = options.folder / name / weights
    known = folder / "quality.json"
    if not known.exists():
        folder.mkdir(parents=True, exist_ok=True)
        row = measured(path, weights, folder, options)
        known.write_text(json.dumps(row))
        print(name, row, flush=True)
    row = json.loads(known.read_text())
    return {"model": name, "weights": weights, "folder": folder, **row}


def measured(path, weights, folder, options):
    from keras_vanilla import Translator, export

    translator = Translator.load(path).in_float32()  # else export copies it
    references = lines_of(options.reference)
    ids = translator.tokenizer.encode_target(references)
    settings = {"quantize": weights, "check": "structure"}
    row = {
        "parameters": translator.model.count_params(),
        "tokens": float(np.mean([len(each) for each in ids])),
        "bleu": {},
    }
    for beam_size in (1, BEAM_SIZE):
        file = folder / f"said-{beam_size}.tflite"
        export.tflite(translator, file, beam_size=beam_size, max_bytes=1024, **settings)
        row["bleu"][str(beam_size)] = bleu_of(file, options)
        if beam_size == 1:
            row["mb"] = file.stat().st_size / 1e6
    tokenizer = folder.parent / phone_peers.TOKENIZER
    tokenizer.write_bytes(translator.tokenizer.source_model)
    timed = folder / phone_peers.TEXT_FILE.format(1)
    with phone_files.forced_lengths():
        export.tflite(translator, timed, **settings)
    return row


def bleu_of(file, options):
    from keras_vanilla.export.checks.runners import TfliteFile
    from keras_vanilla.translation.evaluation import bleu_and_chrf

    exported = TfliteFile(file)
    said = [exported.translate_text(text)[1] for text in lines_of(options.source)]
    return bleu_and_chrf(said, lines_of(options.reference)).bleu


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def in_turns(found, runs):
    """Milliseconds of the processor for each file: an array (files, runs)."""
    lines = phone_files.made_lines()
    peers = [phone_peers.LiteRT(row["folder"], 1) for row in found]
    texts = [phone_files.text_of(row["folder"], LENGTH, 512, lines) for row in found]
    times = []
    for _ in range(WARM_UP + runs):
        times.append([])
        for peer, text in zip(peers, texts, strict=True):
            since = time.process_time()
            _, tokens = peer(text)
            times[-1].append(1e3 * (time.process_time() - since))
            if tokens != LENGTH:
                raise RuntimeError(f"A file said {tokens} tokens, not {LENGTH}")
    return np.array(times[WARM_UP:]).T


def picture(found):
    """BLEU on Multi30k test2016, greedy, over size and over time."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from keras_vanilla.plots.style import PARTS

    figure = Figure((10, 4.2), layout="constrained")
    panels = ("mb", "MB on disk"), ("ms", "ms for a text of 20 tokens")
    first = found[0]
    grey = {"color": "#bbbbbb", "zorder": 0}
    for ax, (key, x_axis) in zip(figure.subplots(1, 2), panels, strict=True):
        x = np.array([row[key] for row in found])
        y = np.array([row["bleu"]["1"] for row in found])
        best = [i for i in np.argsort(x) if not np.any((x < x[i]) & (y >= y[i]))]
        ax.plot(x[best], y[best], **grey)
        for i, row in enumerate(found):
            color = PARTS["decoder" if row["model"] == first["model"] else "K"].dark
            fill = color if row["weights"] == first["weights"] else "white"
            ax.plot(x[i], y[i], "o", color=color, markerfacecolor=fill)
            same = [j for j, each in enumerate(found) if each["model"] == row["model"]]
            if i == same[0]:
                ax.plot(x[same], y[same], ":", color=color, zorder=0)
                on_line = [j for j in same if j in best]  # names are on its free side
                place = min(on_line or same, key=lambda j: x[j] if on_line else -x[j])
                ax.annotate(
                    row["model"],
                    (x[place], y[place]),
                    xytext=(-8, 3) if on_line else (8, -3),
                    textcoords="offset points",
                    horizontalalignment="right" if on_line else "left",
                    verticalalignment="bottom" if on_line else "top",
                )
        ax.set(title="Multi30k test2016, greedy", xlabel=x_axis, ylabel="BLEU")
        ax.margins(0.22, 0.12)
    others = sorted({row["weights"] for row in found} - {first["weights"]})
    dots = {"marker": "o", "linestyle": "", "color": PARTS["K"].dark}
    key = [
        Line2D([], [], **dots, label=first["weights"]),
        Line2D([], [], **dots, markerfacecolor="white", label=", ".join(others)),
        Line2D([], [], **grey, label="best up to its size or time"),
    ]
    ax.legend(handles=key, loc="lower right")
    return figure


if __name__ == "__main__":
    main()

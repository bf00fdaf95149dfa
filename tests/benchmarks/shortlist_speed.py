"""Files with a shortlist beside files of the whole vocabulary: time, text to text.

    python tests/benchmarks/shortlist_speed.py --preset base --sizes 1024 512 256

Weights and suggestions are drawn at random, and a bias keeps the end away: a file for n
tokens says n tokens. The files, int8, take turns in one thread; the ratio is of the
medians, whole vocabulary / shortlist.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import numpy as np
import phone_files
from phone_files import CERTAIN
from phone_peers import TOKENIZER
from text_form import TextForm

from keras_vanilla import Transformer, Translator, export
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation import Shortlist
from keras_vanilla.translation.shortlist import SUGGESTIONS

WARM_UP = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="base", choices=["small", "base"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 512, 256])
    parser.add_argument("--lengths", type=int, nargs="+", default=[5, 20, 100])
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--runs", type=int, default=15, help="calls of each")
    options = parser.parse_args()
    lines = phone_files.made_lines()
    columns = "".join(f"{f'{size} ms':>12}{'ratio':>7}" for size in options.sizes)
    print(f"{options.runs} calls of each in turns, wall clock, one thread, int8")
    print(f"{'preset':8}{'beam':>4}{'tokens':>7}{'whole ms':>11}{columns}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "files"
        folder.mkdir()
        translator = untrained(options.preset, lines, folder)
        for beam_size in options.beams:
            for length in options.lengths:
                times = measured(translator, folder, beam_size, length, lines, options)
                whole, *others = np.median(times, axis=0)
                cells = "".join(f"{ms:12.2f}{whole / ms:7.2f}" for ms in others)
                row = f"{options.preset:8}{beam_size:4}{length:7}{whole:11.2f}{cells}"
                print(row, flush=True)


def untrained(preset, lines, folder):
    size = phone_files.VOCABULARY_SIZES[preset]
    tokenizer = Tokenizer.train(lines=lines, vocabulary_size=size)
    (folder.parent / TOKENIZER).write_bytes(tokenizer.source_model)
    model = Transformer.from_preset(
        preset,
        source_vocabulary_size=tokenizer.vocabulary_size,
        forbidden_ids=[tokenizer.pad_id],
        output_bias=True,
    )
    never = np.zeros(tokenizer.vocabulary_size)
    never[tokenizer.end_id] = -CERTAIN
    model.logits_bias.bias.assign(never)
    return Translator(tokenizer, model)


def measured(translator, folder, beam_size, length, lines, options):
    """Milliseconds of each call: an array (runs, 1 + number of sizes)."""
    text = phone_files.text_of(folder, length, phone_files.USUAL_BYTES, lines)
    files = []
    for size in (None, *options.sizes):
        path = folder / f"{size}.tflite"
        export.tflite(
            translator,
            path,
            beam_size=beam_size,
            max_length=length,
            shortlist=size and random_shortlist(translator.model, size),
            check="structure",
        )
        files.append(TextForm(path))
        path.unlink()
        path.with_suffix(".md").unlink()
    times = np.zeros((WARM_UP + options.runs, len(files)))
    for row in times:
        for place, file in enumerate(files):
            began = time.perf_counter()
            ids = file(text)["ids"]
            row[place] = 1e3 * (time.perf_counter() - began)
            assert np.count_nonzero(ids) == length, ids
    return times[WARM_UP:]


def random_shortlist(model, size):
    draw = np.random.default_rng(0)
    sizes = model.source_vocabulary_size, model.target_vocabulary_size
    likely = draw.integers(4, sizes[1], (sizes[0], SUGGESTIONS))
    return Shortlist(likely.astype("int32"), np.arange(sizes[1], dtype="int32"), size)


if __name__ == "__main__":
    main()

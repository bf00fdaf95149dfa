"""What the page that looks inside computes, beside Keras and the one-call file.

    npm ci --ignore-scripts --prefix export/web
    python tests/benchmarks/inside_page.py MODEL.keras --source test.de

Two sites are written, in float32 and in int8, and read by Chromium with LiteRT.js, in
one thread. For each: the largest difference of an attention weight from Keras's; how
many translations, by greedy search and with 4 beams, are those of a file that
translates in one call, run by LiteRT in Python; and the milliseconds of the encoder and
of a step. Exits with 1 if a weight in float32 differs by more than 0.001, or the median
step takes more than 50 ms.
"""

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import browser_agreement
import model_and_lines
import numpy as np
from translate_texts import translated

from keras_vanilla import Translator, export
from keras_vanilla.web.site import write_site

BEAMS, TOLERANCE, MOST_MILLISECONDS = 4, 1e-3, 50
PRECISIONS = {"float32": None, "int8": "int8"}


def main():
    args = browser_agreement.arguments(__doc__, lines=50)
    translator = Translator.load(args.model).in_float32()
    lines = model_and_lines.first_lines(args.source, args.lines)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        sites = {name: written(translator, folder, name) for name in PRECISIONS}
        here = {name: in_one_call(folder, name, lines) for name in PRECISIONS}
        there = in_browser(sites, lines, args.browser, folder)
    fine = [report(translator, lines, name, here[name], there[name]) for name in there]
    sys.exit(not all(fine))


def written(translator, folder, name):
    """A site, and beside it a file of each search."""
    settings = {"quantize": PRECISIONS[name], "check": "structure"}
    site = folder / name
    write_site(translator, site, str(browser_agreement.WEB), **settings)
    for beams in (1, BEAMS):
        path = folder / f"{name}-{beams}.tflite"
        export.tflite(translator, path, beam_size=beams, **settings)
    return site


def in_one_call(folder, name, lines):
    """The translations of the one-call files, by search."""
    paths = {"greedy": folder / f"{name}-1.tflite"}
    paths["beams"] = folder / f"{name}-{BEAMS}.tflite"
    return {search: translated(path, lines) for search, path in paths.items()}


def in_browser(sites, lines, browser, folder):
    """What the page computes of each line, for each site."""
    with ExitStack() as stack:
        urls = {
            name: stack.enter_context(browser_agreement.Served(site, None))
            for name, site in sites.items()
        }
        setting = {"urls": urls, "lines": lines, "beams": BEAMS}
        return browser_agreement.driven("inside_cost.mjs", setting, browser, folder)


def report(translator, lines, name, here, there):
    """Prints what was found of a site; returns whether it is as it should be."""
    searches = ", ".join(
        f"{search} {sum(map(str.__eq__, here[search], (x[search] for x in there)))}"
        for search in here
    )
    pairs = zip(lines, there, strict=True)
    largest = max(largest_difference(translator, *pair) for pair in pairs)
    steps = np.concatenate([each["milliseconds"] for each in there])
    encoder = [each["encoderMilliseconds"] for each in there]
    print(
        f"{name}: of {len(lines)} translations as in one call: {searches}; largest "
        f"difference of a weight {largest:.1e}; encoder {np.median(encoder):.0f} ms, "
        f"a step {np.median(steps):.1f} ms "
        f"(95 % below {np.quantile(steps, 0.95):.1f})"
    )
    exact = name != "float32" or largest <= TOLERANCE
    return exact and np.median(steps) <= MOST_MILLISECONDS


def largest_difference(translator, text, found):
    """The largest difference of an attention weight of a text from Keras's."""
    model = translator.model
    (source,) = translator.encode([text])
    target = [model.start_id, *found["ids"][:-1]]
    ids = {"source_ids": [source], "target_ids": [target]}
    arrays = {name: np.array(rows, np.int32) for name, rows in ids.items()}
    differences = []
    for name, expected in model.attention_weights(arrays).items():
        expected = np.asarray(expected)[0]
        side, layer, *part = name.split("/")
        if side == "encoder":
            got = np.reshape(found["encoder"][int(layer)], expected.shape)
        else:
            got = np.zeros_like(expected)
            for row, step in enumerate(found[part[0]]):
                heads = np.array(step[int(layer)])
                got[:, row, : heads.shape[1]] = heads
        differences.append(np.abs(got - expected).max())
    return max(differences)


if __name__ == "__main__":
    main()

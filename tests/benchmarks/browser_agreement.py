"""Whether a browser says what Python says, with the same `.tflite` file.

    npm ci --ignore-scripts --prefix export/web
    python tests/benchmarks/browser_agreement.py MODEL.keras --source test.de

The model is exported in float32 and in int8. Each line is translated by LiteRT's
interpreter in Python and by LiteRT.js in Chromium, each with one thread. For each
difference the logit gap: at the first token that differs, the model's logit (in Keras,
in float32) of Python's token minus that of the browser's. Exits with 1 if a line
differs in float32, or more than 3 % do in int8.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from itertools import islice, takewhile
from pathlib import Path
from threading import Thread

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import Translator, export
from keras_vanilla.web.runtime import runtime_folder
from keras_vanilla.web.server import PageServer

WEB = Path(__file__).resolve().parents[2] / "export" / "web"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = {"float32": 1.0, "int8": 0.97}  # of the lines


def main():
    args = arguments()
    translator = Translator.load(args.model)
    with open(args.source, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in islice(file, args.lines)]
    browser = shutil.which(args.browser)
    version = subprocess.run([browser, "--version"], capture_output=True, text=True)
    print(f"{len(lines)} lines; {version.stdout.strip()}")
    with tempfile.TemporaryDirectory() as folder:
        files = exported(translator, Path(folder))
        python = {name: in_python(path, lines) for name, path in files.items()}
        chromium = in_browser(files, lines, browser, Path(folder))
    results = [
        report(translator, name, lines, python[name], chromium[name]) for name in files
    ]
    sys.exit(not all(results))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a .keras file")
    parser.add_argument("--source", required=True, help="one sentence per line")
    parser.add_argument("--lines", type=int, default=300, help="the first ones (300)")
    parser.add_argument(
        "--browser",
        default=os.environ.get("KERAS_VANILLA_CHROMIUM")
        or next(filter(shutil.which, BROWSERS), BROWSERS[0]),
    )
    return parser.parse_args()


def exported(translator, folder):
    """The file of each precision."""
    files = {name: folder / f"{name}.tflite" for name in REQUIRED}
    for name, path in files.items():
        quantize = None if name == "float32" else name
        export.tflite(translator, path, quantize=quantize, check="structure")
    return files


def in_python(path, lines):
    """Each line's translation by LiteRT's interpreter."""
    run = Interpreter(str(path), num_threads=1).get_signature_runner("translate")
    (size,) = run.get_input_details()["text"]["shape"]
    padded = (line.encode().ljust(size, b"\0") for line in lines)
    texts = (run(text=np.frombuffer(text, "uint8"))["text"] for text in padded)
    return [text.tobytes().rstrip(b"\0").decode() for text in texts]


def in_browser(files, lines, browser, folder):
    """Each line's translation by LiteRT.js, for each file."""
    setting = {"chromium": browser, "screenshots": str(folder), "lines": lines}
    with ExitStack() as stack:
        setting["urls"] = {
            name: stack.enter_context(Served(path)) for name, path in files.items()
        }
        setting["results"] = str(folder / "results.json")
        path = folder / "setting.json"
        path.write_text(json.dumps(setting), encoding="utf-8")
        subprocess.run(
            ["node", "--test", WEB / "test" / "agreement.mjs"],
            env=os.environ | {"KERAS_VANILLA_WEB_TEST": str(path)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


class Served(PageServer):
    """A server of the page, in a thread."""

    def __init__(self, path):
        super().__init__(path, runtime_folder(WEB))

    def __enter__(self):
        Thread(target=self.serve_forever, daemon=True).start()
        return self.url

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


def report(translator, name, lines, python, chromium):
    """Prints a file's differences; whether they are few enough."""
    triples = zip(lines, python, chromium, strict=True)
    different = [(line, a, b) for line, a, b in triples if a != b]
    agreed = len(lines) - len(different)
    print(f"\n{name}: {agreed} of {len(lines)} the same, {agreed / len(lines):.1%}")
    for line, a, b in different:
        print(f"  {line}")
        print(f"    Python   {a}")
        print(f"    browser  {b}")
        print(f"    logit gap {logit_gap(translator, line, a, b):.3f}")
    return agreed >= REQUIRED[name] * len(lines)


def logit_gap(translator, line, python, chromium):
    """How much higher the logit of Python's token is, where the first two differ."""
    model, tokenizer = translator.model, translator.tokenizer
    (source_ids,) = tokenizer.encode([line])
    a, b = tokenizer.encode_target([python, chromium])
    same = len(
        list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    )
    inputs = {
        "source_ids": np.array([source_ids], "int32"),
        "target_ids": np.array([[model.start_id, *a[:same]]], "int32"),
    }
    logits = np.asarray(model(inputs))[0, -1]
    return logits[a[same]] - logits[b[same]]


if __name__ == "__main__":
    main()

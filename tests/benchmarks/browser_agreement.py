"""Whether a browser says what Python says, with the same `.tflite` file.

    npm ci --ignore-scripts --prefix export/web
    python tests/benchmarks/browser_agreement.py MODEL.keras --source test.de

The model is exported in float32 and in int8. Each line is translated by LiteRT's
interpreter in Python and by LiteRT.js in Chromium, each with one thread. For each
difference the logit gap: at the first token that differs, the model's logit (in Keras,
in float32) of Python's token minus that of the browser's. Exits with 1 if a line
differs in float32, or more than 3 % do in int8.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import agreement
import model_and_lines
from translate_texts import translated

from keras_vanilla import Translator
from keras_vanilla.web.runtime import runtime_folder
from keras_vanilla.web.server import PageServer

WEB = Path(__file__).resolve().parents[2] / "export" / "web"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main():
    args = arguments(__doc__, lines=300)
    translator = Translator.load(args.model)
    lines = model_and_lines.first_lines(args.source, args.lines)
    browser = args.browser
    version = subprocess.run([browser, "--version"], capture_output=True, text=True)
    print(f"{len(lines)} lines; {version.stdout.strip()}")
    with tempfile.TemporaryDirectory() as folder:
        files = agreement.exported(translator, Path(folder))
        here = {name: translated(path, lines) for name, path in files.items()}
        there = in_browser(files, lines, browser, Path(folder))
    sys.exit(not agreement.report(translator, lines, here, there))


def arguments(description, lines):
    parser = model_and_lines.parser(description, lines=lines)
    parser.add_argument(
        "--browser",
        default=os.environ.get("KERAS_VANILLA_CHROMIUM")
        or next(filter(shutil.which, BROWSERS), BROWSERS[0]),
    )
    args = parser.parse_args()
    args.browser = shutil.which(args.browser)
    return args


def in_browser(files, lines, browser, folder):
    """Each line's translation by LiteRT.js, for each file."""
    runtime = runtime_folder(WEB)
    with ExitStack() as stack:
        urls = {
            name: stack.enter_context(Served(path, runtime))
            for name, path in files.items()
        }
        setting = {"urls": urls, "lines": lines}
        return driven("agreement.mjs", setting, browser, folder)


def driven(script, setting, browser, folder):
    """What a script of export/web/test writes as its results."""
    results, path = folder / "results.json", folder / "setting.json"
    paths = {"chromium": browser, "screenshots": str(folder), "results": str(results)}
    path.write_text(json.dumps(setting | paths), encoding="utf-8")
    subprocess.run(
        ["node", "--test", WEB / "test" / script],
        env=os.environ | {"KERAS_VANILLA_WEB_TEST": str(path)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return json.loads(results.read_text(encoding="utf-8"))


class Served(PageServer):
    """A server of the page, in a thread."""

    def __enter__(self):
        Thread(target=self.serve_forever, daemon=True).start()
        return self.url

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


if __name__ == "__main__":
    main()

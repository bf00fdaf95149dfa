"""`keras-vanilla caller`: copies a program that runs exported files to a new folder."""

import argparse
import json
import os
import shutil
from pathlib import Path

from keras_vanilla._atomic_write import atomic_path, refuse_unwritable
from keras_vanilla.cli.console import add_command, quoted

NEXT_STEPS = {
    "python": """\
    pip install ai-edge-litert numpy
    python {folder}/translate.py FILE.tflite "A sentence."
""",
    "android": """\
    Add Translator.kt, Sentences.kt, Tokens.kt and Doubts.kt to the sources of your app,
    the dependencies that Translator.kt names to build.gradle.kts, and FILE.tflite to
    app/src/main/assets.
""",
    "ios": """\
    Add Translator.swift, Sentences.swift, Tokens.swift, Doubts.swift, FILE.tflite and
    one of the two runtimes, LiteRTModel.swift or TensorFlowLiteModel.swift, to your app
    in Xcode.
""",
    "web": """\
    npm pack {folder}
    npm install ./keras-vanilla-web-{version}.tgz  # in the folder of your app
""",
}
NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules", "dist", "public")


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands,
        "caller",
        run,
        "copy a program that runs .tflite files: for Python, Android, iOS or the web",
        needs_keras=False,
    )
    command.add_argument("platform", choices=NEXT_STEPS, help="what it is for")
    command.add_argument("folder", metavar="DIR", help="a folder that does not exist")


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla._version import __version__

    folder = Path(options.folder)
    refuse_unwritable(folder)
    with atomic_path(folder, overwrite=False, parents=True) as temporary:
        _copy(options.platform, temporary)
    names = sorted(path.name for path in folder.iterdir())
    print(f"Wrote {folder}: {', '.join(names)}. README.md is the guide.")
    path = str(folder) if folder.is_absolute() else f".{os.sep}{folder}"
    steps = NEXT_STEPS[options.platform]
    print("Next:")
    print(steps.format(folder=quoted(path), version=__version__), end="")


def _copy(platform, folder):
    """Copies the caller of a platform, and its guide, to a new folder."""
    package = Path(__file__).parents[1]
    callers = package / "callers"  # in a wheel: setup.cfg, `package_dir`
    if not callers.is_dir():
        callers = package.parent / "export"
    source, copy, guide = callers / platform, folder, callers / "README.md"
    if platform == "web":  # the files in the npm package, and the pinned LiteRT.js
        from keras_vanilla.web.runtime import PAGE, PINS

        files = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))["files"]
        folder.mkdir()
        for name in (*PINS, *files):
            shutil.copyfile(PAGE / name, folder / name)
        source, copy = callers / "web" / "example", folder / "example"
        guide = callers / "web" / "README.md"
    shutil.copytree(source, copy, ignore=NOT_COPIED, copy_function=shutil.copyfile)
    shutil.copyfile(guide, folder / "README.md")

"""The oldest TensorFlow Lite that runs each kind of file, found by running old wheels.

    python tests/benchmarks/old_runtimes.py --output old-runtimes.txt

Each runtime is installed from PyPI into an environment of its own (an old TensorFlow
takes 1.5 GB) and translates sentences with each file, greedily and with a beam. A file
runs if the texts are those of the LiteRT that is installed here: all in float32; 97 %
in int8, where kernels may round otherwise. `--folder` keeps files and environments.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

RUNTIMES = [
    "tensorflow-cpu==2.12.1",
    "tensorflow-cpu==2.13.1",
    "tflite-runtime==2.14.0",
    "tensorflow-cpu==2.15.1",
    "tensorflow-cpu==2.16.2",
    "tensorflow-cpu==2.17.1",
    "ai-edge-litert==1.0.1",
    "ai-edge-litert==1.4.0",
    "ai-edge-litert==2.1.0",
]
FILES = {
    "float32": {"quantize": None},
    "int8": {},
    "int4": {"quantize": "int4"},
}
LIMITS = {"max_bytes": 160, "max_source_length": 29, "max_length": 59}
SENTENCES = 60
ENOUGH = 0.97  # of an int8 file's sentences
SUPPORT = Path(__file__).resolve().parents[1] / "support"


def main():
    parser = argparse.ArgumentParser(description="Runs files in old runtimes.")
    parser.add_argument("--folder", help="keeps the files; those there are used")
    parser.add_argument("--output", help="file that the table is written to")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        table = "\n".join(rows(folder))
    print(table)
    if options.output:
        Path(options.output).write_text(table + "\n", encoding="utf-8")


def rows(folder):
    """The table, a line for each runtime and file."""
    sys.path.extend(map(str, SUPPORT.glob("**/")))
    import word_reversal
    from translate_texts import translated_elsewhere

    texts = word_reversal.english_sentences(SENTENCES, seed=1)
    paths = make_files(folder)
    expected = translated_elsewhere([sys.executable], paths.values(), texts)
    yield f"{SENTENCES} sentences, greedy and with beam 4, as the installed LiteRT says"
    for requirement in RUNTIMES:
        python = environment(folder, requirement)
        received = translated_elsewhere([python], paths.values(), texts)
        for name in FILES:
            verdicts = [
                verdict(name, *pair)
                for key, *pair in zip(paths, expected, received, strict=True)
                if key[0] == name
            ]
            yield f"{requirement:24}{name:29}{'; '.join(dict.fromkeys(verdicts))}"


def make_files(folder):
    """The files' paths, by kind and beam size; those that are not there are written."""
    import word_reversal

    from keras_vanilla import export

    folder.mkdir(parents=True, exist_ok=True)
    paths = {
        (name, beam_size): folder / f"file-{number}-beam-{beam_size}.tflite"
        for number, name in enumerate(FILES)
        for beam_size in (1, 4)
    }
    missing = {key: path for key, path in paths.items() if not path.exists()}
    translator = word_reversal.train_translator() if missing else None
    for (name, beam_size), path in missing.items():
        settings = {**LIMITS, "beam_size": beam_size, "check": "structure"}
        export.tflite(translator, path, **settings, **FILES[name])
    return paths


def environment(folder, requirement):
    """The Python of an environment with a runtime, which is installed if missing."""
    place = folder / requirement.replace("==", "-")
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        command = [python, "-m", "pip", "install", "--quiet", requirement, "numpy<2"]
        subprocess.run(command, check=True)
    return python


def verdict(name, expected, received):
    """Whether a file runs, in words."""
    if isinstance(received, str):
        return f"refused: {received}"
    equal = sum(map(str.__eq__, expected, received))
    least = SENTENCES if name == "float32" else ENOUGH * SENTENCES
    return f"{'runs' if equal >= least else 'WRONG'}, {equal} of {SENTENCES}"


if __name__ == "__main__":
    main()

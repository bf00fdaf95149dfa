"""Translates texts with `.tflite` files, in this Python or in another one.

As a program it translates the texts of standard input, a JSON list, with each file that
it is given. It runs in any Python that has NumPy and a runtime of TensorFlow Lite, of
any age.
"""

import json
import subprocess
import sys

import numpy as np


def translated(path, texts):
    """The translations of the texts by this Python's runtime, in one thread."""
    interpreter = _interpreter()(model_path=str(path), num_threads=1)
    run = interpreter.get_signature_runner("translate")
    (size,) = run.get_input_details()["text"]["shape"]
    padded = [text.encode().ljust(size, bytes(1)) for text in texts]
    outputs = [run(text=np.frombuffer(each, np.uint8)) for each in padded]
    return [each["text"].tobytes().rstrip(bytes(1)).decode() for each in outputs]


def translated_elsewhere(python, paths, texts, **settings):
    """For each file the translations by another Python, or why it does not run.

    Args:
        python: list of str, the command that runs Python.
        settings: of `subprocess.run`.
    """
    result = subprocess.run(
        [*python, __file__, *paths],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        **settings,
    )
    answers = [
        json.loads(line[len(_ANSWER) :])
        for line in result.stdout.splitlines()
        if line.startswith(_ANSWER)
    ]
    if result.returncode or len(answers) != len(paths):
        raise RuntimeError(f"{python}: {result.stderr[-3000:]}")
    return answers


_ANSWER = "answer "


def _interpreter():
    try:
        from tflite_runtime.interpreter import Interpreter
    except ImportError:
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError:
            from tensorflow.lite.python.interpreter import Interpreter
    return Interpreter


def main():
    texts = json.load(sys.stdin)
    for path in sys.argv[1:]:
        try:
            answer = translated(path, texts)
        except (ValueError, RuntimeError) as error:
            answer = str(error).splitlines()[0].split(". ")[0]
        print(_ANSWER + json.dumps(answer))


if __name__ == "__main__":
    main()

"""Translates with one .tflite file of keras_vanilla: pip install ai-edge-litert numpy.

python translate.py FILE.tflite [TEXT ...]      without a text, lines of standard input
"""

import hashlib
import re
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from doubts import doubts_of  # the files beside this one
from sentences import joined, sentences
from words import Word, words_of_sentence, words_of_text


class Translation(NamedTuple):
    """Truncated: a sentence reached the file's longest output before its end.

    A file without `--outputs` gives no words. What speaks against a sentence is in
    `doubts`, see `doubts_of`.
    """

    text: str
    truncated: bool
    words: list[Word]
    doubts: list[str]


class Translator:
    """Texts to translations; threads take turns, for each calls the same runtime."""

    def __init__(self, path, threads=1):
        if not isinstance(threads, int) or threads < 1:
            raise ValueError(f"`threads` must be at least 1. Received: {threads!r}")
        self._lock = threading.Lock()
        try:
            content = Path(path).read_bytes()
            refuse_damage(content)
            end = re.search(rb'"end_id": (\d+)', content)  # in its description
            self._end_id = int(end[1]) if end else None  # None in version 0.5.0
            interpreter = Interpreter(str(path), num_threads=threads)
            self._run = interpreter.get_signature_runner("translate")
            (self.max_bytes,) = self._run.get_input_details()["text"]["shape"]
            self.translate_sentence("")  # damage is seen now, not at the first text
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            raise ValueError(f"{path} is missing, damaged or no translator.") from error

    def __call__(self, text):
        """The Translation of a text, sentence by sentence; its lines stay lines."""
        refuse_other_types(text)
        lines = re.split(r"(?<=\n)", text)
        pieces = [piece for line in lines for piece in sentences(line)]
        blank = Translation("", False, [], [])
        results = [
            self.translate_sentence(piece) if piece.strip() else blank
            for piece in pieces
        ]
        whole = joined(pieces, [result.text for result in results])
        truncated = any(result.truncated for result in results)
        doubts = list(dict.fromkeys(x for result in results for x in result.doubts))
        words = words_of_text(whole, pieces, results)
        return Translation(whole, truncated, words, doubts)

    def translate_sentence(self, text):
        """The Translation of one sentence."""
        refuse_other_types(text)
        octets = text.encode().rstrip()
        if len(octets) > self.max_bytes:
            limit = f"at most {self.max_bytes}"
            raise ValueError(f"A sentence has {len(octets)} bytes, {limit}.")
        padded = octets.ljust(self.max_bytes, b"\0")
        with self._lock:
            if self._run is None:
                raise ValueError("The translator is closed.")
            result = self._run(text=np.frombuffer(padded, np.uint8))
        if np.isnan(result["score"]):
            raise ValueError("A sentence has more tokens than the file takes.")
        translation = result["text"].tobytes().rstrip(b"\0").decode()
        has_end = self._end_id is None or self._end_id in result["ids"]
        words = words_of_sentence(text, translation, result)
        truncated = bool(translation) and not has_end
        judged = (result.get(name) for name in ("probability", "known"))
        doubts = doubts_of(text, translation, *judged) if octets else []
        return Translation(translation, truncated, words, doubts)

    def close(self):
        """Frees the memory, after the call that is running."""
        with self._lock:
            self._run = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def refuse_other_types(text):
    """Every method that takes a text raises this TypeError."""
    if not isinstance(text, str):
        raise TypeError(f"`text` must be a str. Received: {text!r}")


def refuse_damage(content):
    """The last 32 bytes are a checksum of the others; version 0.5.0 wrote none."""
    digest = hashlib.sha256(content[:-32]).digest()
    if b"keras_vanilla_sha256" in content and digest != content[-32:]:
        raise ValueError("The file does not have its checksum.")


if __name__ == "__main__":
    try:
        translate = Translator(sys.argv[1])
        for text in sys.argv[2:] or sys.stdin:
            result = translate(text)
            print(result.text, flush=True)
            if result.truncated:
                print(f"The translation is cut off: {result.text}", file=sys.stderr)
            if result.doubts:
                print(f"Doubtful: {', '.join(result.doubts)}", file=sys.stderr)
    except (ValueError, RuntimeError, OSError, IndexError) as error:
        sys.exit(str(error) if sys.argv[1:] else __doc__)

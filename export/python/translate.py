"""Translates with one .tflite file of keras_vanilla: pip install ai-edge-litert numpy.

python translate.py FILE.tflite [TEXT ...]      without a text, lines of standard input
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter


class Translator:
    """Text in, text out; zeros are no text where a text ends with them."""

    def __init__(self, path):
        try:
            refuse_damage(Path(path).read_bytes())
            self._run = Interpreter(str(path)).get_signature_runner("translate")
            (self.max_bytes,) = self._run.get_input_details()["text"]["shape"]
            self("")  # all that is damaged is seen here, not at the first text
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            raise ValueError(f"{path} is missing, damaged or no translator.") from error

    def __call__(self, text):
        octets = text.encode()
        if len(octets) > self.max_bytes:
            raise ValueError(f"{len(octets)} bytes of text, at most {self.max_bytes}.")
        padded = octets.ljust(self.max_bytes, b"\0")
        result = self._run(text=np.frombuffer(padded, np.uint8))
        if np.isnan(result["score"]):
            raise ValueError("The text has more tokens than the file takes.")
        return result["text"].tobytes().rstrip(b"\0").decode()


def refuse_damage(content):
    """The last 32 bytes are a checksum of the others; version 0.5.0 wrote none."""
    digest = hashlib.sha256(content[:-32]).digest()
    if b"keras_vanilla_sha256" in content and digest != content[-32:]:
        raise ValueError("The file does not have its checksum.")


if __name__ == "__main__":
    try:
        translate = Translator(sys.argv[1])
        for text in sys.argv[2:] or sys.stdin:
            print(translate(text.rstrip("\n")), flush=True)
    except (ValueError, RuntimeError, OSError, IndexError) as error:
        sys.exit(str(error) if sys.argv[1:] else __doc__)

"""The text form of a `.tflite` file, called as an app would."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter


class TextForm:
    """The signature `translate` of a file.

    Call arguments:
        text: str or bytes.
    Returns:
        dict of the signature's outputs; of them "text" is a str.
    """

    def __init__(self, path):
        self.interpreter = Interpreter(model_path=str(path))
        self.run = self.interpreter.get_signature_runner("translate")
        self.max_bytes = self.run.get_input_details()["text"]["shape"][0]

    def __call__(self, text):
        text = text.encode() if isinstance(text, str) else text
        octets = np.frombuffer(text.ljust(self.max_bytes, b"\0"), "uint8")
        outputs = self.run(text=octets)
        outputs["text"] = outputs["text"].tobytes().rstrip(b"\0").decode()
        return outputs

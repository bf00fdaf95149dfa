"""Translates the texts of standard input, a JSON list, with each of some files.

Runs in any Python that has NumPy and a runtime of TensorFlow Lite, of any age.
"""

import json
import sys

import numpy as np

try:
    from tflite_runtime.interpreter import Interpreter
except ImportError:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        from tensorflow.lite.python.interpreter import Interpreter

texts = json.load(sys.stdin)
for path in sys.argv[1:]:
    try:
        run = Interpreter(model_path=path).get_signature_runner("translate")
        (size,) = run.get_input_details()["text"]["shape"]
        padded = [text.encode().ljust(size, bytes(1)) for text in texts]
        outputs = [run(text=np.frombuffer(each, np.uint8)) for each in padded]
        answer = [each["text"].tobytes().rstrip(bytes(1)).decode() for each in outputs]
    except (ValueError, RuntimeError) as error:
        answer = str(error).splitlines()[0].split(". ")[0]
    print("answer", json.dumps(answer))

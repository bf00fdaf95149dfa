"""Whether ARM says what this processor says, with the same `.tflite` file.

    .ci/arm FOLDER
    KERAS_VANILLA_ARM=FOLDER python tests/benchmarks/arm_agreement.py MODEL.keras \\
        --source test.de

The model is exported in float32 and in int8. Each line is translated by LiteRT here and
by LiteRT on an emulated Cortex-A76, each with one thread. For each difference the logit
gap: at the first token that differs, the model's logit (in Keras, in float32) of the
token from here minus that of the other. Exits with 1 if a line differs in float32, or
more than 3 % do in int8.
"""

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import agreement
import arm_machine
import model_and_lines
from translate_texts import translated

from keras_vanilla import Translator


def main():
    parser = model_and_lines.parser(__doc__, lines=300)
    args = parser.parse_args()
    if reason := arm_machine.why_not():
        sys.exit(reason)
    translator = Translator.load(args.model)
    lines = model_and_lines.first_lines(args.source, args.lines)
    with tempfile.TemporaryDirectory() as folder:
        files = agreement.exported(translator, Path(folder))
        here = {name: translated(path, lines) for name, path in files.items()}
        there = arm_machine.translated(files.values(), lines)
    there = dict(zip(files, there, strict=True))
    sys.exit(not agreement.report(translator, lines, here, there))


if __name__ == "__main__":
    main()

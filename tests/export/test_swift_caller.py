"""The callers for iOS: compiled by Swift's compiler, and run beside stubs.

The stubs have what they use of the modules of Apple and of the runtimes, as documented;
their model gives a text back in capitals. The compiler is Debian 13's `swiftlang`;
elsewhere KERAS_VANILLA_SWIFT_ROOT names the root folder of such a Debian, in which this
checkout and /tmp are mounted.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

STUBS = Path(__file__).with_name("swift")
GUIDE = STUBS.parents[2] / "export" / "README.md"
CALLERS = STUBS.parents[2] / "export" / "ios"
SENTENCES = STUBS.parents[1] / "support" / "sentences.txt"
DOUBTS = SENTENCES.with_name("doubts.tsv")
FILES = "Translator", "Sentences", "Tokens", "Doubts"
ROOT = os.environ.get("KERAS_VANILLA_SWIFT_ROOT")
EXPECTED = {
    "threads": "2",
    "text": r"ONE TWO. THREE FOUR!\n\nFIVE\nSIX. false",
    "chinese": "一二。三 false",
    "nothing": " false",
    "wrong sentences": "[]",
    "wrong doubts": "[]",
    "cut": "ONE. CUT IT. TWO true",
    "bytes": "tooManyBytes(limit: 40)",
    "tokens": "tooManyTokens",
    "own": "true",
    "cancelled": "CancellationError()",
    "after": "STILL THERE false",
    "closed": "closed",
    "tokens of": "GRÖSSE,1..<6,0.5| 猫.,6..<9,0.33333334|"
    "X,12..<13,0.5| Y,13..<15,0.33333334",
    "tokens without": "[]",
    "doubts of": '["unlikely", "unchanged", "unknown"]',
}
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        ROOT is None and shutil.which("swiftc") is None,
        reason="there is no Swift compiler: Debian 13's package is swiftlang",
    ),
]


def run(*command):
    """The output of a program beside Swift's compiler."""
    where = ["env", "HOME=/tmp"]
    if ROOT:
        where = ["chroot", ROOT, "/usr/bin/env", "HOME=/tmp", "PATH=/usr/bin:/bin"]
    command = [*where, *map(str, command)]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600)
    assert result.returncode == 0, result.stderr
    return result.stdout


def compile_module(name, folder, *sources):
    """A module of stubs, as a library."""
    run(
        *("swiftc", "-emit-library", "-emit-module", "-module-name", name),
        *("-o", folder / f"lib{name}.so"),
        *("-emit-module-path", folder / f"{name}.swiftmodule"),
        *(STUBS / source for source in sources),
    )


@pytest.mark.parametrize("language", ["5", "6"])
@pytest.mark.parametrize("runtime", ["TensorFlowLite", "LiteRT"])
def test_it_compiles_and_does_what_the_guide_says(runtime, language, tmp_path):
    compile_module(runtime, tmp_path, f"{runtime}.swift", "Echo.swift")
    example = tmp_path / "update.swift"
    _, code = re.findall(r"```swift\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    example.write_text(f"import FoundationNetworking\n{code}")  # Linux has it apart
    compile_module("CryptoKit", tmp_path, "CryptoKit.swift")
    run(
        *("swiftc", "-swift-version", language, "-warnings-as-errors"),
        *("-I", tmp_path, "-L", tmp_path, f"-l{runtime}", "-lCryptoKit"),
        *("-Xlinker", "-rpath", "-Xlinker", tmp_path, "-o", tmp_path / "program"),
        *(CALLERS / f"{name}.swift" for name in FILES),
        CALLERS / f"{runtime}Model.swift",
        *(STUBS / "main.swift", example),
    )
    file = tmp_path / "translator.tflite"
    file.write_bytes(bytes(99_999) + b'{"version": "9", "end_id": 3}' + bytes(32))
    linked = shutil.copy(file, tmp_path / "tokens.tflite")
    output = run(tmp_path / "program", file, linked, SENTENCES, DOUBTS)
    assert dict(line.split(": ", 1) for line in output.splitlines()) == EXPECTED

"""Android's caller: compiled by Kotlin's compiler, and run beside stubs.

The stubs have what it uses of Android and of LiteRT as these are documented; the text
goes through an interpreter that gives it back in capitals. The compiler is in npm:
`npm ci --prefix tests/export/kotlin`.
"""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("kotlin")
GUIDE = FOLDER.parents[2] / "export" / "README.md"
CALLERS = (FOLDER.parents[2] / "export" / "android").glob("*.kt")
SENTENCES = FOLDER.parents[1] / "support" / "sentences.txt"
DOUBTS = SENTENCES.with_name("doubts.tsv")
COMPILER = FOLDER / "node_modules" / "kotlin-compiler"
LIBRARIES = [
    COMPILER / "lib" / f"{name}.jar"
    for name in ("kotlin-stdlib", "kotlinx-coroutines-core-jvm")
]
EXPECTED = {
    "text": r"Translation(text=ONE TWO. THREE FOUR!\n\nFIVE\nSIX., "
    "truncated=false, tokens=[], doubts=[UNCHANGED])",
    "chinese": "Translation(text=一二。三, truncated=false, tokens=[], "
    "doubts=[UNCHANGED])",
    "nothing": "Translation(text=, truncated=false, tokens=[], doubts=[])",
    "wrong sentences": "[]",
    "wrong doubts": "[]",
    "cut": "Translation(text=ONE. CUT IT. TWO, truncated=true, tokens=[], "
    "doubts=[UNCHANGED])",
    "bytes": "A sentence has 41 bytes, at most 40",
    "tokens": "A sentence has more tokens than the file takes",
    "asset": "ONE. TWO",
    "threads": "[3, 1]",
    "own": "true",
    "updated": "true",
    "refused": "true",
    "cancelled": "true",
    "after": "Translation(text=STILL THERE, truncated=false, tokens=[], "
    "doubts=[UNCHANGED])",
    "tokens of": "GRÜSSE,1,6,0.5| 猫.,6,9,0.33333334|X,12,13,0.5| Y,13,15,0.33333334",
    "doubts of": "[UNLIKELY, UNCHANGED, UNKNOWN]",
    "closed": "The translator is closed",
    "open": "0",
}
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The folder of the classes, and what the compiler says."""
    if shutil.which("java") is None:
        pytest.skip("there is no Java, which Kotlin's compiler needs")
    if not COMPILER.exists():
        pytest.skip("the compiler is missing: npm ci --prefix tests/export/kotlin")
    classes = tmp_path_factory.mktemp("classes")
    names = ["kotlin-compiler", "kotlin-reflect", "kotlin-script-runtime"]
    jars = [*(COMPILER / "lib" / f"{name}.jar" for name in names), *LIBRARIES]
    command = [
        "java",
        "-cp",
        joined(jars),
        "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
    ]
    command += ["-kotlin-home", COMPILER, "-no-reflect", "-cp", LIBRARIES[1]]
    example = tmp_path_factory.mktemp("guide") / "Update.kt"
    _, code = re.findall(r"```kotlin\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    example.write_text(code)
    command += ["-d", classes, *CALLERS, example, *FOLDER.glob("*.kt")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return classes, result.stderr


def joined(paths):
    return ":".join(map(str, paths))


def test_it_compiles_without_a_warning(compiled):
    assert "warning" not in compiled[1] and "error" not in compiled[1]


def test_it_does_what_the_guide_says(compiled, tmp_path):
    file = tmp_path / "translator.tflite"
    file.write_bytes(bytes(99_999) + b'{"version": "9", "end_id": 3}' + bytes(32))
    command = ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"]
    command += ["-cp", joined([compiled[0], *LIBRARIES]), "MainKt", str(file)]
    command += [hashlib.sha256(file.read_bytes()).hexdigest(), str(SENTENCES)]
    command += [str(DOUBTS)]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    assert result.returncode == 0, result.stderr
    answers = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert answers == EXPECTED

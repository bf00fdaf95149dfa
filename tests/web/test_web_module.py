"""The module of the page: its parts, its types, in Node.js, and as its guide says."""

import dataclasses
import hashlib
import random
import re
import shutil
import subprocess

import echo_file
import pytest
from marked_texts import CASES, marked_case, marked_in_python
from web_setting import (
    ECHOED,
    FOLDER,
    NEEDS_NODE,
    described_by_0_5,
    hosted,
    in_python,
    installed,
    node,
    with_one_other_byte,
)

from keras_vanilla.export import read_description
from keras_vanilla.web.runtime import PAGE

pytestmark = pytest.mark.full


@NEEDS_NODE
def test_modules_without_browser(echo, tmp_path):
    old = tmp_path / "old.tflite"
    old.write_bytes(described_by_0_5(echo_file.content()))
    rng = random.Random(0)
    texts = ["".join(rng.choices("aB .!?。,\n\"”5éÉ_'(¿", k=40)) for _ in range(500)]
    setting = {
        "page": str(PAGE),
        "file": str(echo),
        "old": str(old),
        "description": dataclasses.asdict(read_description(echo)),
        "texts": texts,
    }
    node("modules", setting, tmp_path)


@NEEDS_NODE
def test_words_and_marks_equal_python(monkeypatch, tmp_path):
    random_cases = [marked_case(random.Random(seed)) for seed in range(300)]
    for case in random_cases:
        case["expected"] = marked_in_python(case, monkeypatch)
    setting = {"page": str(PAGE), "cases": str(CASES), "random": random_cases}
    node("words", setting, tmp_path)


@NEEDS_NODE
def test_requests_and_types_of_arguments(echo, tmp_path):
    node("requests", {"page": str(PAGE), "file": str(echo)}, tmp_path)


@NEEDS_NODE
def test_node_equals_python(echo, translator, short, unseen_sentences, tmp_path):
    files = {"translator": translator, "short": short, "echo": echo}
    texts = [unseen_sentences, unseen_sentences, ECHOED]
    setting = {
        "page": str(PAGE),
        "runtime": str(installed("@litertjs")),
        "files": {name: str(path) for name, path in files.items()},
        "texts": {
            name: in_python(files[name], sources)
            for name, sources in zip(files, texts, strict=True)
        },
    }
    node("node", setting, tmp_path)


def compile_types(folder, right="", wrong=""):
    """TypeScript's verdict on the types beside what the modules export."""
    for name in ("modules", "types"):
        (folder / name).mkdir(parents=True)
    for path in PAGE.glob("*.js"):
        shutil.copy(path, folder / "modules")
    for path in PAGE.glob("*.d.ts"):
        types = path.read_text(encoding="utf-8").replace(right, wrong)
        (folder / "types" / path.name).write_text(types, encoding="utf-8")
    shutil.copy(FOLDER / "test" / "types_match.ts", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    options = "--noEmit --strict --allowJs --module nodenext --target esnext"
    tsc = installed("typescript") / "bin" / "tsc"
    return subprocess.run(
        [shutil.which("node"), tsc, *options.split(), "types_match.ts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


@NEEDS_NODE
def test_types_match_modules(tmp_path):
    result = compile_types(tmp_path / "right")
    assert result.returncode == 0, result.stdout
    for right, wrong in [
        ("translateSentence(", "translateLine("),
        ("truncated: boolean", "cut: boolean"),
        ("measureInputUsage(", "measureUsage("),
    ]:
        result = compile_types(tmp_path / right[:9], right, wrong)
        assert "types_match.ts" in result.stdout


def update_module():
    """The module of README.md that replaces a model by a newer one."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    blocks = re.findall("```js\n(.*?)```", readme, re.DOTALL)
    (module,) = [block for block in blocks if "function update()" in block]
    return module


def test_newer_model_is_verified_and_swapped(setting, runtime, echo, short, tmp_path):
    folder = tmp_path / "host"
    with hosted(folder, short, runtime) as port:
        (folder / "update.js").write_text(update_module(), encoding="utf-8")
        content = echo.read_bytes()
        (folder / "echo.tflite").write_bytes(content)
        (folder / "damaged.tflite").write_bytes(with_one_other_byte(content))
        setting["url"] = f"http://127.0.0.1:{port}/"
        setting["folder"] = str(folder)
        setting["sha256"] = hashlib.sha256(content).hexdigest()
        node("update", setting, tmp_path)

"""`keras-vanilla caller`: what runs an exported file, copied to a folder of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keras_vanilla import __version__
from keras_vanilla.cli import main

CHECKOUT = Path(__file__).resolve().parents[2]
CALLERS = CHECKOUT / "export"
PAGE = CHECKOUT / "keras_vanilla" / "web" / "page"
MANIFEST = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))
FILES = set(MANIFEST["files"])
WITHOUT_KERAS = """
import sys, keras_vanilla_cli
assert keras_vanilla_cli.main() == 0
print("keras" in sys.modules)
"""


def names(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix() for path in paths}


def copied(platform, tmp_path):
    folder = tmp_path / "new" / "caller"  # its parent does not exist either
    assert main(["caller", platform, str(folder)]) == 0
    return folder


@pytest.mark.parametrize(
    ("platform", "suffix"), [("python", "py"), ("android", "kt"), ("ios", "swift")]
)
def test_caller_is_copied_with_its_guide(platform, suffix, tmp_path):
    folder = copied(platform, tmp_path)
    files = {path.name for path in (CALLERS / platform).glob(f"*.{suffix}")}
    assert len(files) > 1 and names(folder) == files | {"README.md"}
    for name in files:
        original = CALLERS / platform / name
        assert (folder / name).read_bytes() == original.read_bytes()
    guide = (CALLERS / "README.md").read_bytes()
    assert (folder / "README.md").read_bytes() == guide


def test_web_module_is_copied_with_its_example(tmp_path):
    folder = copied("web", tmp_path)
    example = {name for name in names(folder) if name.startswith("example/")}
    others = {"README.md", "package.json", "package-lock.json"}
    assert names(folder) == FILES | others | example
    for name in ("package.json", "vite.config.js", ".npmrc", "src/App.tsx"):
        assert f"example/{name}" in example


def test_build_outputs_are_not_copied(tmp_path, monkeypatch):
    package = tmp_path / "keras_vanilla"
    example = package / "callers" / "web" / "example"
    for name in ("node_modules/vite", "dist/assets", "public/runtime", "src"):
        (example / name).mkdir(parents=True)
        (example / name / "file.js").write_text("")
    (example.parent / "README.md").write_text("")
    monkeypatch.setattr(
        "keras_vanilla.cli.caller.__file__", str(package / "cli" / "caller.py")
    )
    folder = copied("web", tmp_path)
    assert names(folder / "example") == {"src/file.js"}


def test_next_steps_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["caller", "web", "a folder"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Wrote a folder: README.md, description.js, doubts.js, ")
    assert "\n    npm pack './a folder'\n" in shown
    assert f"npm install ./keras-vanilla-web-{__version__}.tgz" in shown
    assert main(["caller", "python", str(tmp_path / "python")]) == 0
    assert f"python {tmp_path}/python/translate.py FILE" in capsys.readouterr().out


def test_keras_is_not_imported(tmp_path):
    command = [sys.executable, "-c", WITHOUT_KERAS, "caller", "web", tmp_path / "x"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stdout.endswith("\nFalse\n"), result.stderr


def test_web_module_has_a_name_and_version_for_npm():
    assert MANIFEST["name"] == "keras-vanilla-web"
    assert MANIFEST["version"] == __version__
    assert "private" not in MANIFEST


def test_npm_packs_what_the_web_module_imports_and_nothing_else():
    needed, waiting = set(), {"translate.js", "node.js", "translate.d.ts"}
    waiting |= {"polyfill.js", "polyfill.d.ts", "offline.js"}
    while waiting:
        needed.add(name := waiting.pop())
        code = (PAGE / name).read_text(encoding="utf-8")
        code = re.sub(r"^ *(\*|//|/\*\*).*$", "", code, flags=re.MULTILINE)
        waiting |= set(re.findall(r"'(?:\./)?(\w+\.js)'", code)) - needed
    assert needed == FILES

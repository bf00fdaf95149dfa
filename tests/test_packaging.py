"""The package as it is installed, outside the checkout."""

import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import described_file
import pytest

import keras_vanilla

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "keras_vanilla"
SETUP = (CHECKOUT / "setup.cfg").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a build leaves files beside what it builds
    shutil.copytree(
        PACKAGE, source / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    result = subprocess.run(
        [*command, "--wheel-dir", str(folder), str(source)],
        capture_output=True,
        text=True,
    )
    if result.returncode:
        pytest.skip(f"pip cannot build a wheel here: {result.stderr[-300:]}")
    return next(folder.glob("*.whl"))


@pytest.mark.full
def test_the_wheel_holds_every_module_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    page = [path for path in (PACKAGE / "web" / "page").rglob("*") if path.is_file()]
    start = PACKAGE / "cli" / "start" / "__init__.py"  # under a name of its own
    files = {*PACKAGE.rglob("*.py"), PACKAGE / "py.typed", *page} - {start}
    expected = {str(path.relative_to(CHECKOUT)) for path in files}
    assert names == expected | {"keras_vanilla_cli/__init__.py"}


@pytest.mark.full
def test_the_wheel_works_outside_the_checkout(wheel, tmp_path):
    target = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    script = "import keras_vanilla as kv; print(kv.__file__); print(kv.__version__)"
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(target), "PATH": ""},
    )
    file, version = result.stdout.split()
    assert file.startswith(str(target)) and version == keras_vanilla.__version__


@pytest.mark.full
def test_the_page_is_served_from_the_wheel(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    model = tmp_path / "model.tflite"
    model.write_bytes(described_file.content())
    script = (
        "import threading, urllib.request\n"
        "from keras_vanilla.web.server import PageServer\n"
        "server = PageServer('model.tflite', '.')\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "for name in ('', 'page.js', 'translator.tflite'):\n"
        "    print(urllib.request.urlopen(server.url + name).status)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
    )
    assert result.stdout.split() == ["200"] * 3


def test_the_console_script_is_there():
    scripts = metadata.entry_points(group="console_scripts", name="keras-vanilla")
    assert [script.value for script in scripts] == ["keras_vanilla_cli:main"]


def test_public_names_are_what_they_say():
    for name in keras_vanilla.__all__:
        assert getattr(keras_vanilla, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Transfromer'"):
        _ = keras_vanilla.Transfromer


@pytest.mark.full
@pytest.mark.parametrize("name", ["Transformer", "Translator"])
def test_importing_the_package_registers_what_a_file_can_hold(name):
    script = (
        "import keras, keras_vanilla\n"
        f"print(keras.saving.get_registered_object('keras_vanilla>{name}').__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == name


def test_every_package_is_listed_for_the_installation():
    listed = re.search(r"^packages =\n((?:    .+\n)+)", SETUP, re.MULTILINE)[1].split()
    folders = (path.parent for path in PACKAGE.rglob("__init__.py"))
    names = {".".join(path.relative_to(CHECKOUT).parts) for path in folders}
    start = "keras_vanilla.cli.start"  # installed under a name of its own
    assert set(listed) == names - {start} | {"keras_vanilla_cli"}

"""The package as it is installed, outside the checkout."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from keras_vanilla.cli import main

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "keras_vanilla"
CALLERS = CHECKOUT / "export"
SETUP = (CHECKOUT / "setup.cfg").read_text(encoding="utf-8")


def pip(*arguments):
    """Runs pip, which fetches setuptools to build; skips where it cannot."""
    result = subprocess.run(
        [sys.executable, "-m", "pip", *map(str, arguments), "--quiet"],
        capture_output=True,
        text=True,
    )
    if result.returncode:
        pytest.skip(f"pip {arguments[0]} fails here: {result.stderr[-300:]}")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of what is built: a build leaves files beside it."""
    source = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "screenshots")
    for folder in (PACKAGE, CALLERS):
        shutil.copytree(folder, source / folder.name, ignore=ignored)
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    return source


@pytest.fixture(scope="module")
def sdist(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    pip("install", "--target", folder / "tools", "setuptools>=77")
    build = "import sys; from setuptools import build_meta as build; "
    subprocess.run(
        [sys.executable, "-c", build + "build.build_sdist(sys.argv[1])", str(folder)],
        check=True,
        capture_output=True,
        cwd=source,
        env=os.environ | {"PYTHONPATH": str(folder / "tools")},
    )
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel, built of the sdist as a release is."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", folder, sdist)
    return next(folder.glob("*.whl"))


def callers():
    """The callers' files that are released, by their paths in the folder export."""
    paths = [path for path in CALLERS.rglob("*") if path.is_file()]
    ours = {path.relative_to(CALLERS).as_posix() for path in paths}
    left_out = (
        r"web/(test|screenshots|[^/]*$)|(.*/)?(node_modules|public|dist|__\w+__)/"
    )
    return {"web/README.md"} | {p for p in ours if not re.match(left_out, p)}


@pytest.mark.full
def test_wheel_holds_modules_and_callers_only(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    page = [path for path in (PACKAGE / "web" / "page").rglob("*") if path.is_file()]
    pretrained = (PACKAGE / "pretrained").glob("[!_]*/*.*")  # without __pycache__
    start = PACKAGE / "cli" / "start" / "__init__.py"  # under a name of its own
    files = {*PACKAGE.rglob("*.py"), PACKAGE / "py.typed", *page, *pretrained}
    expected = {str(path.relative_to(CHECKOUT)) for path in files - {start}}
    expected |= {f"keras_vanilla/callers/{name}" for name in callers()}
    assert names == expected | {"keras_vanilla_cli/__init__.py"}


@pytest.mark.full
def test_sdist_holds_callers_without_tests(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    files = {name for name in names if re.match(r"export/(.*/)?[^/]*\.[^/]+$", name)}
    assert files == {f"export/{name}" for name in callers()}


@pytest.mark.full
@pytest.mark.parametrize("editable", [False, True])
def test_installed_command_copies_callers(editable, source, wheel, tmp_path):
    environment = tmp_path / "environment"
    venv.create(environment)  # without Keras, NumPy and all else
    package = ("--editable", source) if editable else (wheel,)
    python = environment / "bin" / "python"
    pip("--python", python, "install", "--no-deps", *package)
    command = environment / "bin" / "keras-vanilla"
    for platform in ("python", "android", "ios", "web"):
        installed, here = (tmp_path / where / platform for where in "ab")
        subprocess.run([command, "caller", platform, installed], check=True)
        assert main(["caller", platform, str(here)]) == 0
        assert contents(installed) == contents(here)


def contents(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_console_script():
    scripts = metadata.entry_points(group="console_scripts", name="keras-vanilla")
    assert [script.value for script in scripts] == ["keras_vanilla_cli:main"]


def test_packages_are_listed():
    listed = re.search(r"^packages =\n((?:    .+\n)+)", SETUP, re.MULTILINE)[1].split()
    folders = (path.parent for path in PACKAGE.rglob("__init__.py"))
    names = {".".join(path.relative_to(CHECKOUT).parts) for path in folders}
    start = "keras_vanilla.cli.start"  # installed under a name of its own
    elsewhere = {"keras_vanilla_cli", "keras_vanilla.callers"}
    assert set(listed) == names - {start} | elsewhere

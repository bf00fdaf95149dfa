"""Names that are imported when they are used."""

import sys

import pytest
from architecture_page import ROOT

import keras_vanilla

PARTS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of a package `sky` whose names are imported when they are used."""
    folder = tmp_path / "sky"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from keras_vanilla._lazy_names import lazy_names\n"
        "__getattr__ = lazy_names(__name__, {'blue': 'colours', 'colours': 'colours'})"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "sky"]:
        del sys.modules[name]


def test_name_is_imported_when_used(package):
    (package / "colours.py").write_text("blue = 7")
    import sky

    assert "sky.colours" not in sys.modules
    assert sky.blue == 7
    assert sky.colours is sys.modules["sky.colours"]


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import keras\nkeras.callbacks.Later", "has no attribute 'Later'"),
        ("import later", "No module named 'later'"),
    ],
)
def test_failing_import_shows_reason(package, module, reason):
    (package / "colours.py").write_text(module)
    with pytest.raises(ImportError, match=reason):
        from sky import blue  # noqa: F401


def test_folders_are_public_names():
    assert set(PARTS) <= set(keras_vanilla.__all__) <= set(dir(keras_vanilla))
    assert len(PARTS) > 9


@pytest.mark.parametrize("name", [name for name in PARTS if name != "layers"])
def test_folder_is_imported_when_used(name):
    if name == "plots":
        pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    module = keras_vanilla.__getattr__(name)  # as where nothing has imported it yet
    assert module.__name__ == f"keras_vanilla.{name}"

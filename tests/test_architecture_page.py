"""keras_vanilla/README.md shows the package as it is."""

import re

import pytest
from architecture_page import PAGE, ROOT, import_table, tree

FILES = {
    path.relative_to(ROOT).as_posix()
    for path in ROOT.rglob("*.py")
    if path.name != "__init__.py" or path.parent == ROOT
}
FOLDERS = {
    path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("__init__.py")
} - {"."}


def test_tree_names_each_file():
    listed = set(tree()) - {"web/page", "py.typed"}
    missing, gone = (FILES | FOLDERS) - listed, listed - FILES - FOLDERS
    assert not missing, f"{PAGE}: the section Files lacks {sorted(missing)}"
    assert not gone, f"{PAGE}: the section Files names {sorted(gone)}, which are gone"


def test_files_have_descriptions():
    assert [name for name, description in tree().items() if not description] == []


def test_import_table_names_every_part():
    parts = {path.stem if path.is_file() else path.name for path in ROOT.iterdir()}
    assert set(import_table()) == {
        part for part in parts if part not in ("__pycache__", "README", "py")
    }


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_links_of_guides_lead_somewhere(name):
    guide = ROOT / name / "README.md"
    if guide.exists():
        text = guide.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (guide.parent / link).exists(), link

"""Files and folders are never written over while a new one is written."""

import errno
import os

import pytest

from keras_vanilla._atomic_write import atomic_path, atomic_write


def refused_by_another(path, make):
    """Returns the files that are left if another writer takes the name."""
    with pytest.raises(FileExistsError, match="exists already; nothing was written"):
        with atomic_path(path, overwrite=False) as temporary:
            make(temporary)
            make(path)
    return sorted(path.parent.iterdir())


def without_hard_links(*_, **__):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("hard_links", [True, False])
def test_first_writer_keeps_name(tmp_path, monkeypatch, hard_links):
    if not hard_links:
        monkeypatch.setattr(os, "link", without_hard_links)
    path = tmp_path / "x.tflite"
    assert refused_by_another(path, lambda p: p.write_text(p.name)) == [path]
    assert path.read_text() == "x.tflite"
    with atomic_write(tmp_path / "new", overwrite=False) as file:
        file.write(b"whole")
    assert (tmp_path / "new").read_bytes() == b"whole"
    assert len(list(tmp_path.iterdir())) == 2


def test_first_folder_keeps_name(tmp_path):
    def make(folder):
        folder.mkdir()
        (folder / "name").write_text(folder.name)

    assert refused_by_another(tmp_path / "x", make) == [tmp_path / "x"]
    assert (tmp_path / "x" / "name").read_text() == "x"


@pytest.mark.parametrize("overwrite", [True, False])
def test_symbolic_link_is_not_followed(tmp_path, overwrite):
    victim, link = tmp_path / "victim", tmp_path / "x"
    victim.write_text("mine")
    link.symlink_to(victim)
    try:
        with atomic_write(link, overwrite) as file:
            file.write(b"other")
    except FileExistsError:
        assert link.is_symlink() and not overwrite
    else:
        assert link.read_bytes() == b"other" and not link.is_symlink() and overwrite
    assert victim.read_text() == "mine"

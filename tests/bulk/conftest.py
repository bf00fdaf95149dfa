"""What the tests of shards share: files to translate, and a model opened once."""

import functools
import gzip
from pathlib import Path

import pytest

from keras_vanilla.bulk import line_translators, shard


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skips what Ray could not start: it waits 30 seconds, whatever the machine."""
    try:
        return (yield)
    except Exception as error:
        if "node timed out during startup" in str(error):
            pytest.skip("this machine is too busy: Ray did not start in 30 seconds")
        raise


pytest_runtest_setup = pytest_runtest_call  # of fixtures


@pytest.fixture
def sources(tmp_path, unseen_sentences):
    """Three files; one is compressed, one has bad lines and no newline at its end."""
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [line.encode() + b"\n" for line in unseen_sentences]
    bad = [lines[70], b"caf\xe9\n", b"one " * 300 + b"\r\n", lines[71].strip()]
    (folder / "part-1.txt").write_bytes(b"".join(lines[:40]))
    (folder / "part-2.txt.gz").write_bytes(gzip.compress(b"".join(lines[40:70])))
    (folder / "part-3.txt").write_bytes(b"".join(bad))
    return sorted(folder.iterdir())


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture(autouse=True)
def opened_once(monkeypatch):
    """Each model is read, and its search compiled, once for all tests."""
    monkeypatch.setattr(shard, "open_line_translator", opened)


def opened(model, **settings):
    if not isinstance(model, Path):
        return line_translators.open_line_translator(model, **settings)
    return opened_file(model, **settings)


opened_file = functools.cache(line_translators.open_line_translator)

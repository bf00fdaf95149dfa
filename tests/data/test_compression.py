import gzip
import lzma
import sys
import types

import pytest

from keras_vanilla.data import compression
from keras_vanilla.data.compression import opened
from keras_vanilla.data.corpus import read_lines
from keras_vanilla.data.lines import count_lines

TEXT = "".join(f"{n} some words\n" for n in range(40_000)).encode()


def zstd_module():
    """Python's module for `.zst` files, or its backport."""
    if sys.version_info >= (3, 14):
        return pytest.importorskip("compression.zstd")
    return pytest.importorskip("backports.zstd")


@pytest.fixture(params=["gz", "xz", "zst", "real zst"])
def compressed(request, tmp_path, monkeypatch):
    """The path of a compressed file that is still to be written, and `compress`."""
    compress = {"gz": gzip.compress, "xz": lzma.compress, "zst": lzma.compress}
    if request.param == "zst":  # a module with the interface of the backport
        module = types.SimpleNamespace(open=lzma.open, ZstdError=lzma.LZMAError)
        backports = types.SimpleNamespace(zstd=module)
        monkeypatch.setitem(sys.modules, "backports", backports)
        monkeypatch.setitem(sys.modules, "compression", None)
    if request.param == "real zst":
        compress["real zst"] = zstd_module().compress
    return tmp_path / f"text.{request.param[-3:].strip()}", compress[request.param]


def text_of(path):
    with opened(path) as stream:
        return stream.read()


@pytest.mark.parametrize("parts", [1, 3])
def test_concatenated_files_are_read_whole(compressed, parts):
    path, compress = compressed
    path.write_bytes(compress(TEXT) * parts)
    assert text_of(path) == TEXT * parts
    assert read_lines(path) == TEXT.decode().splitlines() * parts
    assert count_lines(path) == 40_000 * parts


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-9],
        lambda data: data[: len(data) // 2],
        lambda data: b"a" + data,
        lambda data: data[:999] + bytes(99) + data[1098:],
    ],
    ids=["end", "half", "start", "middle"],
)
def test_damaged_file_is_refused(compressed, damage):
    path, compress = compressed
    path.write_bytes(damage(compress(TEXT)))
    with pytest.raises(ValueError, match=rf"{path} is not a whole {path.suffix} file"):
        text_of(path)


def test_plain_file_is_read(tmp_path):
    (tmp_path / "text.txt").write_bytes(TEXT)
    assert text_of(tmp_path / "text.txt") == TEXT


WHOLE = {".gz": gzip.decompress, ".xz": lzma.decompress, ".txt": bytes}


@pytest.mark.parametrize("suffix", [*WHOLE, ".zst"])
def test_written_files_are_read_elsewhere(tmp_path, suffix):
    whole = WHOLE.get(suffix)
    if suffix == ".zst":
        whole = zstd_module().decompress
    path, again = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for each in (path, again):
        with compression.compressed(each) as file:
            file.write(TEXT[:1000])
            file.write(TEXT[1000:])
    assert whole(path.read_bytes()) == text_of(path) == TEXT
    assert path.read_bytes() == again.read_bytes()
    with pytest.raises(FileExistsError), compression.compressed(path):
        pass
    assert text_of(path) == TEXT

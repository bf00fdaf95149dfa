"""What a `.tflite` file says of itself, and the checksum at its end."""

import dataclasses
import hashlib
import json
import subprocess
import sys

import echo_file
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from described_file import FACTS, LEAST
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import keras_vanilla
from keras_vanilla import cli, export
from keras_vanilla.export import read_description
from keras_vanilla.export.metadata.description import FORMAT, Description
from keras_vanilla.export.metadata.flatbuffer import (
    CHECKSUM,
    packed,
    read_metadata,
    unpacked,
    with_description,
)

BARE = schema.ModelT(version=3, buffers=[schema.BufferT()])
SHARED_FILE = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def described():
    return with_description(unpacked(echo_file.content()), Description(**FACTS))


@pytest.fixture
def file(described, tmp_path):
    path = tmp_path / "echo.tflite"
    path.write_bytes(described)
    return path


def write_json(path, fields):
    """Writes a file with this description, and without a checksum."""
    content = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    path.write_bytes(packed(BARE, {"keras_vanilla": content}))


def tree(part):
    """All that a part of a file holds, comparable with `==`."""
    if isinstance(part, list):
        return [tree(each) for each in part]
    if isinstance(part, np.ndarray):
        return part.tolist()
    if hasattr(part, "__dict__"):
        return {name: tree(value) for name, value in vars(part).items()}
    return part


def buffer_places(content):
    """Where the bytes of each buffer begin, and how many they are."""
    model = schema.Model.GetRootAs(content, 0)
    buffers = [model.Buffers(place) for place in range(model.BuffersLength())]
    filled = [buffer._tab for buffer in buffers if buffer.DataLength()]
    return [(table.Vector(table.Offset(4)), table.VectorLen(4)) for table in filled]


def test_description_is_written_and_read(file, described):
    description = read_description(file)
    assert description == Description(**FACTS) == read_description(str(file))
    assert description.version == keras_vanilla.__version__
    content = read_metadata(file, "keras_vanilla").decode()
    assert json.loads(content) == dataclasses.asdict(description)
    assert "Grüße | 猫" in content
    assert hashlib.sha256(described[:-32]).digest() == described[-32:]
    assert read_metadata(file, CHECKSUM) == described[-32:]


@settings(SHARED_FILE, max_examples=20)
@given(name=st.text(), data=st.none() | st.text(), penalty=st.none() | st.floats(0, 9))
def test_any_text_survives(name, data, penalty, tmp_path):
    facts = {**LEAST, "name": name, "data": data, "length_penalty": penalty}
    path = tmp_path / "any.tflite"
    path.write_bytes(with_description(BARE, Description(**facts)))
    assert read_description(path) == Description(**facts)
    assert len(str(read_description(path)).splitlines()) == 12


def test_described_file_has_tables_as_before(described):
    before, after = (tree(unpacked(each)) for each in (echo_file.content(), described))
    for part in ("buffers", "metadata"):
        assert after.pop(part)[:-2] == before.pop(part)
    assert after == before


@pytest.mark.parametrize("length", [1, 6, 11, 16])
def test_buffers_are_aligned_and_stored_once(length):
    description = Description(**{**FACTS, "name": length * "x"})
    described = with_description(unpacked(echo_file.content()), description)
    places = sorted(buffer_places(described))
    assert all(begin % 16 == 0 for begin, _ in places)
    ends = [begin + size for begin, size in places]
    assert all(end <= begin for end, (begin, _) in zip(ends, places[1:], strict=False))
    assert len(described) - len(echo_file.content()) < 2000
    assert len(described) == ends[-1]  # the checksum, and before it the description
    assert len(described) - ends[-2] < 64


def test_entry_without_buffer_is_damage(tmp_path):
    path = tmp_path / "x.tflite"
    path.write_bytes(packed(BARE, {"a": b"1"}))
    assert (read_metadata(path, "a"), read_metadata(path, "b")) == (b"1", None)
    builder = schema.flatbuffers.Builder()
    model = schema.ModelT(version=3, metadata=[schema.MetadataT("a", 0)])
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())
    with pytest.raises(ValueError, match="x.tflite is damaged"):
        read_metadata(path, "a")


@settings(SHARED_FILE, max_examples=50)
@given(place=st.integers(0), bit=st.integers(0, 7))
def test_changed_bit_is_refused(described, file, place, bit):
    damaged = bytearray(described)
    damaged[place % len(damaged)] ^= 1 << bit
    name = described.index(b"keras_vanilla_sha256")
    file.write_bytes(damaged)
    if name <= place % len(damaged) < name + 20:
        return  # then it has no checksum
    with pytest.raises(ValueError, match="echo.tflite is (damaged|not a|cut short)"):
        read_description(file)


def test_files_of_earlier_versions_are_described_alike(file, capsys):
    fields = dataclasses.asdict(Description(**FACTS))
    del fields["form"]
    of_0_5 = {"format": "keras_vanilla translator 1", "version": "0.5.0"}
    of_0_7 = {"shortlist": 512, "oldest_runtime": "2.18"}
    write_json(file, {**fields, **of_0_5, **of_0_7})
    assert read_description(file) == Description(**FACTS, **of_0_5)
    assert cli.main(["describe", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "bytes, no checksum" in shown
    assert "\nruns on        LiteRT 2.1 and later\n" in shown
    assert cli.main(["describe", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["oldest_runtime"] == "LiteRT 2.1"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"7",
        b'{"format": "keras_vanilla translator 1"}',
        {"format": FORMAT, **FACTS, "another": 1},
        {"format": FORMAT, **FACTS, "max_bytes": "many"},
        {"format": FORMAT, **FACTS, "target_language": "?"},
    ],
)
def test_damaged_description_is_refused(content, file):
    write_json(file, content)
    with pytest.raises(ValueError, match="echo.tflite is damaged"):
        read_description(file)


def test_table_shows_all_that_is_known():
    assert str(
        Description(**FACTS, examples=["Grüße.", "Ein Hund"], no_loops=True)
    ) == (
        "name           de-en\n"
        "languages      de to en-GB\n"
        "form           text: UTF-8 bytes in, UTF-8 bytes out\n"
        "takes          131 bytes of UTF-8, at most 40 tokens\n"
        "gives          at most 43 tokens\n"
        "search         beam 4, length penalty 0.6, without loops\n"
        "weights        7,654,321 parameters, int8\n"
        "model license  Apache-2.0\n"
        "trained on     Grüße | 猫\n"
        "data license   CC-BY-4.0\n"
        "examples       Grüße. | Ein Hund\n"
        "runs on        LiteRT 2.1 and later\n"
        f"written by     keras_vanilla {keras_vanilla.__version__}"
    )
    shown = str(Description(**{**LEAST, "name": "a\nb\x1b[31m"}))
    assert "name           a\ufffdb\ufffd[31m\n" in shown
    assert "languages      (not stated) to (not stated)\n" in shown
    assert shown.count("not stated") == 5
    assert "search         greedy" in shown and "parameters, float32" in shown


def test_limits_are_those_of_description():
    description = Description(**FACTS)
    assert description.excess("é" * 65, [3] * 40) is None
    assert description.excess("é" * 66, []).startswith("132 bytes, but")
    assert description.excess("", [3] * 41).startswith("41 tokens, but")


def test_command_prints_table_or_json(file, described, capsys):
    assert cli.main(["describe", str(file)]) == 0
    size = f"{file}: {len(described):,} bytes, as its checksum says\n"
    digest = hashlib.sha256(described).hexdigest()
    printed = f"{size}SHA-256 {digest}\n\n{Description(**FACTS)}\n"
    assert capsys.readouterr().out == printed
    assert cli.main(["describe", str(file), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {**dataclasses.asdict(Description(**FACTS)), "sha256": digest}


@pytest.mark.parametrize(
    "name, end",
    [
        ("none.tflite", "none.tflite: No such file or directory.\n"),
        ("", "Is a directory.\n"),
        ("damaged.tflite", "not match its checksum. Copy or export it again.\n"),
        ("hub:me/tiny", "keras-vanilla export hub:me/tiny translator.tflite\n"),
    ],
)
def test_command_refuses_in_one_line(described, tmp_path, capsys, name, end):
    middle = len(described) // 2
    damaged = described[:middle] + b"\xff\0" + described[middle + 2 :]
    (tmp_path / "damaged.tflite").write_bytes(damaged)
    path = name if name.startswith("hub:") else str(tmp_path / name)
    assert cli.main(["describe", path]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.endswith(end) and err.count("\n") == 1


def test_command_needs_neither_tensorflow_nor_keras(file):
    script = (
        "import sys; from keras_vanilla_cli import main\n"
        f"sys.argv = ['keras-vanilla', 'describe', {str(file)!r}]\n"
        "assert main() == 0\n"
        "print({'tensorflow', 'keras'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "set()"


def test_public_names_exist():
    for name in export.__all__:
        assert callable(getattr(export, name))
    with pytest.raises(AttributeError, match="has no attribute 'tflight'"):
        _ = export.tflight

"""A `.tflite` file ends with the SHA-256 of all bytes before."""

import dataclasses
import hashlib
import json

import echo_file
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_vanilla import cli
from keras_vanilla.export.metadata.checksum import has_checksum, require_checksum
from keras_vanilla.export.metadata.description import (
    Description,
    read_description,
    with_description,
)
from keras_vanilla.export.metadata.flatbuffer import packed, unpacked

SIZES = {"max_bytes": 131, "max_source_tokens": 40, "max_output_tokens": 40}
DESCRIPTION = Description(name="echo", parameters=0, **SIZES)


@pytest.fixture(scope="module")
def described():
    return with_description(unpacked(echo_file.content()), DESCRIPTION)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "echo.tflite"


def test_the_last_32_bytes_are_the_digest_of_all_others(described, path):
    assert hashlib.sha256(described[:-32]).digest() == described[-32:]
    assert described.count(b"keras_vanilla_sha256") == 1
    path.write_bytes(described)
    assert has_checksum(path) and read_description(path) == DESCRIPTION


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.integers(0), bit=st.integers(0, 7))
def test_a_single_changed_bit_is_refused(described, path, place, bit):
    damaged = bytearray(described)
    damaged[place % len(damaged)] ^= 1 << bit
    name = described.index(b"keras_vanilla_sha256")
    path.write_bytes(damaged)
    if name <= place % len(damaged) < name + 20:
        return  # then it has no checksum
    with pytest.raises(ValueError, match="echo.tflite is (damaged|not a|cut short)"):
        read_description(path)


def test_weights_that_changed_are_refused_in_a_sentence(described, path, capsys):
    damaged = bytearray(described)
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="do not match its checksum. Copy or export"):
        require_checksum(path)
    assert cli.main(["describe", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "is damaged" in err


def test_files_of_version_0_5_0_have_none_and_are_read(path, capsys):
    fields = dataclasses.asdict(DESCRIPTION)
    del fields["form"]
    fields |= {"format": "keras_vanilla translator 1", "version": "0.5.0"}
    entries = {"keras_vanilla": json.dumps(fields).encode()}
    path.write_bytes(packed(unpacked(echo_file.content()), entries))
    assert not has_checksum(path)
    assert read_description(path) == dataclasses.replace(
        DESCRIPTION, format="keras_vanilla translator 1", version="0.5.0"
    )
    assert cli.main(["describe", str(path)]) == 0
    assert "bytes, no checksum" in capsys.readouterr().out

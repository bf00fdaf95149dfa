"""Each cut or flip of a file is refused by its name, or changes numbers alone.

A row of `ROWS` is the name of a file, its bytes, and a function that reads it.
"""

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import ctranslate2_bytes
import described_file
import numpy as np
import pytest
import torch_bytes
from damaged_bytes import at_most_allocated, cuts_and_flips, damaged
from hypothesis import given, settings
from safetensors.numpy import save

from keras_vanilla.export import read_description
from keras_vanilla.interop.argos_package import opened_package
from keras_vanilla.interop.files.ctranslate2_binary import read_binary
from keras_vanilla.interop.files.ctranslate2_file import read_ctranslate2
from keras_vanilla.interop.files.stored_arrays import read_safetensors
from keras_vanilla.interop.files.torch_file import read_torch
from keras_vanilla.models import Transformer
from keras_vanilla.tokenizer import CharacterTokenizer
from keras_vanilla.translation import Translator


class Damaged(NamedTuple):
    """A kind of file; `read` may return arrays, which must be smaller than the file."""

    name: str
    content: bytes | Callable[[], bytes]
    read: Callable
    places: int = 700  # where it is damaged
    checksum: bool = False  # whether nothing else is ever read from a damaged file
    megabytes: float = 2  # most memory that may be allocated


def argos_package():
    """A package with a model in a folder, as a zip."""
    files = {
        "metadata.json": json.dumps({"type": "translate"}),
        "sentencepiece.model": "pieces",
        "model/model.bin": ctranslate2_bytes.binary(),
        "model/config.json": json.dumps(ctranslate2_bytes.CONFIG),
        "model/shared_vocabulary.json": json.dumps(ctranslate2_bytes.TOKENS),
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in files.items():
            archive.writestr(f"translate-en_de/{name}", each)
    return content.getvalue()


def read_argos(path):
    with opened_package(path) as folder:
        return dict(read_ctranslate2(folder).variables)


def keras_archive():
    """A small translator."""
    lines = ["a small house", "the green tree is large", "one river", "two stones"]
    tokenizer = CharacterTokenizer.train(lines=lines)
    model = Transformer(
        tokenizer.vocabulary_size,
        d_model=4,
        num_heads=2,
        d_ff=4,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_length=16,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "translator.keras"
        Translator(tokenizer, model).save(path)
        return path.read_bytes()


ROWS = [
    Damaged("pytorch_model.bin", torch_bytes.ZIP, read_torch),
    Damaged("older.bin", torch_bytes.SEQUENCE, read_torch),
    Damaged(
        "model.safetensors",
        save({"a": np.eye(3, dtype="float32"), "b": np.ones((2, 0, 5), "int8")}),
        read_safetensors,
    ),
    Damaged(
        "model.bin",
        ctranslate2_bytes.binary(),
        lambda path: read_binary(path).variables,
    ),
    Damaged("en-de.argosmodel", argos_package, read_argos, places=200, checksum=True),
    Damaged(
        "described.tflite", described_file.content, read_description, 300, checksum=True
    ),
    Damaged("translator.keras", keras_archive, Translator.load, places=4, megabytes=30),
]


def read(row, path, content):
    """Returns what is read, with arrays as lists; arrays must fit in the file."""
    path.write_bytes(content)
    with at_most_allocated(row.megabytes):
        result = row.read(path)
        if not isinstance(result, Mapping):
            return result
        arrays = dict(result)
    assert sum(array.nbytes for array in arrays.values()) <= 4 * len(content)
    return {name: array.tolist() for name, array in arrays.items()}


def is_refused(row, path, content, expected):
    """Reads a damaged file, which must be refused by its name or be harmless."""
    try:
        result = read(row, path, content)
    except (ValueError, OSError) as error:
        assert str(path) in str(error) and "\n" not in str(error)
        return True
    assert not row.checksum or result == expected
    return False


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_cuts_and_flips_are_refused_or_harmless(row, tmp_path):
    content = row.content() if callable(row.content) else row.content
    expected = read(row, tmp_path / row.name, content)
    refused = [
        is_refused(row, tmp_path / row.name, changed, expected)
        for changed in cuts_and_flips(content, row.places)
    ]
    assert all(refused[::2])  # each cut
    assert sum(refused[1::2]) > len(refused) // 8


@pytest.mark.parametrize("row", ROWS[:-1], ids=lambda row: row.name)
def test_several_damages_are_refused_or_harmless(row, tmp_path):
    content = row.content() if callable(row.content) else row.content
    expected = read(row, tmp_path / row.name, content)

    @settings(max_examples=100, deadline=None)
    @given(changed=damaged(content))
    def each(changed):
        is_refused(row, tmp_path / row.name, changed, expected)

    each()

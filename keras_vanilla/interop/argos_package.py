"""Argos packages: a CTranslate2 and a SentencePiece model in a zip or a folder."""

import contextlib
import errno
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.json_file import read_json
from keras_vanilla.translation.archive import check_unpacked_size, most_unpacked

METADATA, TOKENIZER, MODEL = "metadata.json", "sentencepiece.model", "model"
FILE_NAME = re.compile(r"\w[\w.-]*")


@contextlib.contextmanager
def opened_package(path: PathLike) -> Iterator[Path]:
    """Opens a package and yields the folder of its CTranslate2 model.

    A zip is unpacked to a temporary folder, which is removed after the block. Only
    files with known names are unpacked; their folders in the zip are ignored.

    Args:
        path: path of a zip, of its unpacked folder, or of a CTranslate2 model folder,
            which is returned as it is.
    Raises:
        FileNotFoundError: if `path` does not exist, or a file is missing.
        ValueError: if a zip is damaged or not a package, its unpacked size is far too
            large, or the package is not for translation or needs a prefix.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}.")
    if path.is_dir():
        yield _model_folder(path, path)
        return
    with tempfile.TemporaryDirectory() as temporary, _named(temporary, path):
        _unpack(path, Path(temporary))
        yield _model_folder(Path(temporary), path)


def _model_folder(folder, path):
    """The folder of the model in a package; any other folder is returned as it is."""
    if not (folder / METADATA).is_file():
        if path.is_file():
            raise ValueError(f"{path} is not an Argos package: it has no {METADATA}.")
        return folder
    metadata = read_json(folder / METADATA)
    if not isinstance(metadata, dict) or metadata.get("type", "translate") not in (
        "translate",
        None,
    ):
        raise ValueError(
            f"{folder / METADATA} does not describe a translation package."
        )
    if prefix := metadata.get("target_prefix"):
        raise ValueError(
            f"{folder / METADATA} has the target_prefix {prefix!r}, "
            "which begins every translation; such packages cannot be converted."
        )
    if not (folder / TOKENIZER).is_file():
        raise FileNotFoundError(
            f"{folder} has no {TOKENIZER}: packages with another tokenizer cannot be "
            "converted."
        )
    return folder / MODEL


def _unpack(path, folder):
    """Unpacks the files of a package from a zip, in which one folder contains all."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = {_destination(part): part for part in archive.infolist()}
            parts.pop(None, None)
            check_unpacked_size(archive, most_unpacked(path))
            (folder / MODEL).mkdir()
            for inner, part in parts.items():
                with (
                    archive.open(part) as source,
                    open(folder.joinpath(*inner), "xb") as target,
                ):
                    shutil.copyfileobj(source, target)
    except Exception as error:  # zipfile raises many kinds for damaged files
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise  # such as a full disk
        raise ValueError(
            f"{path} is not an Argos package, or is damaged: {error}."
        ) from error


def _destination(part):
    """The destination of a file of a zip, or None if it is not needed."""
    if part.is_dir():
        return None
    _package, *inner = PurePosixPath(part.filename).parts
    if inner in ([METADATA], [TOKENIZER]):
        return tuple(inner)
    if len(inner) == 2 and inner[0] == MODEL and FILE_NAME.fullmatch(inner[1]):
        return tuple(inner)
    return None


@contextlib.contextmanager
def _named(temporary, path):
    """Makes errors of the block name the zip instead of the temporary folder."""
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        text = str(error).replace(temporary, str(path))
        kind = FileNotFoundError if isinstance(error, OSError) else ValueError
        raise kind(text) from error

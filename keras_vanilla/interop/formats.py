"""Detects, reads and writes the formats of translators."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_vanilla._checks import check_choice
from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla._types import PathLike
from keras_vanilla.interop.ctranslate2 import from_ctranslate2, is_ctranslate2
from keras_vanilla.interop.hub import from_hub
from keras_vanilla.interop.marian import from_marian
from keras_vanilla.interop.to_ctranslate2 import to_ctranslate2
from keras_vanilla.interop.to_marian import to_marian
from keras_vanilla.pretrained import model_not_found
from keras_vanilla.translation import Translator


@dataclass(frozen=True)
class Format:
    """A format of translators.

    Args:
        description: str, for errors.
        recognises: function of a path; True if it looks like this format.
        read: function of a path that returns a Translator.
        write: function of a Translator, a path and the format's settings.
    """

    description: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path], Translator]
    write: Callable[..., None]


def _save(translator, path, **settings):
    path.parent.mkdir(parents=True, exist_ok=True)
    translator.save(path, overwrite=False, **settings)


FORMATS = {
    "keras": Format(
        "a .keras file of this package",
        lambda path: path.suffix == ".keras",
        Translator.load,
        _save,
    ),
    "ctranslate2": Format(
        "a CTranslate2 folder with model.bin, or an Argos package",
        is_ctranslate2,
        from_ctranslate2,
        to_ctranslate2,
    ),
    "marian": Format(
        "a folder of a Hugging Face model with config.json",
        lambda path: (path / "config.json").exists(),
        from_marian,
        to_marian,
    ),
}


def read_translator(path: PathLike) -> Translator:
    """Reads a Translator from a file or folder of any format, or from the hub.

    Args:
        path: path, or a str such as "hub:OWNER/NAME", see `from_hub`.
    Raises:
        FileNotFoundError: if `path` does not exist.
        ValueError: if the format is unknown, or as in the function of the format.
    """
    if is_hub_reference(path):
        return from_hub(str(path))
    path = Path(path)
    if not path.exists():
        raise model_not_found(path)
    for each in FORMATS.values():
        if each.recognises(path):
            return each.read(path)
    if path.suffix == ".npz" or (path / "decoder.yml").exists():
        raise ValueError(
            f"{path} is a model of Marian itself, whose format was removed in 0.8.0; "
            "keras_vanilla 0.7.0 reads it. Convert it to a folder of Hugging Face's "
            "with convert_marian_to_pytorch.py of transformers 4."
        )
    known = ", ".join(each.description for each in FORMATS.values())
    raise ValueError(f"{path} has none of the supported formats: {known}.")


def write_translator(
    translator: Translator, path: PathLike, format: str | None = None, **settings: Any
) -> None:
    """Writes a Translator in any of these formats.

    Args:
        translator: Translator.
        path: path of a file or folder that does not exist.
        format: str. One of `FORMATS`; None means "keras" for a name that ends with
            ".keras".
        settings: other arguments of the format's function, such as
            `quantize="int8"` of `to_ctranslate2` and `Translator.save`.
    Raises:
        ValueError: if the format is unknown, or is None and cannot be inferred from the
            name, or as in the function of the format.
        FileExistsError: if the path exists.
    """
    path = Path(path)
    if format is None:
        if path.suffix != ".keras":
            raise ValueError(
                f"{path} does not end with .keras: set the format to one of "
                f"{', '.join(FORMATS)}."
            )
        format = "keras"
    check_choice("format", format, tuple(FORMATS))
    FORMATS[format].write(translator, path, **settings)

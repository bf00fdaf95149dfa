"""Translators that are installed with the package."""

from pathlib import Path

from keras_vanilla._checks import check_choice
from keras_vanilla._hub_reference import FORM, PREFIX
from keras_vanilla._types import PathLike

__all__ = ["pretrained_file"]

FOLDER = Path(__file__).parent
NAMES = ("en-fr",)
SUFFIXES = ".keras", ".tflite", ".argosmodel"


def pretrained_file(name: str, suffix: str = ".keras") -> Path:
    """Returns the path of a pretrained translator's file.

    Args:
        name: str, one of `NAMES`.
        suffix: ".keras" for `Translator.load`, or ".tflite".
    Raises:
        ValueError: if there is no translator with this name.
    """
    return FOLDER / check_choice("preset", name, NAMES) / f"translator{suffix}"


def model_not_found(model: PathLike) -> FileNotFoundError:
    """Returns the error for a model that does not exist.

    Args:
        model: path. If it could be a name, the error lists the pretrained translators,
            or says how a model of the hub is named.
    """
    message = f"There is no file or folder {model}"
    if str(model) in NAMES:
        message += (
            f"; the pretrained model {model} is loaded with "
            f"Translator.from_preset({str(model)!r})"
        )
    elif Path(model).name == str(model) and not Path(model).suffix:
        message += (
            f", and no pretrained model of this name: there is {', '.join(NAMES)}"
        )
    elif FORM.fullmatch(str(model)) and Path(model).suffix not in SUFFIXES:
        message += f"; a model of the Hugging Face hub is named {PREFIX}{model}"
    return FileNotFoundError(f"{message}.")

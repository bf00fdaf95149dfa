"""Translators that are installed with the package."""

from pathlib import Path

from keras_vanilla._checks import check_choice
from keras_vanilla._hub_reference import PREFIX
from keras_vanilla._types import PathLike

__all__ = ["pretrained_file"]

FOLDER = Path(__file__).parent
NAMES = ("en-fr",)


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
        model: path. If it could be a name, the error says how models are named.
    """
    hint = ""
    if not Path(model).suffix:
        hint = (
            f"; the pretrained model is {NAMES[0]!r} (Translator.from_preset), and "
            f"models of the Hugging Face hub are named {PREFIX}OWNER/NAME"
        )
    return FileNotFoundError(f"There is no file or folder {model}{hint}.")

"""Checks of arguments, and the wording of their errors."""

import difflib
import inspect
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from keras_vanilla._types import PathLike

BACKENDS = ("tensorflow", "jax", "torch")  # each is also an extra of setup.cfg
LARGEST_INT32 = 2**31 - 1  # ids, sizes and lengths are int32 in every graph
NAMES_ELSEWHERE = {  # in Keras, KerasHub, PyTorch and Hugging Face: (our names)
    "bias": ("use_bias",),
    "dim_feedforward": ("d_ff",),
    "dropout_rate": ("dropout",),
    "embed_dim": ("d_model",),
    "embedding_dim": ("d_model",),
    "ffn_dim": ("d_ff",),
    "hidden_dim": ("d_model", "d_ff"),
    "hidden_size": ("d_model",),
    "input_dim": ("vocabulary_size",),
    "intermediate_dim": ("d_ff",),
    "layer_norm_eps": ("layer_norm_epsilon",),
    "max_sequence_length": ("max_length",),
    "mask_zero": ("pad_id",),
    "nhead": ("num_heads",),
    "norm_first": ("normalize_first",),
    "num_decoder_blocks": ("num_decoder_layers",),
    "num_embeddings": ("vocabulary_size",),
    "num_layers": ("num_encoder_layers", "num_decoder_layers"),
    "output_dim": ("d_model",),
    "padding_idx": ("pad_id",),
    "rate": ("dropout", "learning_rate"),
    "sequence_length": ("max_length",),
    "vocab_size": ("vocabulary_size", "source_vocabulary_size"),
}


def check_integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Returns the value as a Python int.

    Args:
        name: str. The argument's name, for the error.
        value: int, or an integer from another library such as NumPy.
        least: int. Lowest value allowed.
        most: int or None. Highest value allowed; None means 2**31 - 1.
    Raises:
        ValueError: if it is not an integer, or out of range.
    """
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        raise ValueError(f"`{name}` must be an integer {limits}. Received: {value!r}")
    if most is None and number > LARGEST_INT32:
        raise ValueError(f"`{name}` must be below 2**31. Received: {value!r}")
    return number


def check_seed(seed: Any) -> int | None:
    """Returns the `seed` as a Python int, or None.

    Raises:
        ValueError: if it is neither None nor an integer of at least 0.
    """
    return None if seed is None else check_integer("seed", seed, 0)


def check_probability(name: str, value: Any) -> float:
    """Returns the value as a Python float that is at least 0 and below 1.

    Args:
        name: str. The argument's name, for the error.
        value: a number.
    Raises:
        ValueError: if it is not a number, or out of range.
    """
    return check_number(name, value, 0.0, below=1.0)


def check_number(
    name: str,
    value: Any,
    least: float = -math.inf,
    below: float = math.inf,
    above: float = -math.inf,
) -> float:
    """Returns the value as a finite Python float.

    Args:
        name: str. The argument's name, for the error.
        value: a number.
        least: float. Lowest value allowed.
        below: float. Exclusive upper bound.
        above: float. Exclusive lower bound.
    Raises:
        ValueError: if it is not a number, not finite, or out of range.
    """
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and least <= number < below and number > above):
        bounds = {"at least": least, "above": above, "below": below}
        limits = [f"{name} {b:g}" for name, b in bounds.items() if math.isfinite(b)]
        text = f", {' and '.join(limits)}" if limits else ""
        raise ValueError(f"`{name}` must be a finite number{text}. Received: {value!r}")
    return number


def check_list(name: str, values: Any, what: str) -> list:
    """Returns the values as a list; anything else may be endless and is not read.

    Args:
        name: str. The argument's name, for the error.
        values: list, tuple or set.
        what: str. What it contains, such as "Keras callbacks".
    Raises:
        TypeError: if it is none of these.
    """
    if not isinstance(values, (list, tuple, set, frozenset)):
        raise TypeError(
            f"`{name}` must be a list of {what}. Received: a {type(values).__name__}"
        )
    return list(values)


def check_choice(name: str, value: Any, choices: Sequence) -> Any:
    """Returns the value if it is one of the choices.

    Args:
        name: str. The argument's name, for the error.
        value: the value received.
        choices: sequence of allowed values.
    Raises:
        ValueError: if it is not a choice; the error suggests one with a similar name.
    """
    if value not in choices:
        names = ", ".join(map(repr, choices))
        raise ValueError(
            f"`{name}` must be one of {names}. Received: {value!r}"
            f"{_did_you_mean(_spelled_alike(str(value), choices))}"
        )
    return value


def check_ids(what: str, ids: Any, size: int) -> None:
    """Refuses ids that are not in a vocabulary.

    Args:
        what: str. Name of an id in the error, such as "source id".
        ids: NumPy array of numbers.
        size: int. Size of the vocabulary.
    Raises:
        ValueError: if one is not an integer, negative, or at least `size`.
    """
    outside, sentence = outside_vocabulary(what, ids, size)
    if outside.any():
        raise ValueError(f"{sentence} {ids[outside][0]}")


def outside_vocabulary(what: str, ids: Any, size: int) -> tuple[Any, str]:
    """Finds ids that are not in a vocabulary, and returns the error message.

    The received value must be appended to the message.

    Args:
        what: str. Name of an id in the message.
        ids: array of numbers, or a tensor, which may be in a graph.
        size: int. Size of the vocabulary.
    Returns:
        Bool array or tensor with the shape of `ids`, and str.
    """
    outside = (ids < 0) | (ids >= size)
    if "int" not in str(ids.dtype):
        outside = outside | (ids % 1 != 0)
    return outside, (
        f"Each {what} must be a whole number of at least 0 and below the vocabulary's "
        f"size, {size}. Received:"
    )


def refuse_ragged(owner: str, values: Iterable[Any]) -> None:
    """Refuses TensorFlow's ragged tensors, including symbolic ones.

    Args:
        owner: str. Name of the object that does not accept them, for the error.
        values: the values to check.
    Raises:
        ValueError: if one is ragged.
    """
    for each in values:
        if getattr(each, "ragged", False) or hasattr(each, "row_splits"):
            raise ValueError(
                f"{owner} takes no ragged tensors: pad them, ids by `ids.to_tensor("
                "pad_id)`, vectors by `x.to_tensor()` and a mask of what is real. "
                f"Received: a ragged tensor of shape {tuple(each.shape)}"
            )


def check_line(number: int, line: Any, name: str = "Line") -> bytes:
    """Encodes a line of text in UTF-8.

    Args:
        number: int. The line's number, for the error.
        line: str.
        name: str. Name for a line in the error.
    Raises:
        TypeError: if it is not a str.
        ValueError: if it contains an unpaired surrogate, which UTF-8 cannot encode.
    """
    if not isinstance(line, str):
        raise TypeError(f"{name} {number} must be str. Received: {type(line).__name__}")
    try:
        return line.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} {number} holds half a character (an unpaired surrogate) at "
            f"position {error.start}: {line[:40]!r}"
        ) from None


def has_form(value: Any, form: Any) -> bool:
    """Returns True if a value from JSON has the expected types and names.

    Args:
        value: the value from JSON.
        form: a type; a list of one form, for a list of any length; a tuple of forms,
            for a list of the same length; or a dict of name -> form, for an object that
            may have further names.
    """
    if isinstance(form, dict):
        return isinstance(value, dict) and all(
            name in value and has_form(value[name], each) for name, each in form.items()
        )
    if isinstance(form, list):
        return isinstance(value, list) and all(has_form(x, form[0]) for x in value)
    if isinstance(form, tuple):
        same = isinstance(value, list) and len(value) == len(form)
        return same and all(map(has_form, value, form))
    return type(value) is form


class CheckedArguments:
    """A layer or model whose constructor names the wrong argument in errors.

    Each TypeError names the class that was called, and the argument that is missing,
    unknown, or keyword-only.
    """

    def __new__(cls, *args, **kwargs):
        if args or kwargs:  # Keras inspects a class by a call without arguments
            _check_arguments(cls, args, kwargs)
        return super().__new__(cls, *args, **kwargs)


class SavedAsKeras:
    """A model that cannot be saved in Keras's legacy HDF5 format."""

    def save(self, filepath: PathLike, *args, **kwargs) -> None:
        """Saves the model to one file, like `keras.Model.save`.

        Args:
            filepath: path that ends with ".keras".
            args: as in `keras.Model.save`.
            kwargs: as in `keras.Model.save`.
        Raises:
            ValueError: if the path ends with ".h5" or ".hdf5".
        """
        if str(filepath).endswith((".h5", ".hdf5")):
            raise ValueError(
                "Keras could not load this model from an HDF5 file: give the path an "
                "end of .keras, or save the weights alone with "
                f'`save_weights("model.weights.h5")`. Received: {str(filepath)!r}'
            )
        super().save(filepath, *args, **kwargs)


def _check_arguments(owner, args, kwargs):
    refuse_unknown(owner.__name__, kwargs, _argument_names(owner))
    signature = inspect.signature(owner.__init__)
    try:
        signature.bind(None, *args, **kwargs)
    except TypeError as error:
        parameters = [
            each.replace(annotation=each.empty)
            for name, each in signature.parameters.items()
            if name != "self" and each.kind != each.VAR_KEYWORD
        ]
        expected = inspect.Signature(parameters)
        raise TypeError(
            f"{owner.__name__}: {error}. Expected: {owner.__name__}{expected}"
        ) from None


def _argument_names(owner):
    """Returns the argument names of a class, our base classes and Keras's Layer."""
    names = {"input_shape", "input_dim", "batch_shape", "batch_input_shape"}
    for each in owner.__mro__:
        from_keras = each.__module__.startswith("keras.")
        if "__init__" in vars(each) and not (from_keras and each.__name__ != "Layer"):
            names |= inspect.signature(each.__init__).parameters.keys()
    return names - {"self", "args", "kwargs"}


def refuse_unknown(owner: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuses unknown argument names.

    Args:
        owner: str. Name of the class or function, for the error.
        names: the names received.
        known: the names allowed.
    Raises:
        TypeError: if one is unknown; the error suggests our name for it, or a similar
            name.
    """
    known = list(known)
    for name in names:
        if name not in known:
            meant = [each for each in NAMES_ELSEWHERE.get(name, ()) if each in known]
            hint = _did_you_mean(meant or _spelled_alike(name, known))
            raise TypeError(f"{owner} has no argument {name!r}.{hint}")


def extra_missing(what: str, packages: str, extra: str) -> ImportError:
    """Returns the error for packages that are installed by an extra of this package.

    Args:
        what: str. The feature that needs them, such as "Pictures".
        packages: str. Names of the packages.
        extra: str. Name of the extra in setup.cfg.
    """
    return ImportError(f"{what} need {packages}. {_installed_by(extra)}")


def backend_missing(backend: str) -> ImportError:
    """Returns the error for a selected backend of Keras that is not installed.

    Args:
        backend: str. One of `BACKENDS`.
    """
    return ImportError(
        f"Keras's backend {backend} is not installed. {_installed_by(backend)} To use "
        "another one, set the environment variable KERAS_BACKEND to its name: "
        f"{', '.join(name for name in BACKENDS if name != backend)}."
    )


def _installed_by(extra):
    return f'Install with: pip install ".[{extra}]", in a checkout of keras_vanilla.'


def some_of(numbers: Sequence[int], most: int = 5) -> str:
    """Formats the first numbers for a message: "4, 9, 17, ..."."""
    shown = ", ".join(map(str, numbers[:most]))
    return shown + (", ..." if len(numbers) > most else "")


def first_line(error: BaseException) -> str:
    """Returns the first line of an error message; those of Keras may fill pages.

    If it ends with a colon, the next line, which has the reason, is added.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    with_reason = lines[:2] if lines and lines[0].endswith(":") else lines[:1]
    return " ".join(with_reason) or type(error).__name__


def _did_you_mean(names):
    return f" Did you mean {' or '.join(map(repr, names))}?" if names else ""


def _spelled_alike(name, choices):
    """Returns the choice that a name misspells, as a list of at most one."""
    names = [choice for choice in choices if isinstance(choice, str)]
    return difflib.get_close_matches(name, names, n=1, cutoff=0.87)

"""Checks the arguments of `fit` and `evaluate` and adapts them for Keras."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras

INFINITE = -1  # the value that tf.data uses


def fit_arguments(*args, **kwargs) -> dict[str, Any]:
    """The arguments of a `fit` by name, with datasets in place of `Batches`.

    Args:
        args: as for `keras.Model.fit`.
        kwargs: as for `keras.Model.fit`.
    Raises:
        ValueError: if a dataset is infinite and no number of steps is given, or if
            there are class weights.
    """
    arguments = by_name(keras.Model.fit, args, kwargs)
    refuse_class_weight(arguments)
    if _is_batches(arguments.get("x")):
        arguments.setdefault("shuffle", False)  # otherwise Keras warns
    _use_dataset(arguments, "x", "steps_per_epoch")
    _use_dataset(arguments, "validation_data", "validation_steps")
    return arguments


def evaluate_arguments(*args, **kwargs) -> dict[str, Any]:
    """Same as `fit_arguments`, for `evaluate`."""
    arguments = by_name(keras.Model.evaluate, args, kwargs)
    _use_dataset(arguments, "x", "steps")
    return arguments


def refuse_class_weight(arguments: dict[str, Any]) -> None:
    """Refuses class weights, for which Keras takes the argmax of a whole sentence.

    Args:
        arguments: dict of arguments by name.
    Raises:
        ValueError: if `class_weight` is among them.
    """
    if arguments.get("class_weight") is not None:
        raise ValueError(
            "`class_weight` is for samples with one label, and a Transformer has one "
            "per token: give `sample_weight`, one per label (B, T) or one per pair "
            f"(B,). Received: class_weight={arguments['class_weight']!r:.80}"
        )


def cardinality(data: Any) -> int | None:
    """The number of batches as tf.data counts them; None if it is unknown."""
    count = getattr(data, "cardinality", None)
    if callable(count):  # in a distributed dataset it is a property
        count = count()
    return None if count is None else int(count)


def refuse_probabilities(loss: Any, pad_id: int) -> None:
    """Refuses a loss that expects probabilities, for a model that returns logits.

    Keras computes such a loss without an error, because it clips logits to [0, 1].

    Args:
        loss: the `loss` argument of `compile`.
        pad_id: int. The padding id of the model.
    Raises:
        ValueError: if the loss expects probabilities.
    """
    for each in keras.tree.flatten(loss):
        if _takes_probabilities(keras.losses.get(each)):
            raise ValueError(
                "A Transformer returns logits, and this loss expects probabilities: "
                "compile with `SmoothedCrossentropy()`, or with "
                "`keras.losses.SparseCategoricalCrossentropy(from_logits=True, "
                f"ignore_class={pad_id})`, without which padding counts. Received: "
                f"loss={each!r}"
            )


def refuse_fixed_learning_rate(
    callbacks: Iterable[keras.callbacks.Callback], optimizer: keras.Optimizer | None
) -> None:
    """Refuses callbacks that set the learning rate if it follows a schedule.

    Keras fails when such a callback first sets it, which may be after hours.

    Args:
        callbacks: the callbacks of `fit`, which may be nested lists.
        optimizer: the optimizer of the model.
    Raises:
        ValueError: if there is such a callback.
    """
    fixed = [
        each
        for each in getattr(optimizer, "optimizers", [optimizer])
        if each is not None and not isinstance(each.learning_rate, keras.Variable)
    ]
    for callback in _flat(callbacks):
        if fixed and isinstance(callback, _SET_THE_LEARNING_RATE):
            raise ValueError(
                f"{type(callback).__name__} sets the learning rate, which here follows "
                "a schedule: leave it out, or choose a number and no cooldown, such as "
                "`keras.optimizers.Adam(1e-4)`, or `learning_rate=1e-4` of "
                "`train_translator` and `compile_for_training`."
            )


def warn_of_many_shapes(data: Any, jit_compile: bool) -> None:
    """Warns about `Batches` of many shapes, because XLA compiles each shape.

    Args:
        data: the data given to `fit`.
        jit_compile: bool. Whether TensorFlow compiles the step with XLA.
    """
    if jit_compile and not getattr(data, "static_shapes", True):
        warnings.warn(
            "XLA compiles the training step for every shape of a batch, and these "
            "`Batches` have many: make them with `static_shapes=True`, or compile the "
            "model with `jit_compile=False`.",
            stacklevel=3,
        )


_SET_THE_LEARNING_RATE = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


def by_name(method: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of a Keras method, by name."""
    arguments = inspect.signature(method).bind(None, *args, **kwargs).arguments
    del arguments["self"]
    # `fit` passes a private argument to `evaluate`.
    others = arguments.pop("kwargs", {})
    return {**arguments, **others}


def _is_batches(data):
    return callable(getattr(data, "dataset", None))


def _use_dataset(arguments, data, steps):
    value = arguments.get(data)
    if arguments.get(steps) is None and getattr(value, "endless", False):
        arguments[steps] = value.steps_per_epoch
    if _is_batches(value):
        value = arguments[data] = value.dataset()
    if arguments.get(steps) is None and cardinality(value) == INFINITE:
        raise ValueError(
            f"`{data}` is infinite: set `{steps}` to the number of batches per epoch, "
            "or pass a dataset without `.repeat()`, or `Batches` instead of their "
            f"`dataset()`. Received: {steps}=None"
        )


def _takes_probabilities(loss):
    from_logits = getattr(loss, "from_logits", None)
    if inspect.isfunction(loss):
        parameter = inspect.signature(loss).parameters.get("from_logits")
        from_logits = parameter and parameter.default
    return from_logits is False


def _flat(callbacks) -> Iterator[keras.callbacks.Callback]:
    """Yields each callback, including those inside a `CallbackList`."""
    for each in keras.tree.flatten(callbacks):
        yield each
        yield from _flat(getattr(each, "callbacks", []))

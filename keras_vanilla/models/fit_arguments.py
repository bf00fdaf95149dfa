"""Checks the arguments of `fit` and `evaluate` and adapts them for Keras."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import keras

INFINITE = -1  # the value that tf.data uses


def by_name(method: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of a Keras method by name, with datasets in place of `Batches`.

    Args:
        method: `fit`, or another method of keras.Model.
        args: its arguments.
        kwargs: its keyword arguments.
    Raises:
        ValueError: if a dataset is infinite and no number of steps is given, or if
            there are class weights.
    """
    arguments = inspect.signature(method).bind(None, *args, **kwargs).arguments
    del arguments["self"]
    arguments |= arguments.pop("kwargs", {})  # `fit` gives `evaluate` a private one
    if arguments.get("class_weight") is not None:
        # Keras would take the argmax of a whole sentence.
        raise ValueError(
            "`class_weight` is for samples with one label, and a Transformer has one "
            "per token: give `sample_weight`, one per label (B, T) or one per pair "
            f"(B,). Received: class_weight={arguments['class_weight']!r:.80}"
        )
    if method is keras.Model.fit:
        if callable(getattr(arguments.get("x"), "dataset", None)):
            arguments.setdefault("shuffle", False)  # otherwise Keras warns
        _use_dataset(arguments, "x", "steps_per_epoch")
        _use_dataset(arguments, "validation_data", "validation_steps")
    if method is keras.Model.evaluate:
        _use_dataset(arguments, "x", "steps")
    return arguments


def _use_dataset(arguments, data, steps):
    """Replaces `Batches` by their dataset, with a number of steps if it is endless."""
    value = arguments.get(data)
    if arguments.get(steps) is None and getattr(value, "endless", False):
        arguments[steps] = value.steps_per_epoch
    if callable(getattr(value, "dataset", None)):
        value = arguments[data] = value.dataset()
    count = getattr(value, "cardinality", None)
    if callable(count):  # in a distributed dataset it is a property
        count = count()
    if arguments.get(steps) is None and count == INFINITE:
        raise ValueError(
            f"`{data}` is infinite: set `{steps}` to the number of batches per epoch, "
            f"or pass `Batches` instead of their `dataset()`. Received: {steps}=None"
        )


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
        function = keras.losses.get(each)
        from_logits = getattr(function, "from_logits", None)
        if inspect.isfunction(function):
            parameter = inspect.signature(function).parameters.get("from_logits")
            from_logits = parameter and parameter.default
        if from_logits is False:
            raise ValueError(
                "A Transformer returns logits, and this loss expects probabilities: "
                "compile with `SmoothedCrossentropy()` or `keras.losses."
                "SparseCategoricalCrossentropy(from_logits=True, "
                f"ignore_class={pad_id})`. Received: loss={each!r}"
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
    optimizers = getattr(optimizer, "optimizers", [optimizer])
    if all(
        each is None or isinstance(each.learning_rate, keras.Variable)
        for each in optimizers
    ):
        return
    for callback in keras.tree.flatten(callbacks):
        refuse_fixed_learning_rate(getattr(callback, "callbacks", ()), optimizer)
        if isinstance(
            callback,
            keras.callbacks.LearningRateScheduler | keras.callbacks.ReduceLROnPlateau,
        ):
            raise ValueError(
                f"{type(callback).__name__} sets the learning rate, which here follows "
                "a schedule: leave it out, or give the optimizer a number and no "
                "cooldown."
            )

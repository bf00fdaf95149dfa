"""Settings that must match those of a snapshot."""

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

import keras

from keras_vanilla._checks import check_choice, check_list
from keras_vanilla._version import __version__
from keras_vanilla.data.batching import Batches

# The names that `allow_changed` accepts, each with the parts of a snapshot's identity
# and the settings of `TrainingConfig` that may then differ.
CHANGEABLE = {
    "epochs": {"epochs"},
    "loss": {"loss", "label_smoothing"},
    "metrics": {"metrics"},
    "micro_batches": {"micro_batches"},
    "model": {"model"},
    "optimizer": {
        "optimizer",
        "learning_rate",
        "warmup_steps",
        "cooldown_epochs",
        "clip_norm",
        "weight_decay",
    },
    "versions": {"versions"},
}
MOST_NAMED = 5  # number of differences that an error lists


def check_changeable(names: str | Collection[str]) -> frozenset[str]:
    """Checks the names of settings that may differ from the snapshots.

    Args:
        names: list, tuple or set of str, or a single str.
    Raises:
        TypeError: if it is none of these.
        ValueError: if a name is not in `CHANGEABLE`.
    """
    names = [names] if isinstance(names, str) else names
    return frozenset(
        check_choice("allow_changed", name, tuple(CHANGEABLE))
        for name in check_list("allow_changed", names, "names")
    )


def identity_of(
    model: keras.Model,
    data: Batches,
    callbacks: list[keras.callbacks.Callback],
    epochs: int,
) -> dict[str, Any]:
    """Everything that determines the result of a run, as values that JSON supports.

    Args:
        model: compiled keras.Model.
        data: Batches.
        callbacks: the callbacks of the run.
        epochs: int.
    """
    optimizer, backend = optimizer_settings(model.optimizer), keras.backend.backend()
    # If custom code fails, the metrics are compared by the shapes of their variables.
    shapes = [list(variable.shape) for variable in model.metrics_variables]
    of_classes = {"loss": _text(model.loss), "metrics": shapes}
    compiled = settings_of(model.get_compile_config, of_classes)
    return {
        "callbacks": [type(each).__name__ for each in callbacks],
        "steps": data.steps_per_epoch,
        "epochs": epochs,
        "data": data.digest,
        "model": settings_of(model.get_config),
        "loss": {name: compiled.get(name) for name in ("loss", "loss_weights")},
        "metrics": {n: compiled.get(n) for n in ("metrics", "weighted_metrics")},
        "trainable": [weight.trainable for weight in model.weights],
        "micro_batches": compiled.get("micro_batches", 1),
        "quantize": getattr(model, "fake_quantization", None),
        # In Keras, "auto" also depends on whether operations were deterministic before.
        "jit_compile": bool(model.jit_compile),
        "learning_rate": _take_learning_rates(optimizer),
        "optimizer": optimizer,
        "versions": {
            "keras_vanilla": __version__,
            "keras": keras.__version__,
            "backend": f"{backend} {__import__(backend).__version__}",
        },
    }


def settings_of(get_config: Callable[[], dict], otherwise: Any = None) -> Any:
    """Settings as values that JSON supports; `otherwise` if custom code fails."""
    try:
        return _plain(get_config())
    except Exception:
        return otherwise


def learning_rates(optimizer: keras.optimizers.Optimizer) -> list[float]:
    """The current values of the learning rates that callbacks can change."""
    return _take_learning_rates(optimizer_settings(optimizer))


def optimizer_settings(optimizer: keras.optimizers.Optimizer) -> dict:
    """The class and settings of an optimizer, as values that JSON supports.

    The name is left out, because Keras numbers the optimizers of a process in it.
    """
    return _plain(keras.optimizers.serialize(optimizer))


def differences(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """Describes each value that has changed, such as "epochs was 3 and is 5".

    Args:
        before: nested dicts of values that JSON supports.
        now: the same for the current run.
        name: str. Name of the compared values.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            inner = f"{name}.{key}".lstrip(".")
            yield from differences(before.get(key), now.get(key), inner)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{name}[{i}]")
    elif before != now:
        yield f"{name} was {_short(before)} and is {_short(now)}"


def unlike(before: dict, now: dict, allowed: Collection[str] = ()) -> str | None:
    """Describes how a run differs from the unfinished one, and what to do about it.

    Args:
        before: dict of values that JSON supports, of the unfinished run.
        now: the same for the current run.
        allowed: names in `CHANGEABLE` of settings that may differ.
    Returns:
        The end of an error message with a remedy; None if nothing else differs.
    """
    names = {*before, *now}.difference(*(CHANGEABLE[name] for name in allowed))
    changed = {name for name in names if before.get(name) != now.get(name)}
    if not changed:
        return None
    before, now = ({name: each.get(name) for name in changed} for each in (before, now))
    texts = "; ".join(itertools.islice(differences(before, now), MOST_NAMED))
    remedies = {name for name, parts in CHANGEABLE.items() if changed & parts}
    if changed <= set().union(*(CHANGEABLE[name] for name in remedies)):
        together = sorted({*remedies, *allowed})
        other = f"`allow_changed={together}` to continue with what is new"
    else:
        other = "another folder to start anew"
    return f"{texts}. Use what it was begun with, or {other}."


def _take_learning_rates(settings):
    """Removes the rates that are numbers from settings, and returns them."""
    rates = []
    for name, value in list(settings.items()):
        if name == "learning_rate" and isinstance(value, (int, float)):
            rates.append(settings.pop(name))
        elif isinstance(value, dict):
            rates += _take_learning_rates(value)
    return rates


# Keras numbers the layers and optimizers of a process in their names.
_NAMES = ("name", "inbound_nodes", "input_layers", "output_layers")
# Entries that depend on a layer's first batch, or on the process.
_PASSING = ("build_config", "build_input_shape", "shared_object_id")


def _plain(settings):
    """Settings as JSON values, without entries that differ between processes."""
    return _without_names(json.loads(json.dumps(settings, default=_text)))


def _text(value):
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _without_names(settings):
    if isinstance(settings, list):
        return [_without_names(each) for each in settings]
    if not isinstance(settings, dict):
        return settings
    kind = settings.get("class_name")
    if kind == "__lambda__":
        return "a lambda"  # its bytes differ between processes
    if isinstance(kind, str) and kind.endswith("DTypePolicy"):
        return settings  # the name describes it
    return {
        key: _without_names(value)
        for key, value in settings.items()
        if key not in (*_NAMES, *_PASSING)
    }


def _short(value):
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

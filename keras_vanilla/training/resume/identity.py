"""Settings that must match those of a snapshot."""

import json
import re
from collections.abc import Callable, Collection
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
# Entries of a configuration that depend on what else a process has created, or on a
# layer's first batch.
_PASSING = {
    "name",
    "inbound_nodes",
    "input_layers",
    "output_layers",
    "build_config",
    "build_input_shape",
    "shared_object_id",
}


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
    backend = keras.backend.backend()
    compiled = _settings_of(model.get_compile_config) or {"loss": _text(model.loss)}
    return {
        "callbacks": [type(each).__name__ for each in callbacks],
        "steps": data.steps_per_epoch,
        "epochs": epochs,
        "data": data.digest,
        "model": _settings_of(model.get_config),
        "loss": {name: compiled.get(name) for name in ("loss", "loss_weights")},
        "metrics": {n: compiled.get(n) for n in ("metrics", "weighted_metrics")},
        "trainable": [weight.trainable for weight in model.weights],
        "micro_batches": compiled.get("micro_batches", 1),
        "quantize": getattr(model, "fake_quantization", None),
        # In Keras, "auto" also depends on whether operations were deterministic before.
        "jit_compile": bool(model.jit_compile),
        "learning_rate": _learning_rates(model.optimizer),
        "optimizer": optimizer_settings(model.optimizer),
        "versions": {
            "keras_vanilla": __version__,
            "keras": keras.__version__,
            "backend": f"{backend} {__import__(backend).__version__}",
        },
    }


def optimizer_settings(optimizer: keras.optimizers.Optimizer) -> dict:
    """The class and settings of an optimizer, as values that JSON supports."""
    return _plain(keras.optimizers.serialize(optimizer))


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

    def described(name):
        values = f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        return values if len(values) < 250 else f"{name} has changed"

    remedies = {name for name, parts in CHANGEABLE.items() if changed & parts}
    if changed <= set().union(*(CHANGEABLE[name] for name in remedies)):
        together = sorted({*remedies, *allowed})
        other = f"`allow_changed={together}` to continue with what is new"
    else:
        other = "another folder to start anew"
    texts = "; ".join(map(described, sorted(changed)))
    return f"{texts}. Use what it was begun with, or {other}."


def _learning_rates(optimizer):
    """The rates that are numbers, which callbacks can change."""
    optimizers = getattr(optimizer, "optimizers", [optimizer])
    rates = (each.learning_rate for each in optimizers)
    numbers = (rate for rate in rates if isinstance(rate, keras.Variable))
    return [float(str(keras.ops.convert_to_numpy(rate))) for rate in numbers]


def _settings_of(get_config: Callable[[], dict]) -> Any:
    try:
        return _plain(get_config())
    except Exception:  # that of custom code
        return None


def _plain(settings):
    """Settings as JSON values, without entries that differ between processes."""
    return json.loads(json.dumps(settings, default=_text), object_hook=_lasting)


def _text(value):
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _lasting(settings):
    if settings.get("class_name") == "__lambda__":
        return "a lambda"  # its bytes differ between processes
    if settings.keys() == {"name"}:
        return settings  # of a precision policy
    return {name: each for name, each in settings.items() if name not in _PASSING}

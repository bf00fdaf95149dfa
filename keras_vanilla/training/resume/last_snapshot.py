"""The snapshot that a training resumes from, or the reason why it cannot."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import keras

from keras_vanilla.distribution.agreement import mean_over_processes
from keras_vanilla.distribution.replicas import Replicas
from keras_vanilla.training.resume import callback_state, model_state
from keras_vanilla.training.resume.identity import refuse_other_training
from keras_vanilla.training.resume.snapshots import Snapshots


def agreed_snapshot(
    snapshots: Snapshots, model: keras.Model, replicas: Replicas
) -> dict[str, Any] | None:
    """The newest snapshot, which every process must find; None if there is none.

    Args:
        snapshots: Snapshots.
        model: keras.Model that is trained.
        replicas: Replicas that train it.
    Raises:
        ValueError: if all of them are damaged, the newest is of an earlier version, or
            processes find different ones.
        OSError: if one cannot be read.
    """
    snapshot = snapshots.newest()
    if snapshot is not None:
        _refuse_other_parts(snapshot, snapshots.folder)
    step = snapshot["step"] if snapshot else -1
    if replicas.in_other_processes and mean_over_processes(model, step) != step:
        raise ValueError(
            f"This process would resume after step {step}, others after another: "
            f"{snapshots.folder} must be a folder that all of them can read."
        )
    return snapshot


def refuse_unfit(
    snapshot: dict[str, Any],
    path: Path,
    model: keras.Model,
    callbacks: list[keras.callbacks.Callback],
    identity: dict[str, Any],
    allowed: Collection[str],
) -> None:
    """Refuses a snapshot that this training cannot continue from.

    A learning rate that only callbacks have changed becomes, in `identity`, the one
    that the training began with.

    Args:
        snapshot: what `agreed_snapshot` returned.
        path: path of its file.
        model: keras.Model that is trained.
        callbacks: those to resume.
        identity: `identity_of` this training.
        allowed: names in it that may differ.
    Raises:
        ValueError: if it is of another training or model, or one that has ended before
            the last epoch now asked for or cannot be trained further.
    """
    saved, rates_then = snapshot["identity"], snapshot["learning_rate"]
    refuse_other_training(saved, identity, rates_then, allowed, path)
    _refuse_other_shapes(snapshot["variables"], path, model_state.shapes(model))
    if identity["learning_rate"] == rates_then:
        identity["learning_rate"] = saved["learning_rate"]
    _refuse_other_epochs(snapshot, identity, path, callbacks)


def description(snapshot: dict[str, Any], path: Path, epochs: int) -> str:
    """One line about what is resumed.

    Args:
        snapshot: what `agreed_snapshot` returned.
        path: path of its file.
        epochs: int. Number of epochs of the training.
    """
    epoch, step = snapshot["epoch"], f"step {snapshot['step']:,}"
    if snapshot["stopped"]:
        return f"{path}: a callback stopped this training after epoch {epoch}, {step}."
    if epoch >= epochs:
        return f"{path}: this training is finished, after epoch {epoch}, {step}."
    return f"Resumed from {path}: epoch {epoch + 1} of {epochs}, {step}."


_PARTS = {
    "identity": dict,
    "learning_rate": list,
    "variables": list,
    "metrics": list,
    "epoch": int,
    "batch": int,
    "step": int,
    "offset": int,
    "stopped": bool,
    "history": dict,
    "states": list,
}


def _refuse_other_parts(snapshot, folder):
    try:
        whole = all(isinstance(snapshot[name], kind) for name, kind in _PARTS.items())
    except (KeyError, TypeError):
        whole = False
    if not whole:
        raise ValueError(
            f"The last snapshot in {folder} was taken by an earlier version of "
            "keras_vanilla, or by another program: delete the folder to start again."
        )


def _refuse_other_shapes(values, path, shapes):
    if shapes != [value.shape for value in values]:
        raise ValueError(
            f"{path} is of another model or optimizer: its {len(values)} variables "
            f"have other shapes than the {len(shapes)} of this one."
        )


def _refuse_other_epochs(snapshot, identity, path, callbacks):
    epoch = snapshot["epoch"]
    if identity["epochs"] < epoch + bool(snapshot["batch"]):
        raise ValueError(
            f"{path} has trained more epochs than that, {epoch}. Received: "
            f"epochs={identity['epochs']}"
        )
    if snapshot["identity"]["epochs"] <= epoch < identity["epochs"]:
        reason = callback_state.cannot_train_on(callbacks)
        if reason:
            raise ValueError(
                f"{path} is of a finished training that cannot train more epochs "
                f"exactly: {reason}."
            )

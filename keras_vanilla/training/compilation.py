"""Compiles a Transformer for training."""

import keras

from keras_vanilla.models.fake_quantization import fake_quantize
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.training.loss import SmoothedCrossentropy
from keras_vanilla.training.metrics import TokenAccuracy, TokenCrossentropy
from keras_vanilla.training.schedule import transformer_optimizer


def compile_for_training(
    model: Transformer,
    warmup_steps: int | None = None,
    label_smoothing: float = 0.1,
    micro_batches: int = 1,
    optimizer: keras.optimizers.Optimizer | None = None,
    clip_norm: float = 0.0,
    weight_decay: float = 0.0,
    learning_rate: float | None = None,
    quantize: str | None = None,
) -> None:
    """Compiles a Transformer with the paper's optimizer, the loss and exact metrics.

    With `quantize` the model computes as its `.tflite` file in that precision, see
    `keras_vanilla.models.fake_quantize`, until it is compiled without `quantize`.

    Args:
        model: Transformer.
        warmup_steps: int. Steps until the highest learning rate; None means 4000.
        label_smoothing: float.
        micro_batches: int. Number of parts of each batch that are computed one after
            the other; more parts need less memory.
        optimizer: an optimizer to use instead of `transformer_optimizer`; it ignores
            `warmup_steps`.
        clip_norm: float. Largest global norm of the gradients; 0 means no limit.
        weight_decay: float. See `transformer_optimizer`.
        learning_rate: float. A constant rate instead of the paper's schedule.
        quantize: "int8", "int4" or None.
    Raises:
        ValueError: if a value is out of range, `clip_norm`, `weight_decay` or
            `learning_rate` is combined with an optimizer, or `warmup_steps` with
            `learning_rate`.
    """
    refuse_both(
        optimizer, learning_rate, clip_norm=clip_norm, weight_decay=weight_decay
    )
    fake_quantize(model, quantize)
    if optimizer is None:
        optimizer = transformer_optimizer(
            model.d_model, warmup_steps, clip_norm, weight_decay, learning_rate
        )
    model.compile(
        optimizer=optimizer,
        loss=SmoothedCrossentropy(label_smoothing, model.pad_id),
        metrics=[
            TokenCrossentropy(pad_id=model.pad_id),
            TokenAccuracy(pad_id=model.pad_id),
        ],
        # XLA would compile each batch shape, and drop the check of the ids.
        jit_compile=False if keras.backend.backend() == "tensorflow" else "auto",
        micro_batches=micro_batches,
    )
    # TensorFlow traces a step again if variables are created inside it.
    model.optimizer.build(model.trainable_variables)


def refuse_both(
    optimizer: keras.optimizers.Optimizer | None,
    learning_rate: float | None,
    **numbers: float,
) -> None:
    """Refuses settings of `transformer_optimizer` together with another optimizer.

    Args:
        optimizer: the other optimizer, or None.
        learning_rate: float or None.
        numbers: the other settings by name; 0 means not given.
    Raises:
        ValueError: if an optimizer and such a setting are given.
    """
    settings = {name: value for name, value in numbers.items() if value}
    if learning_rate is not None:
        settings["learning_rate"] = learning_rate
    if optimizer is not None and settings:
        texts = (f"{name}={value}" for name, value in settings.items())
        raise ValueError(
            "An optimizer brings its own learning rate, clipping and weight decay: set "
            f"them in it. Received: {', '.join(texts)} and an optimizer"
        )

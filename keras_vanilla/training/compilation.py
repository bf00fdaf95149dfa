"""Compiles a Transformer for training."""

import keras

from keras_vanilla.models.ensemble import Ensemble
from keras_vanilla.models.fake_quantization import fake_quantize
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.training.loss import RDropCrossentropy, SmoothedCrossentropy
from keras_vanilla.training.metrics import TokenAccuracy, TokenCrossentropy
from keras_vanilla.training.schedule import transformer_optimizer
from keras_vanilla.training.word_level import WordLevelCrossentropy


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
    r_drop: float = 0.0,
    teacher: Transformer | Ensemble | None = None,
    word_level: float = 0.0,
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
        r_drop: float. Above 0, the loss is `RDropCrossentropy` with this `alpha`.
        teacher: Transformer or Ensemble with the same vocabularies, from which the
            model learns, see `WordLevelCrossentropy`. Requires `word_level`.
        word_level: float in [0, 1]. Weight of the teacher's probabilities.
    Raises:
        ValueError: if a value is out of range, only one of `teacher` and `word_level`
            is given or they are combined with `r_drop`, `clip_norm`, `weight_decay` or
            `learning_rate` is combined with an optimizer, or `warmup_steps` with
            `learning_rate`.
    """
    refuse_both(
        optimizer, learning_rate, clip_norm=clip_norm, weight_decay=weight_decay
    )
    check_teaching(teacher, word_level, r_drop)
    if teacher is not None:
        loss = WordLevelCrossentropy(teacher, word_level, label_smoothing, model.pad_id)
    elif r_drop:
        loss = RDropCrossentropy(r_drop, label_smoothing, model.pad_id)
    else:
        loss = SmoothedCrossentropy(label_smoothing, model.pad_id)
    fake_quantize(model, quantize)
    if optimizer is None:
        optimizer = transformer_optimizer(
            model.d_model, warmup_steps, clip_norm, weight_decay, learning_rate
        )
    model.compile(
        optimizer=optimizer,
        loss=loss,
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


def check_teaching(teacher: object, word_level: float, r_drop: float) -> None:
    """Refuses a teacher without a weight or the reverse, and R-Drop with a teacher.

    Raises:
        ValueError: if only one of them is given, or `r_drop` is given too.
    """
    if (teacher is not None) != (word_level > 0):
        received = "no teacher" if teacher is None else "a teacher"
        raise ValueError(
            "`teacher` and `word_level` above 0 must be given together. Received: "
            f"{received} and word_level={word_level}"
        )
    if word_level and r_drop:
        raise ValueError(
            "`word_level` and `r_drop` are two losses. Received: "
            f"word_level={word_level} and r_drop={r_drop}"
        )


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

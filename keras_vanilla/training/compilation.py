"""Compiles a Transformer for training."""

import keras

from keras_vanilla.models.fake_quantization import fake_quantize
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.training.config import TrainingConfig
from keras_vanilla.training.loss import SmoothedCrossentropy
from keras_vanilla.training.metrics import TokenAccuracy, TokenCrossentropy
from keras_vanilla.training.schedule import transformer_optimizer

SETTINGS = (
    "clip_norm",
    "label_smoothing",
    "learning_rate",
    "micro_batches",
    "quantize",
    "warmup_steps",
    "weight_decay",
)


def compile_for_training(
    model: Transformer,
    config: TrainingConfig | None = None,
    *,
    optimizer: keras.optimizers.Optimizer | None = None,
    **settings,
) -> None:
    """Compiles a Transformer with the paper's optimizer, the loss and exact metrics.

    With `quantize` the model computes as its `.tflite` file in that precision, see
    `keras_vanilla.models.fake_quantize`, until it is compiled without `quantize`.

    Args:
        model: Transformer.
        config: TrainingConfig, of which the settings below are used; None means the
            defaults. Without `warmup_steps` and `learning_rate`, there are 4000 steps.
        optimizer: a Keras optimizer to use instead of `transformer_optimizer`; it
            ignores `warmup_steps`.
        **settings: `warmup_steps`, `learning_rate`, `clip_norm`, `weight_decay`,
            `label_smoothing`, `micro_batches` and `quantize` of `TrainingConfig`,
            instead of those of `config`.
    Raises:
        TypeError: if a setting is unknown, or `config` has another type.
        ValueError: if a value is out of range, `clip_norm`, `weight_decay` or
            `learning_rate` is combined with an optimizer, `warmup_steps` with
            `learning_rate`, or there are `cooldown_epochs`, which
            `transformer_optimizer` takes as a number of steps.
    """
    owner = "compile_for_training"
    config = TrainingConfig.of(owner, config, settings, (*SETTINGS, "optimizer"))
    config.check_optimizer(optimizer)
    if optimizer is None:
        if config.cooldown_epochs:
            raise ValueError(
                "A cooldown needs the number of steps: give the optimizer "
                "`transformer_optimizer(..., total_steps=, cooldown_steps=)`. "
                f"Received: cooldown_epochs={config.cooldown_epochs}"
            )
        optimizer = transformer_optimizer(
            model.d_model,
            config.warmup_steps,
            config.clip_norm,
            config.weight_decay,
            config.learning_rate,
        )
    compile_with(model, optimizer, config)


def compile_with(
    model: Transformer, optimizer: keras.optimizers.Optimizer, config: TrainingConfig
) -> None:
    """Compiles a Transformer with an optimizer, and the loss and metrics of a config.

    Args:
        model: Transformer.
        optimizer: a Keras optimizer.
        config: TrainingConfig.
    """
    fake_quantize(model, config.quantize)
    model.compile(
        optimizer=optimizer,
        loss=SmoothedCrossentropy(config.label_smoothing, model.pad_id),
        metrics=[
            TokenCrossentropy(pad_id=model.pad_id),
            TokenAccuracy(pad_id=model.pad_id),
        ],
        # XLA would compile each batch shape, and drop the check of the ids.
        jit_compile=False if keras.backend.backend() == "tensorflow" else "auto",
        micro_batches=config.micro_batches,
    )
    # TensorFlow traces a step again if variables are created inside it.
    model.optimizer.build(model.trainable_variables)

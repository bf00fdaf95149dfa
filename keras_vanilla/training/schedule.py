"""The paper's learning rate schedule and optimizer."""

import keras
from keras import ops

from keras_vanilla._checks import check_integer, check_number
from keras_vanilla._types import Tensor


@keras.saving.register_keras_serializable(package="keras_vanilla")
class TransformerSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that rises linearly, then falls with the root of the step.

        rate = d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)

    The paper counts steps from 1, Keras from 0: the first update is step 1 here.

    Args:
        d_model: int. The model's width.
        warmup_steps: int. Steps until the highest rate.
    Call arguments:
        step: int scalar. Number of updates made so far.
    Returns:
        Float32 scalar.
    Raises:
        ValueError: if an argument is below 1.
    Example:
        >>> schedule = TransformerSchedule(d_model=512)
        >>> round(float(schedule(3999)), 6)
        0.000699

    Source: Vaswani et al. 2017, section 5.3.
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000):
        super().__init__()
        self.d_model = check_integer("d_model", d_model, 1)
        self.warmup_steps = check_integer("warmup_steps", warmup_steps, 1)

    def __call__(self, step: Tensor | int) -> Tensor:
        step = ops.cast(step, "float32") + 1.0
        rising = step * self.warmup_steps**-1.5
        return self.d_model**-0.5 * ops.minimum(step**-0.5, rising)

    def get_config(self) -> dict:
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps}


def transformer_optimizer(
    d_model: int,
    warmup_steps: int = 4000,
    clip_norm: float = 0.0,
    weight_decay: float = 0.0,
) -> keras.optimizers.Optimizer:
    """The paper's optimizer: Adam(0.9, 0.98, 1e-9) under `TransformerSchedule`.

    The paper neither clips gradients nor decays weights.

    Args:
        d_model: int. The model's width.
        warmup_steps: int. Steps until the highest learning rate.
        clip_norm: float. Largest norm of all gradients together; 0 means any.
        weight_decay: float. Share of each weight, times the learning rate, that is
            subtracted at each step, as AdamW does.
    Raises:
        ValueError: if a number is out of its range.
    Source: Vaswani et al. 2017, section 5.3.
    """
    return keras.optimizers.Adam(
        TransformerSchedule(d_model, warmup_steps),
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        weight_decay=check_number("weight_decay", weight_decay, 0) or None,
        global_clipnorm=check_number("clip_norm", clip_norm, 0) or None,
    )

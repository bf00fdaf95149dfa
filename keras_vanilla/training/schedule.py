"""The paper's learning rate schedule and optimizer."""

import keras
from keras import ops

from keras_vanilla._checks import check_integer, check_number
from keras_vanilla._types import Tensor

_PAPER_STEPS = 4000


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

    def __init__(self, d_model: int, warmup_steps: int = _PAPER_STEPS):
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
    warmup_steps: int | None = None,
    clip_norm: float = 0.0,
    weight_decay: float = 0.0,
    learning_rate: float | None = None,
) -> keras.optimizers.Optimizer:
    """The paper's optimizer: Adam(0.9, 0.98, 1e-9) under `TransformerSchedule`.

    The paper neither clips gradients nor decays weights.

    Args:
        d_model: int. The model's width.
        warmup_steps: int. Steps until the highest learning rate; None means 4000.
        clip_norm: float. Largest norm of all gradients together; 0 means any.
        weight_decay: float. Share of each weight, times the learning rate, that is
            subtracted at each step, as AdamW does.
        learning_rate: float. A constant rate instead of the schedule, for fine-tuning;
            callbacks such as `ReduceLROnPlateau` may change it.
    Raises:
        ValueError: if a number is out of its range, or `warmup_steps` is given beside
            `learning_rate`.
    Source: Vaswani et al. 2017, section 5.3.
    """
    refuse_warmup_of_constant(learning_rate, warmup_steps)
    if learning_rate is None:
        steps = _PAPER_STEPS if warmup_steps is None else warmup_steps
        rate = TransformerSchedule(d_model, steps)
    else:
        rate = check_number("learning_rate", learning_rate, 0)
    return keras.optimizers.Adam(
        rate,
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        weight_decay=check_number("weight_decay", weight_decay, 0) or None,
        global_clipnorm=check_number("clip_norm", clip_norm, 0) or None,
    )


def refuse_warmup_of_constant(
    learning_rate: float | None, warmup_steps: int | None
) -> None:
    """Refuses warm-up steps beside a constant learning rate, which has none.

    Raises:
        ValueError: if both are given.
    """
    if learning_rate is not None and warmup_steps is not None:
        raise ValueError(
            "`learning_rate` is constant, and `warmup_steps` are of the paper's "
            f"schedule: give one of them. Received: learning_rate={learning_rate}, "
            f"warmup_steps={warmup_steps}"
        )

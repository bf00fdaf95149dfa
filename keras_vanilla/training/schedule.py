"""The paper's learning rate schedule and optimizer, and a cooldown at the end."""

import keras
from keras import ops

from keras_vanilla._checks import check_integer, check_number
from keras_vanilla._types import Tensor

_PAPER_STEPS = 4000
_SMALL_WIDTH = 256


@keras.saving.register_keras_serializable(package="keras_vanilla")
class TransformerSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises linearly, then falls with the square root of the step.

        rate = d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)

    The paper counts steps from 1, Keras from 0: the first update is step 1 here. A
    shorter warm-up has a higher peak. With `decay_from`, the rate only rises to its
    value at step `decay_from`, is constant until that step, and then falls as usual.

    Args:
        d_model: int. The model's width.
        warmup_steps: int. Steps until the highest rate.
        decay_from: int. Step from which the rate falls, at least `warmup_steps`; None,
            as in the paper, means the end of the warm-up.
    Call arguments:
        step: int scalar. Number of updates so far.
    Returns:
        Float32 scalar.
    Raises:
        ValueError: if an argument is below 1, or `decay_from` below `warmup_steps`.
    Example:
        >>> schedule = TransformerSchedule(d_model=512)
        >>> round(float(schedule(3999)), 6)
        0.000699

    Source: Vaswani et al. 2017, section 5.3.
    """

    def __init__(
        self,
        d_model: int,
        warmup_steps: int = _PAPER_STEPS,
        decay_from: int | None = None,
    ):
        super().__init__()
        self.d_model = check_integer("d_model", d_model, 1)
        self.warmup_steps = check_integer("warmup_steps", warmup_steps, 1)
        if decay_from is not None:
            decay_from = check_integer("decay_from", decay_from, self.warmup_steps)
        self.decay_from = decay_from

    def __call__(self, step: Tensor | int) -> Tensor:
        step = ops.cast(step, "float32") + 1.0
        if self.decay_from is None:
            rising = step * self.warmup_steps**-1.5
        else:
            share = ops.minimum(step / self.warmup_steps, 1.0)
            rising = share * self.decay_from**-0.5
        return self.d_model**-0.5 * ops.minimum(step**-0.5, rising)

    def get_config(self) -> dict:
        config = {"d_model": self.d_model, "warmup_steps": self.warmup_steps}
        if self.decay_from is not None:  # older snapshots do not have it
            config["decay_from"] = self.decay_from
        return config


@keras.saving.register_keras_serializable(package="keras_vanilla")
class Cooldown(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that falls linearly to 0 over the last steps.

        rate = learning_rate(step) * min(1, (total_steps - step) / cooldown_steps)

    Args:
        learning_rate: float or `LearningRateSchedule`. The rate without cooldown.
        total_steps: int. Total number of training steps; the rate is 0 after them.
        cooldown_steps: int. Number of last steps in which the rate falls.
    Call arguments:
        step: int scalar. Number of updates so far.
    Returns:
        Float32 scalar.
    Raises:
        ValueError: if `learning_rate` is negative, `total_steps` is below 1, or
            `cooldown_steps` is below 1 or above `total_steps`.
    Example:
        >>> schedule = Cooldown(0.5, total_steps=100, cooldown_steps=20)
        >>> [float(schedule(step)) for step in (0, 80, 90, 100)]
        [0.5, 0.5, 0.25, 0.0]

    Source: Hägele et al. 2024, "Scaling Laws and Compute-Optimal Training Beyond Fixed
    Training Durations", section 3.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule,
        total_steps: int,
        cooldown_steps: int,
    ):
        super().__init__()
        if not callable(learning_rate):
            learning_rate = check_number("learning_rate", learning_rate, 0)
        self.learning_rate = learning_rate
        self.total_steps = check_integer("total_steps", total_steps, 1)
        self.cooldown_steps = check_integer(
            "cooldown_steps", cooldown_steps, 1, self.total_steps
        )

    def __call__(self, step: Tensor | int) -> Tensor:
        rate = self.learning_rate
        rate = rate(step) if callable(rate) else rate
        left = self.total_steps - ops.cast(step, "float32")
        return rate * ops.clip(left / self.cooldown_steps, 0.0, 1.0)

    def get_config(self) -> dict:
        rate = self.learning_rate
        return {
            "learning_rate": keras.saving.serialize_keras_object(rate),
            "total_steps": self.total_steps,
            "cooldown_steps": self.cooldown_steps,
        }

    @classmethod
    def from_config(cls, config: dict) -> "Cooldown":
        rate = keras.saving.deserialize_keras_object(config["learning_rate"])
        return cls(**{**config, "learning_rate": rate})


def transformer_optimizer(
    d_model: int,
    warmup_steps: int | None = None,
    clip_norm: float = 0.0,
    weight_decay: float = 0.0,
    learning_rate: float | None = None,
    total_steps: int | None = None,
    cooldown_steps: int = 0,
    decay_from: int | None = None,
) -> keras.optimizers.Optimizer:
    """The paper's optimizer: Adam(0.9, 0.98, 1e-9) with `TransformerSchedule`.

    The paper neither clips gradients nor decays weights, and has no cooldown.

    Args:
        d_model: int. The model's width.
        warmup_steps: int. Steps until the highest learning rate; None means 4000.
        clip_norm: float. Largest global norm of the gradients; 0 means no limit.
        weight_decay: float. Fraction of each weight, times the learning rate, that is
            subtracted at each step, as in AdamW.
        learning_rate: float. A constant rate instead of the schedule, for fine-tuning;
            without a cooldown, callbacks such as `ReduceLROnPlateau` may change it.
        total_steps: int. Total number of training steps, for `cooldown_steps`.
        cooldown_steps: int. Number of last steps in which the learning rate falls to 0,
            see `Cooldown`; 0 means no cooldown.
        decay_from: int. Step from which the rate falls, see `TransformerSchedule`.
    Raises:
        ValueError: if a number is out of range, `warmup_steps` or `decay_from` is
            combined with `learning_rate`, or `cooldown_steps` is given without
            `total_steps`.
    Source: Vaswani et al. 2017, section 5.3.
    """
    refuse_warmup_of_constant(learning_rate, warmup_steps)
    if learning_rate is None:
        steps = _PAPER_STEPS if warmup_steps is None else warmup_steps
        rate = TransformerSchedule(d_model, steps, decay_from)
    elif decay_from is not None:
        raise ValueError(
            "`decay_from` belongs to the paper's schedule, and `learning_rate` is "
            f"constant. Received: learning_rate={learning_rate}, "
            f"decay_from={decay_from}"
        )
    else:
        rate = check_number("learning_rate", learning_rate, above=0)
    if check_integer("cooldown_steps", cooldown_steps, 0):
        rate = Cooldown(rate, total_steps, cooldown_steps)
    elif total_steps is not None:
        check_integer("total_steps", total_steps, 1)
    return keras.optimizers.Adam(
        rate,
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        weight_decay=check_number("weight_decay", weight_decay, 0) or None,
        global_clipnorm=check_number("clip_norm", clip_norm, 0) or None,
    )


def decay_after_short_warmup(d_model: int, warmup_steps: int, short_steps: int) -> int:
    """The `decay_from` of a warm-up that is shortened for a short run.

    With the paper's formula, the peak would be so high that a model learns nothing.
    Here it is lower than that of the full warm-up, by the square root of the remaining
    fraction. Models narrower than preset "small" learn more with a higher peak; with
    it, wider post-norm models may not learn to use the source.

    Args:
        d_model: int. The model's width.
        warmup_steps: int. Number of steps of the full warm-up.
        short_steps: int. Number of steps of the shortened warm-up.
    """
    decay_from = warmup_steps**2 / short_steps * min(1, d_model / _SMALL_WIDTH)
    return max(warmup_steps, round(decay_from))


def refuse_warmup_of_constant(
    learning_rate: float | None, warmup_steps: int | None
) -> None:
    """Refuses warm-up steps together with a constant learning rate.

    Raises:
        ValueError: if both are given.
    """
    if learning_rate is not None and warmup_steps is not None:
        raise ValueError(
            "`learning_rate` is constant, and `warmup_steps` belong to the paper's "
            f"schedule: give one of them. Received: learning_rate={learning_rate}, "
            f"warmup_steps={warmup_steps}"
        )

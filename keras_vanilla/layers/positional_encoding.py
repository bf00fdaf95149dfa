"""Sinusoidal positional encoding."""

import keras
import numpy as np
from keras import ops

from keras_vanilla._checks import (
    check_choice,
    check_number,
    check_probability,
    check_seed,
)
from keras_vanilla.layers.layer import (
    Layer,
    check_shape,
)

LAYOUTS = ("interleaved", "concatenated", "tensor2tensor")


@keras.saving.register_keras_serializable(package="keras_vanilla")
class PositionalEncoding(Layer):
    """Adds the sinusoid of each position to the vector at that position.

        PE(pos, 2i) = sin(pos / 10000^(2i / d_model))
        PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

    with i in [0, d_model / 2). "interleaved" is the paper's layout; "concatenated"
    puts all sines before all cosines, as Hugging Face's Marian models do.
    "tensor2tensor" does the same with the frequencies 10000^(-i / (d_model / 2 - 1)) of
    Tensor2Tensor and of Marian itself, the last of which is 1 / 10000. Sequences may
    have any length. The encoding is computed in at least float32 and then cast, because
    after a few hundred positions the error of a half-precision angle exceeds the
    amplitude of the sinusoid. The mask is passed on.

    Args:
        max_wavelength: number. 10,000 in the paper.
        layout: "interleaved", "concatenated" or "tensor2tensor".
        dropout: float. Applied to the sum (section 5.4).
        seed: int or None. Seed of the dropout.
    Call arguments:
        inputs: float tensor (B, T, D), D even.
        start_index: int or int32 scalar. Position of the first vector.
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype.
    Raises:
        ValueError: if the layout is unknown, `max_wavelength` is not positive, D is
            odd, the inputs do not have rank 3, or `start_index` is not a scalar.
    Example:
        >>> outputs = PositionalEncoding()(np.zeros((1, 2, 4), "float32"))
        >>> [round(float(number), 2) for number in outputs[0, 0]]
        [0.0, 1.0, 0.0, 1.0]

    Source: Vaswani et al. 2017, section 3.5.
    """

    def __init__(
        self,
        *,
        max_wavelength: float = 10_000,
        layout: str = "interleaved",
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_number("max_wavelength", max_wavelength, above=0.0)
        self.max_wavelength = max_wavelength
        self.layout = check_choice("layout", layout, LAYOUTS)
        self.dropout = check_probability("dropout", dropout)
        self.seed = check_seed(seed)
        self.supports_masking = True
        self._dropout_layer = keras.layers.Dropout(
            dropout, seed=self.seed, dtype=self.dtype_policy
        )

    def build(self, input_shape):
        check_shape("PositionalEncoding needs inputs of", input_shape)
        if input_shape[-1] % 2:
            raise ValueError(
                "PositionalEncoding needs an even width, one sine and one cosine for "
                f"each frequency. Received: d_model={input_shape[-1]}"
            )

    def call(self, inputs, start_index=0, training=None):
        if np.ndim(start_index):
            raise ValueError(
                "`start_index` must be one number for all rows, an int or an int32 "
                f"scalar. Received: shape {np.shape(start_index)}"
            )
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        length, width = ops.shape(inputs)[1], inputs.shape[-1]
        positions = ops.cast(ops.arange(length) + start_index, dtype)  # (T,)
        sinusoids = self._sinusoids(positions, width)  # (T,) -> (T, D)
        outputs = ops.cast(inputs, dtype) + ops.expand_dims(sinusoids, 0)
        outputs = ops.cast(outputs, self.compute_dtype)
        return self._dropout_layer(outputs, training=training)

    def _sinusoids(self, positions, width):
        pairs = width // 2
        last = pairs - 1 if self.layout == "tensor2tensor" else pairs
        exponents = np.arange(pairs) / max(last, 1)
        frequencies = ops.convert_to_tensor(
            float(self.max_wavelength) ** -exponents, dtype=positions.dtype
        )
        angles = ops.expand_dims(positions, 1) * frequencies  # (T,) -> (T, D / 2)
        both = [ops.sin(angles), ops.cos(angles)]
        if self.layout != "interleaved":
            return ops.concatenate(both, axis=-1)
        return ops.reshape(ops.stack(both, axis=-1), (-1, width))  # (T, D)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
            "layout": self.layout,
            "dropout": self.dropout,
            "seed": self.seed,
        }

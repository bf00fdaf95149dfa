"""Ids to vectors, and back to logits with the same table."""

import keras
from keras import ops

from keras_vanilla._checks import check_ids, check_integer
from keras_vanilla._operators import current_operators
from keras_vanilla._readable import readable
from keras_vanilla._types import Tensor
from keras_vanilla.layers.dense import MatrixProducts
from keras_vanilla.layers.layer import Layer, rows_of


@keras.saving.register_keras_serializable(package="keras_vanilla")
class TokenEmbedding(MatrixProducts, Layer, keras.layers.Embedding):
    """Maps ids to vectors, and hidden states to logits, with one table E.

        forward: E[ids] * sqrt(d_model)          reverse: hidden E^T

    The paper shares one table between both embeddings and the layer before the
    softmax. Some texts multiply by d_model; the paper's factor is sqrt(d_model). The
    implicit mask is `ids != pad_id`; the reverse direction has none. LoRA and its
    saving are those of `keras.layers.Embedding`.

    Args:
        vocabulary_size: int. Number of ids (V).
        d_model: int. Width of the vectors (D).
        pad_id: int. The padding id; -1 if there is none.
        scale: bool. Multiply the vectors by sqrt(d_model).
        zero_pad: bool. Use a zero vector for `pad_id`, regardless of the table, as
            `padding_idx` does in PyTorch. Marian's decoder starts with it.
        embeddings: array (V, D) or None. Initial value of the table, which is not kept
            in the config. None draws it from N(0, 1 / d_model).
    Call arguments:
        inputs: tensor (B, T) of ids, of any integer dtype, or whole numbers as floats,
            as `keras.Sequential` passes; with `reverse`, float tensor (B, T, D).
        reverse: bool. Map hidden states to logits with the transposed table.
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype; with `reverse`, float32
        logits (B, T, V).
    Raises:
        ValueError: if a size is not positive, the shape of `embeddings` is not (V, D),
            or an id of an eager tensor is not a whole number from 0 to V - 1.
    Example:
        >>> embed = TokenEmbedding(vocabulary_size=11, d_model=6)
        >>> hidden = embed(np.array([[2, 7, 0]]))
        >>> tuple(hidden.shape)
        (1, 3, 6)
        >>> tuple(embed(hidden, reverse=True).shape)
        (1, 3, 11)

    Source: Vaswani et al. 2017, section 3.4; Press and Wolf 2017 for the tying.
    """

    def __init__(
        self,
        vocabulary_size: int,
        d_model: int,
        *,
        pad_id: int = 0,
        scale: bool = True,
        zero_pad: bool = False,
        embeddings: Tensor | None = None,
        **kwargs,
    ):
        vocabulary_size = check_integer("vocabulary_size", vocabulary_size, 1)
        d_model = check_integer("d_model", d_model, 1)
        super().__init__(vocabulary_size, d_model, **kwargs)
        if embeddings is not None and embeddings.shape != (vocabulary_size, d_model):
            raise ValueError(
                "`embeddings` must have shape (vocabulary_size, d_model) = "
                f"({vocabulary_size}, {d_model}). Received: {embeddings.shape}"
            )
        self.vocabulary_size, self.d_model = vocabulary_size, d_model
        self.pad_id = check_integer("pad_id", pad_id, -1)
        self.scale, self.zero_pad = scale, zero_pad
        self._initial_value = embeddings
        self.supports_masking = True

    def build(self, input_shape=None):
        if self._initial_value is None:
            initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        else:
            value = self._initial_value

            def initializer(shape, dtype=None):
                return ops.convert_to_tensor(value, dtype=dtype)

        self.embeddings_initializer = initializer
        super().build(input_shape)
        self.embeddings_initializer = None  # would keep a copy of the table in memory
        self._initial_value = None

    def call(self, inputs, reverse=False):
        if reverse:
            return self._logits(inputs)
        values = readable(inputs)
        if values is not None:
            check_ids("id", values, self.vocabulary_size)
        ids = ops.cast(inputs, "int32")
        vectors = self.rows(ids)  # (B, T) -> (B, T, D)
        if self.scale:
            vectors = vectors * self.d_model**0.5
        if self.zero_pad:
            is_real = ops.expand_dims(ops.not_equal(ids, self.pad_id), -1)
            vectors = vectors * ops.cast(is_real, vectors.dtype)
        return ops.cast(vectors, self.compute_dtype)

    def rows(self, ids: Tensor) -> Tensor:
        """Rows (B, T, D) of the table for ids (B, T), without the factor of `call`."""
        rows = current_operators().lookup(self.embeddings, ids)
        return rows if self.rounding is None else self.rounding.rows(rows)

    def _logits(self, hidden):
        """(B, T, D) -> (B, T, V), in float32."""
        table = ops.cast(self.embeddings, self.compute_dtype)
        rows, sizes = rows_of(ops.cast(hidden, self.compute_dtype))
        logits = ops.cast(self.matmul(rows, ops.transpose(table)), "float32")
        return ops.reshape(logits, (*sizes, self.vocabulary_size))

    def compute_mask(self, inputs, mask=None):
        is_int = keras.backend.is_int_dtype(inputs.dtype)
        if not is_int and len(inputs.shape) > 2:  # vectors, with `reverse`
            return None
        return ops.not_equal(ops.cast(inputs, "int32"), self.pad_id)

    def compute_output_shape(self, input_shape: tuple, reverse: bool = False) -> tuple:
        """(B, T, D) for ids (B, T); with `reverse`, (B, T, V) for (B, T, D)."""
        if reverse:
            return (*input_shape[:-1], self.vocabulary_size)
        return (*input_shape, self.d_model)

    @property
    def input_dtype(self) -> str:
        """The dtype of the inputs that `keras.Sequential` creates."""
        return "int32"

    @classmethod
    def from_config(cls, config: dict) -> "TokenEmbedding":
        return super(keras.layers.Embedding, cls).from_config(config)

    def get_config(self) -> dict:
        return {
            **keras.layers.Layer.get_config(self),
            "vocabulary_size": self.vocabulary_size,
            "d_model": self.d_model,
            "pad_id": self.pad_id,
            "scale": self.scale,
            "zero_pad": self.zero_pad,
        }

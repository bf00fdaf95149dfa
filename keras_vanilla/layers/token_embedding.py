"""Ids to vectors, and back to logits with the same table."""

import keras
from keras import ops

from keras_vanilla._checks import check_integer
from keras_vanilla._types import Tensor


@keras.saving.register_keras_serializable(package="keras_vanilla")
class TokenEmbedding(keras.layers.Layer):
    """Maps ids to vectors, and hidden states to logits, with one table E.

        forward: E[ids] * sqrt(d_model)          reverse: hidden E^T

    The paper shares one table between both embeddings and the layer before the
    softmax. Some texts multiply by d_model; the paper's factor is sqrt(d_model). The
    implicit mask is `ids != pad_id`; the reverse direction has none. Not a subclass of
    `keras.layers.ReversibleEmbedding`: quantised, that one calls methods of its own
    instead of `call`, without the scale, the float32 logits and the exporters' seam.

    Args:
        vocabulary_size: int. Number of ids (V).
        d_model: int. Width of the vectors (D).
        pad_id: int. The id of padding; -1 where there is none.
        scale: bool. Multiply the vectors by sqrt(d_model).
        embeddings: array (V, D) or None. Initial value of the table; the one
            argument that is not kept in the config. None draws N(0, 1 / d_model).
    Call arguments:
        inputs: int tensor (B, T) of ids; with `reverse`, float tensor (B, T, D).
        reverse: bool. Map hidden states to logits with the transposed table.
    Returns:
        Float tensor (B, T, D) in the layer's compute dtype; with `reverse`, float32
        logits (B, T, V).
    Raises:
        ValueError: if a size is not positive, `embeddings` has another shape than
            (V, D), or the ids are not integers.
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
        pad_id: int = 0,
        scale: bool = True,
        embeddings: Tensor | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if embeddings is not None and embeddings.shape != (vocabulary_size, d_model):
            raise ValueError(
                "`embeddings` must have shape (vocabulary_size, d_model) = "
                f"({vocabulary_size}, {d_model}). Received: {embeddings.shape}"
            )
        self.vocabulary_size = check_integer("vocabulary_size", vocabulary_size, 1)
        self.d_model = check_integer("d_model", d_model, 1)
        self.pad_id = check_integer("pad_id", pad_id, -1)
        self.scale = scale
        self._initial_value = embeddings
        self.supports_masking = True

    def build(self, input_shape=None):
        if self._initial_value is None:
            initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        else:
            value = self._initial_value

            def initializer(shape, dtype=None):
                return ops.convert_to_tensor(value, dtype=dtype)

        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.d_model),
            initializer=initializer,
            autocast=False,  # look up first, cast these few rows
        )
        self._initial_value = None  # a second copy of the table is not kept alive

    def call(self, inputs, reverse=False):
        if reverse:
            table = ops.cast(self.embeddings, self.compute_dtype)
            logits = ops.matmul(inputs, ops.transpose(table))  # (B, T, D) -> (B, T, V)
            return ops.cast(logits, "float32")
        if not keras.backend.is_int_dtype(inputs.dtype):
            raise ValueError(
                "TokenEmbedding expects integer ids. Received: dtype="
                f"{keras.backend.standardize_dtype(inputs.dtype)}"
            )
        vectors = self.lookup(self.embeddings, inputs)  # (B, T) -> (B, T, D)
        if self.scale:
            vectors = vectors * self.d_model**0.5
        return ops.cast(vectors, self.compute_dtype)

    def lookup(self, table: Tensor, ids: Tensor) -> Tensor:
        """The rows of `table` (V, D) that `ids` (B, T) name: (B, T, D).

        The one seam left for exporters, which may replace it on an instance.
        """
        return ops.take(table, ids, axis=0)

    def compute_mask(self, inputs, mask=None):
        if keras.backend.is_int_dtype(inputs.dtype):
            return ops.not_equal(inputs, self.pad_id)
        return None

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "d_model": self.d_model,
            "pad_id": self.pad_id,
            "scale": self.scale,
        }

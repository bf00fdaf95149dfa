"""Sampling: at each step, a token drawn by its probability."""

import math
from typing import Any

import keras
from keras import ops

from keras_vanilla._checks import check_integer, check_seed
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.constraints import Constraints
from keras_vanilla.decoding.loop import decode_token_by_token
from keras_vanilla.decoding.searched_model import SearchedModel


def sample(
    model: SearchedModel,
    source_ids: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | keras.random.SeedGenerator | None = None,
    config: DecodingConfig | None = None,
    target_prefix: Tensor | None = None,
    **settings: Any,
) -> Tensor:
    """Maps source ids to target ids, drawing each token from the model's distribution.

        softmax(logits / temperature)  ->  the top_k best  ->  of them the top_p nucleus

    In this order: the temperature changes the probabilities, then all but the `top_k`
    best tokens are removed, then all but the nucleus: the smallest set of the most
    likely tokens whose probabilities, renormalised after `top_k`, reach `top_p`. At
    least one token always remains. With `top_k=1` this is `greedy_search`.

    The random numbers are drawn before the first step, for outputs as long as the
    model allows, so that with one seed and one backend a row's output does not depend
    on padding, on the rows after it, or on `max_length`. (XLA on TensorFlow draws other
    numbers.)

    Args:
        model: SearchedModel.
        source_ids: int tensor (B, S).
        temperature: float above 0. Below 1 likely tokens become likelier.
        top_k: int or None. Number of tokens that remain; all if there are fewer.
        top_p: float or None. Above 0, at most 1.
        seed: int, None or `keras.random.SeedGenerator`. An int gives the same result
            at each call, the others a new one. A compiled graph of your own needs a
            generator for new draws; `CompiledSearch` has one.
        config: DecodingConfig or None, as for `greedy_search`. The tokens that may
            follow are drawn with their probabilities renormalised.
        target_prefix: int tensor (B, P) or None, as for `greedy_search`.
        settings: fields of `config`, such as `max_length`.
    Returns:
        Int32 tensor (B, L), as `greedy_search` gives.
    Raises:
        TypeError: as `greedy_search`.
        ValueError: if `temperature` is not finite or not above 0, `top_k` is not an
            integer of at least 1, `top_p` is not above 0 and at most 1, `seed` is of
            another type or an int outside [0, 2**31); also as `greedy_search`.
    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration",
    section 3.1, for the nucleus; Fan et al. 2018 for the k best.
    """
    config = DecodingConfig.of(config, **settings)
    config.refuse_beams("sample")
    _check_settings(temperature, top_p)
    top_k = None if top_k is None else check_integer("top_k", top_k, 1)
    seed = checked_seed(seed)
    source_ids = ops.convert_to_tensor(source_ids)
    draws = keras.random.uniform(
        (ops.shape(source_ids)[0], model.max_length), dtype="float32", seed=seed
    )

    def choose(logits, index):
        logits = logits / temperature
        draw = ops.take(draws, index, axis=1)
        if top_k is None and top_p is None:  # sorting would take longer than the model
            return _place(_softmax(logits), draw)
        size = logits.shape[-1]
        best, ids = ops.top_k(logits, k=min(top_k or size, size))  # (B, k), best first
        probabilities = _softmax(best)
        if top_p is not None:
            probabilities = _nucleus(probabilities, top_p)
        place = ops.expand_dims(_place(probabilities, draw), 1)
        return ops.cast(ops.take_along_axis(ids, place, axis=1)[:, 0], "int32")

    constraints = Constraints(model, source_ids, config, target_prefix)
    return decode_token_by_token(model, source_ids, choose, constraints)[0]


def checked_seed(seed: Any) -> Any:
    """The seed, an integer as Python's int; refuses what not every backend takes.

    Args:
        seed: what `sample` was given.
    Raises:
        ValueError: if it is not None, an int in [0, 2**31) or a `SeedGenerator`.
    """
    if isinstance(seed, keras.random.SeedGenerator):
        return seed
    try:
        return check_seed(seed)
    except ValueError:
        raise ValueError(
            "`seed` must be None, an int of at least 0 and below 2**31, or a "
            f"keras.random.SeedGenerator. Received: {seed!r}"
        ) from None


def _check_settings(temperature, top_p):
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(
            "`temperature` must be finite and above 0 (for 0 use `greedy_search`). "
            f" Received: {temperature}"
        )
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(
            f"`top_p` must be None, or above 0 and at most 1. Received: {top_p}"
        )


def _softmax(logits):
    return ops.exp(ops.log_softmax(logits))  # `ops.softmax` warns where k is 1


def _nucleus(probabilities, top_p):
    """Keeps each token before which the likelier ones have not reached `top_p`."""
    before = ops.cumsum(probabilities, axis=1) - probabilities
    return ops.where(ops.less(before, top_p), probabilities, 0.0)


def _place(probabilities, draw):
    """The inverse of the cumulative distribution: (B, k) at (B,) -> int32 (B,).

    A draw is at least 0 and below 1, and so is below the sum when multiplied by it: the
    first token whose cumulative probability is above it exists, and is possible.
    """
    cumulative = ops.cumsum(probabilities, axis=1)
    drawn = ops.expand_dims(draw, 1) * cumulative[:, -1:]
    return ops.sum(ops.cast(ops.less_equal(cumulative, drawn), "int32"), axis=1)

"""Sampling: draws a token from its distribution at each step."""

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

        softmax(logits / temperature)  ->  the top_k best  ->  their top_p nucleus

    The steps are applied in this order: the temperature changes the probabilities, then
    only the `top_k` best tokens are kept, then only the nucleus: the smallest set of
    the most likely tokens whose probabilities, renormalised after `top_k`, reach
    `top_p`. At least one token always remains. With `top_k=1` this is `greedy_search`.

    All random numbers are drawn before the first step, for the longest output that the
    model allows. So, for a given seed and backend, the output of a row does not depend
    on padding, on the rows after it, or on `max_length`. (XLA on TensorFlow draws other
    numbers.)

    Args:
        model: SearchedModel.
        source_ids: int tensor (B, S).
        temperature: float above 0. Values below 1 make likely tokens likelier.
        top_k: int or None. Number of tokens to keep; all if there are fewer.
        top_p: float or None. Above 0, at most 1.
        seed: int, None or `keras.random.SeedGenerator`. An int gives the same result
            at each call, the others a new one. A custom compiled graph needs a
            generator for new draws; `CompiledSearch` has one.
        config: DecodingConfig or None, as for `greedy_search`. The probabilities of
            allowed tokens are renormalised.
        target_prefix: int tensor (B, P) or None, as for `greedy_search`.
        settings: fields of `config`, such as `max_length`.
    Returns:
        Int32 tensor (B, L), as in `greedy_search`.
    Raises:
        TypeError: same as `greedy_search`.
        ValueError: if `temperature` is not finite or not above 0, `top_k` is not an
            integer of at least 1, `top_p` is not above 0 and at most 1, `seed` has
            another type or is an int outside [0, 2**31); also same as `greedy_search`.
    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration",
    section 3.1, for the nucleus; Fan et al. 2018 for the k best.
    """
    config = DecodingConfig.of(config, **settings)
    config.refuse_beams("sample")
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(
            "`temperature` must be finite and above 0 (for 0 use `greedy_search`). "
            f"Received: {temperature}"
        )
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(
            f"`top_p` must be None, or above 0 and at most 1. Received: {top_p}"
        )
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
            return _drawn_index(_softmax(logits), draw)
        size = logits.shape[-1]
        best, ids = ops.top_k(logits, k=min(top_k or size, size))  # (B, k), best first
        probabilities = _softmax(best)
        if top_p is not None:
            probabilities = _nucleus(probabilities, top_p)
        rank = ops.expand_dims(_drawn_index(probabilities, draw), 1)
        return ops.cast(ops.take_along_axis(ids, rank, axis=1)[:, 0], "int32")

    constraints = Constraints(model, source_ids, config, target_prefix)
    return decode_token_by_token(model, source_ids, choose, constraints)[0]


def checked_seed(seed: Any) -> Any:
    """Checks that every backend accepts a seed, and converts integers to Python's.

    Args:
        seed: the `seed` argument of `sample`.
    Raises:
        ValueError: if it is not None, an int in [0, 2**31) or a `SeedGenerator`.
    """
    if isinstance(seed, keras.random.SeedGenerator):
        return seed
    return check_seed(seed)


def _softmax(logits):
    return ops.exp(ops.log_softmax(logits))  # `ops.softmax` warns where k is 1


def _nucleus(probabilities, top_p):
    """Keeps each token for which the likelier tokens add up to less than `top_p`."""
    before = ops.cumsum(probabilities, axis=1) - probabilities
    return ops.where(ops.less(before, top_p), probabilities, 0.0)


def _drawn_index(probabilities, draw):
    """The inverse of the cumulative distribution: (B, k) at (B,) -> int32 (B,).

    A draw in [0, 1) is multiplied by the sum of the probabilities and stays below it.
    So there is always a token with a higher cumulative probability, and the first one
    has a probability above 0.
    """
    cumulative = ops.cumsum(probabilities, axis=1)
    drawn = ops.expand_dims(draw, 1) * cumulative[:, -1:]
    return ops.sum(ops.cast(ops.less_equal(cumulative, drawn), "int32"), axis=1)

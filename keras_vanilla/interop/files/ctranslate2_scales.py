"""Weights in 8 and 16 bits, by the rules of CTranslate2."""

import numpy as np

_INT8_PEAK = np.float32(127)
_INT16_SCALE = np.float32(1000)  # of int16 weights without a stored scale


def dequantize(values: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """Dequantises int8 or int16 weights to float32, bit for bit as CTranslate2.

        values * (1 / scale)

    Args:
        values: int8 array (rows, ...) or int16 array.
        scales: float32 array, (rows,) for int8, one value for int16. None means 1000
            for int16.
    Raises:
        ValueError: if the scales are missing, their number is wrong, or they are not
            positive.
    """
    if scales is None:
        if values.dtype != np.int16:
            raise ValueError("its scales are missing")
        scales = _INT16_SCALE
    count = len(values) if values.dtype == np.int8 and values.ndim else 1
    scales = np.asarray(scales, np.float32).reshape(-1)
    with np.errstate(divide="ignore", over="ignore"):
        factors = np.float32(1) / scales
    # CTranslate2 1 wrote an infinite scale for a row of zeros.
    if len(scales) != count or not (np.isfinite(factors) & (scales > 0)).all():
        raise ValueError(
            f"{values.dtype} weights of shape {values.shape} must have {count} scales, "
            f"all positive. Received: {scales[:5]} of {len(scales)}"
        )
    weights = values.astype(np.float32)
    weights *= factors.reshape(-1, *[1] * (values.ndim - 1)) if values.ndim else factors
    return weights


def quantize_int8(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantises weights to int8 as CTranslate2's converters do.

        values = round(weights * scale),  scale = 127 / max |weights| in each row

    Args:
        weights: float32 array (rows, columns).
    Returns:
        Int8 array (rows, columns) and the scales, float32 array (rows,).
    """
    peaks = np.abs(weights).max(axis=1)
    peaks[peaks == 0] = _INT8_PEAK
    peaks = np.maximum(peaks, _INT8_PEAK / np.finfo(np.float32).max)
    scales = _INT8_PEAK / peaks
    return np.rint(weights * scales[:, None]).astype(np.int8), scales

"""Copies of a model, also of one that is quantised or has LoRA."""

import tempfile
from pathlib import Path
from typing import Any

import keras


def is_quantised(model: keras.Model) -> bool:
    """Whether some layer has weights of 8 bits or fewer, as `quantize` makes them."""
    return any(layer.quantization_mode for layer in model._flatten_layers())


def is_plain(model: keras.Model) -> bool:
    """Whether all layers have their usual weights: neither quantised nor LoRA."""
    layers = model._flatten_layers()
    lora = any(getattr(layer, "lora_enabled", False) for layer in layers)
    return not (lora or is_quantised(model))


def copy_of(model: keras.Model, weights: list | None = None, dtype: Any = None) -> Any:
    """A new model of the same function; see `Transformer.copy`."""
    if dtype is not None and is_quantised(model):
        raise ValueError(
            "A quantised model has no float weights to compute with or to export. "
            "Use the model as it was before `quantize`; "
            "export.tflite(quantize='int8') makes 8-bit files of it."
        )
    config = model.get_config()
    copy = type(model).from_config({**config, "dtype": dtype or config["dtype"]})
    if weights is None and not is_plain(model):
        _copy_by_file(model, copy)
    else:
        copy.set_weights(model.get_weights() if weights is None else weights)
    return copy


def _copy_by_file(model, copy):
    """Copies the weights as they are saved: in one order, LoRA added to its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.weights.h5"
        model.save_weights(path)
        copy.load_weights(path)

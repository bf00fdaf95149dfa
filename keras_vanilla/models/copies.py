"""Copies models, including quantised models and those with LoRA."""

import tempfile
from pathlib import Path
from typing import Any

import keras


def is_quantised(model: keras.Model) -> bool:
    """True if a layer was quantised to 8 bits or fewer by `quantize`."""
    return any(layer.quantization_mode for layer in model._flatten_layers())


def is_plain(model: keras.Model) -> bool:
    """True if no layer is quantised and none has LoRA."""
    layers = model._flatten_layers()
    lora = any(getattr(layer, "lora_enabled", False) for layer in layers)
    return not (lora or is_quantised(model))


def copy_of(model: keras.Model, weights: list | None = None, dtype: Any = None) -> Any:
    """A new model that computes the same; see `Transformer.copy`."""
    if dtype is not None and is_quantised(model):
        raise ValueError(
            "A quantised model has no float weights to compute with or to export. "
            "Use the model as it was before `quantize`; "
            "export.tflite(quantize='int8') makes 8-bit files of it."
        )
    config = model.get_config()
    copy = type(model).from_config({**config, "dtype": dtype or config["dtype"]})
    if weights is None and not is_plain(model):
        # A file merges LoRA into the kernels.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.weights.h5"
            model.save_weights(path)
            copy.load_weights(path)
    else:
        copy.set_weights(model.get_weights() if weights is None else weights)
    return copy

"""Figures of attention, positions and training.

They require matplotlib (`pip install ".[notebooks]"` in a checkout), but no display.
"""

from keras_vanilla.plots.attention import attention_map, mask_table
from keras_vanilla.plots.heat_map import heat_map, heat_maps
from keras_vanilla.plots.positions import position_map, position_similarity
from keras_vanilla.plots.training import training_history
from keras_vanilla.plots.translation import (
    translation_attention,
    translation_positions,
)

__all__ = [
    "attention_map",
    "heat_map",
    "heat_maps",
    "mask_table",
    "position_map",
    "position_similarity",
    "training_history",
    "translation_attention",
    "translation_positions",
]

"""Figures of attention, positions, training and search.

They require matplotlib (`pip install ".[notebooks]"` in a checkout), but no display.
"""

from keras_vanilla.plots.architecture import (
    architecture,
    layer_with_frame,
    token_flow,
)
from keras_vanilla.plots.attention import attention_links, attention_map, mask_table
from keras_vanilla.plots.curves import bars, curves, next_token
from keras_vanilla.plots.decoding_steps import decoding_animation, decoding_stills
from keras_vanilla.plots.heat_map import heat_map, heat_maps
from keras_vanilla.plots.matrices import matrix_product, multi_head
from keras_vanilla.plots.positions import (
    position_curves,
    position_map,
    position_similarity,
)
from keras_vanilla.plots.search import beam_tree, search_tree
from keras_vanilla.plots.training import (
    distributions,
    learning_rate,
    training_history,
)
from keras_vanilla.plots.translation import (
    translation_attention,
    translation_positions,
)

__all__ = [
    "architecture",
    "attention_links",
    "attention_map",
    "bars",
    "beam_tree",
    "curves",
    "decoding_animation",
    "decoding_stills",
    "distributions",
    "heat_map",
    "heat_maps",
    "layer_with_frame",
    "learning_rate",
    "mask_table",
    "matrix_product",
    "multi_head",
    "next_token",
    "position_curves",
    "position_map",
    "position_similarity",
    "search_tree",
    "token_flow",
    "training_history",
    "translation_attention",
    "translation_positions",
]

"""Drawings of the notebooks: models, attention, matrices, curves and searches.

After `import drawings`, a notebook shows figures as SVG with alternative texts.
"""

from drawings.architecture import architecture, layer_with_frame, token_flow
from drawings.curves import bars, curves, learning_rate, position_curves
from drawings.decoding_steps import decoding_animation, decoding_stills
from drawings.links import attention_links
from drawings.matrices import matrix_product, multi_head
from drawings.picture import show_in_notebooks
from drawings.probabilities import distributions, next_token
from drawings.search import beam_tree, search_tree

__all__ = [
    "architecture",
    "attention_links",
    "bars",
    "beam_tree",
    "curves",
    "decoding_animation",
    "decoding_stills",
    "distributions",
    "layer_with_frame",
    "learning_rate",
    "matrix_product",
    "multi_head",
    "next_token",
    "position_curves",
    "search_tree",
    "token_flow",
]

show_in_notebooks()

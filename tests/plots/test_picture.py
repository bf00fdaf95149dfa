import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from keras_vanilla.layers import MultiHeadAttention
from keras_vanilla.plots import (
    attention_links,
    bars,
    curves,
    heat_map,
    heat_maps,
    matrix_product,
    multi_head,
)

NAMES = {"title": "Cost", "x_axis": "tokens", "y_axis": "ms"}
SVG = "{http://www.w3.org/2000/svg}"


def shown(figure):
    """What a notebook shows: the root of the SVG, and the text beside it."""
    data, metadata = figure._repr_mimebundle_()
    root = ElementTree.fromstring(data["image/svg+xml"])
    assert metadata["image/svg+xml"]["alt"] == data["text/plain"]
    return root, data["text/plain"]


def test_notebooks_show_svg_with_letters_and_its_alternative_text():
    root, text = shown(curves([1, 2], {"a < b": [3.0, 4.0]}, **NAMES))
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    assert root[0].tag == f"{SVG}title" and root[0].text == text
    assert "Cost" in [element.text for element in root.iter(f"{SVG}text")]
    for element in root.iter(f"{SVG}text"):
        assert "sans-serif" in element.get("style")


@pytest.mark.parametrize("columns", [3, 300])
def test_no_picture_is_shown_wider_than_900_pixels(columns):
    root, _ = shown(heat_map(np.eye(columns), **NAMES))
    assert float(root.get("width")) <= 900
    assert "max-width: 100%" in root.get("style")


def test_the_alternative_text_of_curves_names_lines_and_their_ends():
    lines = {"a": [1, 4, 9], "b": [np.nan, 2, 3]}
    text = curves([1, 2, 3], lines, **NAMES).alternative_text()
    assert text == "Cost: ms over tokens from 1 to 3. a from 1 to 9; b from 2 to 3."


def test_the_alternative_text_of_bars_has_their_heights():
    figure = bars({"x": {"a": 1.0, "b": 2.0}}, title="T", y_axis="MB")
    assert figure.alternative_text() == "T: bars, MB. a: x 1; b: x 2."
    assert bars({"x": 1.5}, title="T", y_axis="MB").alternative_text() == (
        "T: bars, MB. x 1.5."
    )


def test_the_alternative_text_of_a_table_names_its_largest_cell():
    figure = heat_map([[0, 1, 5], [2, 3, 4]], list("xyz"), ["r", "s"], **NAMES)
    assert figure.alternative_text() == (
        "Cost: table of 2 rows (ms) and 3 columns (tokens), numbers from 0 to 5, the "
        "largest at r, z."
    )
    empty = heat_map(np.full((2, 2), np.nan), **NAMES).alternative_text()
    assert "numbers" not in empty
    tables = heat_maps([np.eye(2)] * 2, ["p", "q"], unit="share", **NAMES)
    assert tables.alternative_text().startswith("Cost. p: table of 2 rows")


def test_the_alternative_text_of_links_and_products_says_what_is_drawn():
    figure = attention_links([[0.75, 0.25]], ["it"], ["cat", "mat"], title="T")
    assert figure.alternative_text() == (
        "T: lines from 1 to 2 tokens. it to cat 0.75; it to mat 0.25"
    )
    figure = matrix_product(np.eye(2), np.ones((2, 3)), names="QKS", title="T")
    assert "Q (2 × 2) · K (2 × 3) = S (2 × 3)" in figure.alternative_text()


def test_a_text_of_your_own_replaces_it_and_long_ones_are_cut():
    figure = bars({"x": 1.0}, title="T", y_axis="MB")
    figure.alt = "One bar."
    assert shown(figure)[1] == "One bar."
    figure.alt = "a" * 1000
    assert len(figure.alternative_text()) == 600


def layer_of(heads):
    layer = MultiHeadAttention(num_heads=heads, key_dim=5, value_dim=7)
    layer.build((1, 2, 11), (1, 2, 11))
    return layer


@pytest.mark.parametrize("heads", [1, 8])
def test_all_heads_are_drawn_from_x_to_z_with_their_sizes(heads):
    figure = multi_head(layer_of(heads), ["Thinking", "Machines"])
    texts = [text.get_text() for text in figure.axes[0].texts]
    for head in range(1, heads + 1):
        for name in (f"$W_{{{head}}}^Q$", f"$K_{{{head}}}$", f"$Z_{{{head}}}$"):
            assert name in texts
    for size in ("2 × 11", "11 × 5", "2 × 5", "2 × 7", f"{7 * heads} × 11"):
        assert size in texts
    assert texts.count("$W^O$") == 1 and "Thinking" in texts
    root, text = shown(figure)
    assert float(root.get("width")) <= 900 and f"goes to {heads} heads" in text


def test_more_heads_or_tokens_than_fit_are_refused():
    with pytest.raises(ValueError, match="At most 8 heads .* Received: 9 heads"):
        multi_head(layer_of(9), ["a"])
    for tokens in ([], ["a"] * 5):
        with pytest.raises(ValueError, match=f"{len(tokens)} tokens"):
            multi_head(layer_of(2), tokens)

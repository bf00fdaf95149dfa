import matplotlib.colors
import numpy as np
import pytest

from keras_vanilla.plots import attention_map, bars, curves, heat_map, matrix_product
from keras_vanilla.plots.palette import ABOVE, BELOW, CHARTS, PARTS, color_map, ink_on

NAMES = {"title": "Weights", "x_axis": "key", "y_axis": "query"}


def linear(color):
    channels = np.array(matplotlib.colors.to_rgb(color))
    large = ((channels + 0.055) / 1.055) ** 2.4
    return np.where(channels <= 0.04045, channels / 12.92, large)


def luminance(color):
    return linear(color) @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("part", PARTS)
def test_text_can_be_read_in_and_on_every_colour(part):
    dark, light = PARTS[part]
    assert contrast(dark, "white") > 4.5
    assert contrast(light, "black") > 4.5
    for share in np.linspace(0, 1, 20):
        fill = color_map(part)(share)
        assert contrast(ink_on(fill), fill[:3]) > 4.5


@pytest.mark.parametrize("part", [None, *PARTS])
def test_larger_is_darker_also_in_black_and_white(part):
    seen = [luminance(color_map(part)(share)[:3]) for share in np.linspace(0, 1, 40)]
    assert np.all(np.diff(seen) < 0)


def test_parts_differ_also_for_those_who_see_two_colours_of_three():
    """Machado et al. 2009, deuteranopia: no two dark shades look the same."""
    seen_as = [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    colors = np.stack([linear(PARTS[part].dark) for part in PARTS])
    seen = np.clip(colors @ np.transpose(seen_as), 0, 1) ** (1 / 2.2)
    distances = np.linalg.norm(seen[:, None] - seen, axis=-1)
    assert distances[~np.eye(len(PARTS), dtype=bool)].min() > 0.05


def lab(color):
    """CIE 1976 L*a*b*, in which distances are about those that people see."""
    to_xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.95],
    ]
    x, y, z = to_xyz @ linear(color) / [0.9505, 1.0, 1.089]
    x, y, z = (
        v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z)
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("color", [*CHARTS, ABOVE[-1], BELOW[0]])
def test_no_part_has_the_colours_of_charts_and_of_plain_numbers(color):
    shades = [shade for shades in PARTS.values() for shade in shades]
    assert min(np.linalg.norm(lab(color) - lab(shade)) for shade in shades) > 20


def test_lines_and_bars_have_the_colours_of_charts():
    lines = curves([1, 2], {str(i): [1, 2] for i in range(6)}, **NAMES).axes[0].lines
    assert {line.get_color() for line in lines} == set(CHARTS)
    patches = bars({"a": {str(i): 1 for i in range(8)}}, title="t", y_axis="y")
    filled = {
        matplotlib.colors.to_hex(p.get_facecolor()) for p in patches.axes[0].patches
    }
    assert filled <= {*CHARTS, "#ffffff"}


def cells(figure):
    return [
        patch
        for patch in figure.axes[0].patches
        if patch.get_edgecolor()[:3] == (1, 1, 1)
    ]


def test_cells_of_a_product_are_magenta_above_zero_and_lime_below():
    figure = matrix_product([[2.0, -2.0]], np.eye(2), parts=("Q", None, None))
    above, below, *_ = (patch.get_facecolor() for patch in cells(figure))
    assert above[0] > above[1] < above[2] and below[0] > below[2] < below[1]
    assert cells(figure)[3].get_facecolor()[:3] == pytest.approx((1, 1, 1), abs=0.02)


def test_a_picture_has_the_colour_of_its_part():
    for picture in (attention_map, heat_map):
        names = {} if picture is heat_map else {"queries": "ab"}
        more = NAMES if picture is heat_map else {}
        figure = picture(np.eye(2), part="memory", **names, **more)
        drawn = figure.axes[0].images[0].to_rgba(1.0)
        assert matplotlib.colors.to_hex(drawn) == PARTS["memory"].dark
    with pytest.raises(ValueError, match="`part` must be one of"):
        heat_map(np.eye(2), part="memmory", **NAMES)


def test_signed_numbers_are_white_at_zero():
    image = heat_map([[-1.0, 0.0, 3.0]], **NAMES).axes[0].images[0]
    assert image.get_clim() == (-3.0, 3.0)
    assert min(image.to_rgba(0.0)) > 0.95


def test_cells_of_small_tables_are_square():
    for shape in ((2, 2), (3, 9), (20, 5)):
        figure = heat_map(np.ones(shape), **NAMES)
        figure.draw_without_rendering()
        box = figure.axes[0].get_window_extent()
        assert box.width / shape[1] == pytest.approx(box.height / shape[0], rel=0.01)


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_product_shows_its_numbers_its_names_and_its_shapes():
    left, right = np.arange(6.0).reshape(2, 3), np.eye(3)[:, :1]
    figure = matrix_product(left, right, names="QKS", parts=("Q", "K", None))
    said = texts(figure)
    for value in left.flat:
        assert f"{value:.2f}" in said
    assert said.count("0.00") == 1 + 2 + 1  # of both factors, and of the product
    assert [text for text in said if "×" in text] == ["2 × 3", "3 × 1", "2 × 1"]
    assert [text for text in said if text in ("Q", "K", "S", "·", "=")] == list("Q·K=S")
    colors = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert (colors["Q"], colors["K"]) == (PARTS["Q"].dark, PARTS["K"].dark)


def test_what_becomes_of_a_product_is_drawn_after_it():
    square = np.eye(2)
    figure = matrix_product(square, square, then=("softmax", "W", square / 2))
    assert "softmax →" in texts(figure) and "0.50" in texts(figure)


def test_matrices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(2, 3\)"):
        matrix_product(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"Received: A of shape \(13, 1\)"):
        matrix_product(np.ones((13, 1)), np.ones((1, 1)))

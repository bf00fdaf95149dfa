"""Tables of numbers, positions and masks."""

import matplotlib.colors
import numpy as np
import pytest

from keras_vanilla.plots import (
    attention_map,
    heat_map,
    heat_maps,
    mask_table,
    position_map,
    position_similarity,
)
from keras_vanilla.plots.style import (
    PARTS,
    color_map,
    ink_on,
    name_ticks,
    shown,
    style,
)

NAMES = {"title": "Weights", "x_axis": "key", "y_axis": "query"}
LONG = ["Donaudampfschifffahrtsgesellschaft"] * 6


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def written(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def limits(figure):
    return figure.axes[0].images[0].get_clim()


def test_table_has_numbers_and_names():
    values = np.arange(6.0).reshape(2, 3)
    axes = heat_map(values, list("abc"), list("de"), **NAMES).axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), values)
    assert names(axes.xaxis) == list("abc") and names(axes.yaxis) == list("de")
    labels = axes.get_title(), axes.get_xlabel(), axes.get_ylabel()
    assert labels == tuple(NAMES.values())


def test_small_tables_show_numbers():
    assert written(heat_map(np.full((2, 2), 0.125), **NAMES)) == ["0.12"] * 4
    assert written(heat_map([[3]], numbers="{:.0f}", **NAMES)) == ["3"]
    for values, numbers in ([[3]], False), (np.eye(13), None), ([5 * [1e6]] * 5, None):
        assert written(heat_map(values, numbers=numbers, **NAMES)) == []


def test_cells_without_a_number_are_crossed_out():
    figure = heat_map([[np.nan, 1.0], [-np.inf, 2.0]], **NAMES)
    assert written(figure) == ["×", "1.00", "×", "2.00"]
    assert limits(figure) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("values", "given", "expected"),
    [
        ([[7.0, 7.0]], None, (0, 7)),
        ([[-3.0]], None, (-3, 0)),
        ([[0.0]], None, (0, 1)),
        ([[np.nan]], None, (0, 1)),
        ([[-1.0, 0.0, 3.0]], None, (-3, 3)),
        ([[1.0, 2.0]], np.array([0, 4]), (0, 4)),
    ],
)
def test_limits_of_colours(values, given, expected):
    assert limits(heat_map(values, limits=given, **NAMES)) == expected


def test_tables_share_one_scale():
    tables = np.stack([np.eye(3) * scale for scale in (1, 2, 5)])
    figure = heat_maps(tables, list("abc"), columns=2, unit="weight", **NAMES)
    drawn = [axes for axes in figure.axes if axes.images]
    assert {axes.images[0].get_clim() for axes in drawn} == {(0.0, 5.0)}
    assert [axes.get_title() for axes in drawn] == list("abc")
    assert figure.axes[-1].get_ylabel() == "weight"


def test_mask_is_dark_where_attention_is_allowed():
    mask = np.tril(np.ones((5, 5), bool))
    figure = mask_table(mask)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), mask)
    assert written(figure) == [str(int(x)) for x in mask.ravel()]
    legend = figure.legends[0]
    assert [t.get_text() for t in legend.get_texts()] == ["may attend", "may not"]
    dark, light = (patch.get_facecolor()[:3] for patch in legend.get_patches())
    assert sum(dark) < 1 < 2.5 < sum(light)
    assert names(mask_table(np.ones((2, 3))).axes[0].xaxis) == ["0", "1", "2"]
    assert limits(mask_table(np.zeros((2, 2)))) == (0, 1)


def test_positions_are_on_a_symmetric_scale():
    encoding = np.sin(np.arange(66.0).reshape(11, 6))
    figure = position_map(encoding)
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), encoding)
    assert limits(figure) == (-1, 1)
    assert limits(position_map([[3.0, -5.0]])) == (-5, 5)
    tokens = ["▁שלום", "слово", "<unk>"]
    assert names(position_map(encoding[:3], tokens).axes[0].yaxis) == tokens


def test_similarity_is_the_cosine():
    vectors = [[2.0, 0.0], [0.0, 3.0], [1.0, 1.0], [0, 0]]
    half = 0.5**0.5
    expected = [[1, 0, half, 0], [0, 1, half, 0], [half, half, 1, 0], [0, 0, 0, 0]]
    values = position_similarity(vectors).axes[0].images[0].get_array()
    np.testing.assert_allclose(values, expected)


def test_long_names_leave_room_for_tables():
    figure = heat_map(np.eye(6), LONG, np.array(LONG), **NAMES)
    figure.canvas.draw()
    extent = figure.axes[0].get_window_extent()
    assert min(extent.width, extent.height) > 150
    figure = heat_maps([np.eye(6)] * 2, "ab", LONG, LONG, **NAMES)
    figure.canvas.draw()
    assert all(axes.get_window_extent().height > 120 for axes in figure.axes)


@pytest.mark.parametrize(
    ("count", "step"), [(1, 1), (12, 1), (27, 2), (300, 12), (10_000, 385)]
)
def test_some_of_many_names_are_written(count, step):
    axis = heat_map([[1]], **NAMES).axes[0].xaxis
    name_ticks(axis, [f"w{i}" for i in range(count)], 3.9)
    numbered = [f"{i} w{i}" if step > 1 else f"w{i}" for i in range(0, count, step)]
    assert names(axis) == numbered
    note = f" (one of {step} named)" if step > 1 else ""
    assert axis.get_label_text() == f"key{note}"


def test_rows_without_names_have_whole_numbers():
    axes = heat_map(np.eye(3), **NAMES).axes[0]
    for ticks in (axes.get_xticks(), axes.get_yticks()):
        np.testing.assert_array_equal(ticks, np.round(ticks))


@pytest.mark.parametrize("shape", [(2, 2), (3, 9), (20, 5)])
def test_cells_of_small_tables_are_square(shape):
    figure = heat_map(np.ones(shape), **NAMES)
    figure.draw_without_rendering()
    box = figure.axes[0].get_window_extent()
    assert box.width / shape[1] == pytest.approx(box.height / shape[0], rel=0.01)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x" * 24, "x" * 24),
        ("x" * 25, "x" * 23 + "…"),
        ("a\nb\tc\x00", "a<0A>b<09>c<00>"),
        ("", "<>"),
        (" ", "<20>"),
        ("\u200b", "<200B>"),
        ("a b", "a b"),
    ],
)
def test_names_without_a_mark_have_codes(text, expected):
    assert shown(text) == expected


def test_dollars_are_no_formula():
    title = {**NAMES, "title": "$x$ costs $\\frac$ more"}
    figure = heat_map(np.eye(3), ["$5", "a$b$c", "$\\frac$"], **title)
    figure.canvas.draw()  # a formula that cannot be read would raise


def test_settings_of_matplotlib_are_restored():
    before = dict(matplotlib.rcParams)
    heat_map([[1]], **NAMES)
    with pytest.raises(ZeroDivisionError), style():
        raise ZeroDivisionError
    assert dict(matplotlib.rcParams) == before


def luminance(color):
    channels = np.array(matplotlib.colors.to_rgb(color))
    large = ((channels + 0.055) / 1.055) ** 2.4
    linear = np.where(channels <= 0.04045, channels / 12.92, large)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    high, low = sorted([luminance(one), luminance(other)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("part", [None, *PARTS])
def test_text_is_readable_on_each_colour(part):
    fills = [color_map(part)(share) for share in np.linspace(0, 1, 40)]
    assert all(contrast(ink_on(fill), fill[:3]) > 4.5 for fill in fills)
    assert np.all(np.diff([luminance(fill[:3]) for fill in fills]) < 0)
    if part:
        assert contrast(PARTS[part].dark, "white") > 4.5
        assert contrast(PARTS[part].light, "black") > 4.5


def test_parts_have_their_colours_and_signed_numbers_two():
    for figure in (
        attention_map(np.eye(2), "ab", part="memory"),
        heat_map(np.eye(2), part="memory", **NAMES),
    ):
        drawn = figure.axes[0].images[0].to_rgba(1.0)
        assert matplotlib.colors.to_hex(drawn) == PARTS["memory"].dark
    image = heat_map([[-1.0, 0.0, 1.0]], **NAMES).axes[0].images[0]
    above, zero, below = (image.to_rgba(value)[:3] for value in (1.0, 0.0, -1.0))
    assert above[0] > above[1] + 0.3 < above[2]
    assert below[0] > below[2] + 0.2 < below[1]
    assert min(zero) > 0.95

"""What pictures make of inputs that are easily drawn so that nobody can read them."""

import numpy as np
import pytest

from keras_vanilla.plots import bars, curves, heat_map, heat_maps

NAMES = {"title": "Weights", "x_axis": "key", "y_axis": "query"}
LONG = ["Donaudampfschifffahrtsgesellschaft"] * 6


def drawn(figure):
    """A figure whose layout is done, and its first axes."""
    figure.canvas.draw()
    return figure, figure.axes[0]


def overlapping(texts):
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    return [
        (a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :] if a.overlaps(b)
    ]


def test_long_names_leave_the_table_its_room():
    _, axes = drawn(heat_map(np.eye(6), LONG, np.array(LONG), **NAMES))
    assert axes.get_window_extent().width > 200
    assert axes.get_window_extent().height > 150
    assert overlapping(axes.texts) == []


def test_long_names_leave_tables_side_by_side_their_room():
    figure, _ = drawn(heat_maps([np.eye(6)] * 2, "ab", LONG, LONG, **NAMES))
    assert all(axes.get_window_extent().height > 120 for axes in figure.axes)


def test_numbers_too_long_for_their_cells_are_left_out():
    assert len(heat_map(np.full((5, 5), 1.5), **NAMES).axes[0].texts) == 25
    assert len(heat_map(np.full((5, 5), 1.5e6), **NAMES).axes[0].texts) == 0


@pytest.mark.parametrize(
    ("value", "limits"), [(0.2, (0, 0.2)), (0, (0, 1)), (-3, (-3, 0))]
)
def test_of_one_value_the_scale_begins_at_nothing(value, limits):
    image = heat_map(np.full((2, 3), value), **NAMES).axes[0].images[0]
    assert image.get_clim() == limits


def test_tables_of_several_shapes_are_refused():
    with pytest.raises(ValueError, match=r"one shape. Received: \(2, 2\), \(3, 3\)"):
        heat_maps([np.eye(2), np.eye(3)], ["a", "b"], **NAMES)


def test_names_without_a_mark_on_paper_are_written_as_codes():
    names = ["", " ", "\u200b", "a b"]
    axes = heat_map(np.eye(4), names, names, **NAMES).axes[0]
    written = [text.get_text() for text in axes.get_yticklabels()]
    assert written == ["<>", "<20>", "<200B>", "a b"]


def test_twelve_lines_are_told_apart():
    x = np.arange(100.0)
    lines = curves(x, {str(i): x + i for i in range(12)}, **NAMES).axes[0].lines
    looks = {
        (line._dash_pattern[1], line.get_marker(), line.get_markerfacecolor())
        for line in map(_hashable, lines)
    }
    assert len(looks) == 12


def _hashable(line):
    offset, dashes = line._dash_pattern
    line._dash_pattern = offset, None if dashes is None else tuple(dashes)
    return line


def test_a_line_and_a_bar_whose_names_begin_with_an_underscore_are_named():
    lines = curves([1, 2], {"_a": [1, 2], "b": [2, 3]}, **NAMES)
    groups = bars({"g": {"_a": 1, "b": 2}}, title="t", y_axis="y")
    for texts in (lines.axes[0].texts, groups.axes[0].get_legend().get_texts()):
        assert [text.get_text().strip() for text in texts] == ["_a", "b"]


def test_lines_over_no_place_are_refused():
    with pytest.raises(ValueError, match="one value of `x`. Received: 1 lines, 0 "):
        curves([], {"a": []}, **NAMES)


def test_many_bars_fit_on_a_page_and_their_numbers_do_not_overlap():
    many = {f"token{i}": 0.123456 for i in range(60)}
    figure, axes = drawn(bars(many, title="t", y_axis="y"))
    assert figure.get_figwidth() <= 12
    assert overlapping(axes.texts) == []


def test_eight_names_are_told_apart_by_their_filling():
    bars_of = bars({"g": {str(i): i for i in range(8)}}, title="t", y_axis="y")
    patches = bars_of.axes[0].patches
    assert len({(bar.get_facecolor(), bar.get_hatch()) for bar in patches}) == 8


@pytest.mark.parametrize(
    "draw",
    [
        lambda title: curves([1, 2], {"a": [1, 2]}, **{**NAMES, "title": title}),
        lambda title: bars({"a": 1}, title=title, y_axis="y"),
        lambda title: heat_map([[1]], **{**NAMES, "title": title}),
        lambda title: heat_maps([[[1]]], ["a"], **{**NAMES, "title": title}),
    ],
    ids=["curves", "bars", "heat map", "heat maps"],
)
def test_no_title_is_cut(draw):
    figure, axes = drawn(draw("M and more of it " * 8))
    for title in (axes.title, figure._suptitle):
        if title is not None:
            place = title.get_window_extent()
            assert 0 <= place.x0 and place.x1 <= figure.bbox.width

import itertools

import numpy as np
import pytest
from matplotlib.text import Text

from keras_vanilla.plots import bars, curves

NAMES = {"title": "Cost", "x_axis": "length, tokens", "y_axis": "time, ms"}


def names(axes):
    return [text.get_text() for text in axes.texts]


def test_lines_hold_their_numbers_and_names():
    figure = curves([1, 2, 3], {"a": [1, 4, 9], "$b$": [1, 2, 3]}, **NAMES)
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1, 4, 9])
    assert names(axes) == [r"\$b\$", "a"]  # from below
    assert axes.get_ylabel() == "time, ms"


def test_names_stand_at_the_ends_of_their_lines_and_do_not_overlap():
    lines = {f"line {i}": [0.0, 1.0 + i / 1000, np.nan] for i in range(7)}
    lines["low"] = [5.0, 0.5, 0.0]
    figure = curves([1, 2, 3], lines, **NAMES)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without lines
    assert names(axes) == ["low", *(f"line {i}" for i in range(7))]
    assert all(box.x0 >= axes.get_window_extent().x1 for box in boxes)
    assert all(box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 for box in boxes)
    for below, above in itertools.pairwise(boxes):
        assert below.y1 <= above.y0
    ends = [text.xy[1] for text in axes.texts]
    assert ends == sorted(ends) and ends[1] > 0.1


def test_many_lines_have_a_legend():
    lines = {str(i): [0, i] for i in range(9)}
    axes = curves([1, 2], lines, **NAMES).axes[0]
    assert len(axes.get_legend().get_texts()) == 9 and not axes.texts
    assert not curves([1, 2], {"one": [1, 2]}, **NAMES).axes[0].texts


def test_lines_are_told_apart_without_colours():
    lines = {str(i): np.arange(3.0) + i for i in range(6)}
    drawn = curves([0, 1, 2], lines, **NAMES).axes[0].lines
    looks = {(str(line._dash_pattern), line.get_marker()) for line in drawn}
    assert len(looks) == 6


def test_scales_can_be_logarithmic():
    figure = curves([1, 10], {"a": [1, 2]}, log_x=True, log_y=True, **NAMES)
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_what_a_logarithmic_axis_cannot_show_is_a_gap():
    figure = curves([1, 2, 3], {"a": [1, 0, 2]}, log_y=True, **NAMES)
    axes = figure.axes[0]
    heights = axes.transData.transform(np.column_stack([[1, 2, 3], [1, 0, 2]]))[:, 1]
    np.testing.assert_array_equal(np.isfinite(heights), [True, False, True])


def test_no_line_and_lines_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="at least one line"):
        curves([1, 2], {}, **NAMES)
    with pytest.raises(ValueError, match="'a' must have as many values as `x`, 2"):
        curves([1, 2], {"a": [1, 2, 3]}, **NAMES)


def test_bars_say_their_numbers():
    figure = bars({"float32": 31.4, "int8": 9.1}, title="Size", y_axis="MB")
    axes = figure.axes[0]
    assert [bar.get_height() for bar in axes.patches] == [31.4, 9.1]
    assert [text.get_text() for text in axes.texts] == ["31.4", "9.1"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["float32", "int8"]


def test_groups_of_bars_are_told_apart_by_their_filling():
    groups = {"Keras": {"BLEU": 1, "chrF": 2}, "phone": {"BLEU": 3, "chrF": 4}}
    axes = bars(groups, title="Score", y_axis="points").axes[0]
    assert [bar.get_height() for bar in axes.patches] == [1, 3, 2, 4]
    assert len({bar.get_hatch() for bar in axes.patches}) == 2


@pytest.mark.parametrize("values", [{}, {"a": {}}, {"a": {"x": 1}, "b": {"y": 1}}])
def test_no_bar_and_groups_that_differ_are_refused(values):
    with pytest.raises(ValueError, match="the same names in each group"):
        bars(values, title="t", y_axis="y")


def test_few_places_of_a_logarithmic_axis_are_named():
    axes = curves([8, 64, 512], {"a": [1, 2, 3]}, log_x=True, **NAMES).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["8", "64", "512"]

import numpy as np
import pytest

from keras_vanilla.plots import heat_map, heat_maps

NAMES = {"title": "Weights", "x_axis": "key", "y_axis": "query"}


def written(axes):
    return [text.get_text() for text in axes.texts]


def test_the_picture_holds_the_numbers():
    values = np.arange(6.0).reshape(2, 3)
    axes = heat_map(values, list("abc"), list("de"), **NAMES).axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), values)
    assert [x.get_text() for x in axes.get_xticklabels()] == ["a", "b", "c"]
    assert [y.get_text() for y in axes.get_yticklabels()] == ["d", "e"]
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == tuple(
        NAMES.values()
    )


def test_larger_is_darker_also_in_black_and_white():
    values = np.linspace(0, 1, 64)[None]
    image = heat_map(values, **NAMES).axes[0].images[0]
    red, green, blue, _ = image.cmap(image.norm(values[0])).T
    lightness = 0.299 * red + 0.587 * green + 0.114 * blue
    assert np.all(np.diff(lightness) < 0)


def test_numbers_are_written_into_small_tables_only():
    assert written(heat_map(np.full((2, 2), 0.125), **NAMES).axes[0]) == ["0.12"] * 4
    assert written(heat_map(np.eye(13), **NAMES).axes[0]) == []
    assert written(heat_map([[3]], numbers="{:.0f}", **NAMES).axes[0]) == ["3"]
    assert written(heat_map([[3]], numbers=False, **NAMES).axes[0]) == []


def test_what_is_no_number_is_crossed_out():
    values = [[np.nan, 1.0], [-np.inf, 2.0]]
    axes = heat_map(values, **NAMES).axes[0]
    crosses = axes.collections[0].get_offsets()
    np.testing.assert_array_equal(crosses, [[0, 0], [0, 1]])
    assert axes.images[0].get_clim() == (1.0, 2.0)
    assert written(axes) == ["1.00", "2.00"]


@pytest.mark.parametrize("values", [[[7.0, 7.0]], [[np.nan]]])
def test_equal_values_and_none_make_a_picture_too(values):
    low, high = heat_map(values, **NAMES).axes[0].images[0].get_clim()
    assert low < high


def test_rows_and_columns_without_names_have_whole_numbers():
    axes = heat_map(np.eye(3), **NAMES).axes[0]
    for ticks in (axes.get_xticks(), axes.get_yticks()):
        np.testing.assert_array_equal(ticks, np.round(ticks))


def test_three_hundred_tokens_fit_on_a_page():
    names = [f"token{i}" for i in range(300)]
    figure = heat_map(np.eye(300), names, names, unit="weight", **NAMES)
    assert max(figure.get_size_inches()) < 15
    assert len(figure.axes[0].get_xticklabels()) == 60


def test_the_scale_says_what_is_shown():
    axes, scale = heat_map([[1.0, 2.0]], unit="weight", **NAMES).axes
    assert scale.get_ylabel() == "weight"


def test_tables_side_by_side_share_one_scale():
    tables = np.stack([np.eye(3) * scale for scale in (1, 2, 5)])
    figure = heat_maps(tables, ["a", "b", "c"], columns=2, **NAMES)
    drawn = [axes for axes in figure.axes if axes.images]
    assert {axes.images[0].get_clim() for axes in drawn} == {(0.0, 5.0)}
    assert [axes.get_title() for axes in drawn] == ["a", "b", "c"]


@pytest.mark.parametrize("shape", [(0, 0), (3,), (1, 0), (2, 2, 2)])
def test_what_is_no_table_is_refused(shape):
    with pytest.raises(ValueError, match="at least one row and one column"):
        heat_map(np.zeros(shape), **NAMES)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="`x_labels` must name each of the 3 columns"):
        heat_map(np.zeros((2, 3)), ["a", "b"], **NAMES)
    with pytest.raises(ValueError, match="`y_labels` must name each of the 2 rows"):
        heat_map(np.zeros((2, 3)), None, ["a"], **NAMES)


def test_what_does_not_fit_tables_side_by_side_is_refused():
    with pytest.raises(ValueError, match="`y_labels` must name each of the 1 rows"):
        heat_maps([[[1.0]]], ["a"], None, [], **NAMES)
    with pytest.raises(ValueError, match="`columns` must be at least 1. Received: 0"):
        heat_maps([[[1.0]]], ["a"], columns=0, **NAMES)


def test_limits_may_be_an_array():
    image = heat_map([[1.0, 2.0]], limits=np.array([0, 4]), **NAMES).axes[0].images[0]
    assert image.get_clim() == (0, 4)


@pytest.mark.parametrize(("tables", "titles"), [([], []), ([[[1.0]]], ["a", "b"])])
def test_tables_without_a_title_each_are_refused(tables, titles):
    with pytest.raises(ValueError, match="a title for each"):
        heat_maps(tables, titles, **NAMES)

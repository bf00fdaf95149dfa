"""What stands in the pictures of the positions."""

import numpy as np
import pytest

from keras_vanilla.plots import position_curves, position_map, position_similarity


def encoding(length, width):
    angles = np.arange(length)[:, None] / 10_000.0 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, width)


def drawn(figure):
    return np.asarray(figure.axes[0].images[0].get_array())


def test_a_map_has_a_row_for_each_position_on_one_scale():
    figure = position_map(encoding(11, 6))
    np.testing.assert_allclose(drawn(figure), encoding(11, 6))
    assert figure.axes[0].images[0].get_clim() == (-1, 1)
    assert figure.axes[0].get_xlabel() == "dimension"
    assert figure.axes[0].get_ylabel() == "position"


def test_a_map_of_larger_values_has_a_larger_symmetric_scale():
    low, high = position_map([[3.0, -5.0]]).axes[0].images[0].get_clim()
    assert (low, high) == (-5, 5)


def test_a_map_names_its_tokens_in_any_script():
    tokens = ["▁שלום", "слово", "<unk>"]
    axes = position_map(encoding(3, 4), tokens).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == tokens
    assert axes.get_ylabel() == "token"


def test_three_hundred_tokens_fit_on_a_page():
    figure = position_map(encoding(300, 4), [f"piece{i}" for i in range(300)])
    assert figure.get_figheight() <= 7
    assert len(figure.axes[0].get_yticks()) < 50


def test_dimensions_are_numbered_by_whole_numbers():
    figure = position_map(encoding(5, 6))
    figure.draw_without_rendering()
    ticks = figure.axes[0].get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))


def test_each_curve_is_a_column_named_by_its_dimension():
    axes = position_curves(encoding(101, 20)).axes[0]
    assert [line.get_label() for line in axes.lines] == [
        f"dimension {d}" for d in (4, 5, 6, 7)
    ]
    for line, dimension in zip(axes.lines, (4, 5, 6, 7), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(101))
        np.testing.assert_allclose(line.get_ydata(), encoding(101, 20)[:, dimension])


def test_values_below_zero_are_lime_above_it_magenta_and_zero_white():
    image = position_map(encoding(5, 4)).axes[0].images[0]
    above, zero, below = (image.to_rgba(value)[:3] for value in (1.0, 0.0, -1.0))
    assert above[0] > above[1] + 0.3 < above[2]
    assert below[0] > below[2] + 0.2 < below[1]
    assert min(zero) > 0.95


def test_similarity_is_the_cosine_of_each_two_positions():
    values = drawn(position_similarity([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0], [0, 0]]))
    half = 0.5**0.5
    np.testing.assert_allclose(
        values, [[1, 0, half, 0], [0, 1, half, 0], [half, half, 1, 0], [0, 0, 0, 0]]
    )


@pytest.mark.parametrize(
    "picture", [position_map, position_curves, position_similarity]
)
@pytest.mark.parametrize("shape", [(3,), (0, 4), (1, 3, 4)])
def test_what_is_no_table_of_positions_is_refused(picture, shape):
    with pytest.raises(ValueError, match="must be a table"):
        picture(np.zeros(shape))


@pytest.mark.parametrize("dimension", [-1, 6])
def test_a_dimension_that_is_not_there_is_refused(dimension):
    with pytest.raises(ValueError, match="dimensions 0 to 5"):
        position_curves(encoding(5, 6), [dimension])


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="y_labels"):
        position_map(encoding(5, 6), ["one"])
    with pytest.raises(ValueError, match="labels"):
        position_similarity(encoding(5, 6), ["one"])

import numpy as np
import pytest

from keras_vanilla.plots import distributions, learning_rate, training_history
from keras_vanilla.training import TransformerSchedule

HISTORY = {
    "loss": [5.0, 4.0, 3.5],
    "token_crossentropy": [4.5, 3.2, 2.6],
    "val_token_crossentropy": [4.0, 3.0, 2.8],
    "token_accuracy": [0.2, 0.4, 0.5],
    "val_bleu": [1.0, 7.0, 12.0],
}


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.axison]


def names(axes):
    return [line.get_label() for line in axes.lines]


def test_each_kind_of_number_that_was_logged_has_a_picture():
    figure = training_history(HISTORY)
    assert titles(figure) == [
        "Cross-entropy",
        "Accuracy of the next token",
        "BLEU",
    ]
    assert names(figure.axes[0]) == ["training", "validation", "training, smoothed"]
    assert all(axes.get_xlabel() == "epoch" for axes in figure.axes if axes.axison)


def test_epochs_are_counted_from_one():
    figure = training_history(HISTORY)
    np.testing.assert_array_equal(figure.axes[2].lines[0].get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(figure.axes[2].lines[0].get_ydata(), [1, 7, 12])


def test_no_part_of_an_epoch_is_named_not_even_of_a_single_one():
    for history in (HISTORY, {"val_bleu": [3.0]}):
        ticks = training_history(history).axes[0].get_xticks()
        assert len(ticks) and (ticks == np.round(ticks)).all()


def test_a_history_of_fit_is_drawn_as_its_dict():
    class History:
        history = HISTORY

    assert titles(training_history(History())) == titles(training_history(HISTORY))


def test_a_csv_file_is_drawn_as_the_dict_it_was_written_from(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("epoch,loss,val_bleu\n3,5.5,NA\n4,4.5,7.25\n5,4.")
    figure = training_history(path)
    loss, bleu = figure.axes[:2]
    np.testing.assert_array_equal(loss.lines[0].get_xdata(), [4, 5])
    np.testing.assert_array_equal(loss.lines[0].get_ydata(), [5.5, 4.5])
    np.testing.assert_array_equal(bleu.lines[0].get_ydata(), [np.nan, 7.25])


def test_learning_rates_are_drawn_by_step():
    figure = training_history({"val_bleu": [3.0]}, np.linspace(0, 1e-3, 7))
    rates = figure.axes[1]
    assert rates.get_xlabel() == "step"
    np.testing.assert_array_equal(rates.lines[0].get_xdata(), np.arange(1, 8))


def test_one_kind_alone_is_one_picture():
    assert len(training_history({"val_bleu": [3.0, 4.0]}).axes) == 1


def test_no_epoch_is_refused(tmp_path):
    empty = tmp_path / "history.csv"
    for text in ("", "epoch,loss\n"):
        empty.write_text(text)
        with pytest.raises(ValueError, match="at least one epoch"):
            training_history(empty)
    with pytest.raises(ValueError, match="at least one epoch"):
        training_history({"loss": []})


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        training_history(tmp_path / "history.csv")


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="Received: speed"):
        training_history({"speed": [1.0]})


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="'val_bleu': 1"):
        training_history({"loss": [1.0, 2.0], "val_bleu": [1.0]})


def test_the_schedule_is_drawn_from_step_one_to_the_last():
    schedule = TransformerSchedule(d_model=11, warmup_steps=7)
    line = learning_rate(schedule, 23).axes[0].lines[0]
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 24))
    steps = np.arange(1, 24)
    expected = 11**-0.5 * np.minimum(steps**-0.5, steps * 7**-1.5)
    np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-6)


def test_several_schedules_are_lines_of_their_names():
    schedules = {"slow": lambda step: step / 2, "fast": lambda step: step}
    axes = learning_rate(schedules, 100_000).axes[0]
    assert names(axes) == ["slow", "fast"]
    assert len(axes.lines[0].get_xdata()) < 1000
    assert axes.lines[1].get_xdata()[-1] == 100_000


def test_a_learning_rate_without_a_step_or_a_schedule_is_refused():
    with pytest.raises(ValueError, match="`steps` must be at least 1. Received: 0"):
        learning_rate(float, 0)
    with pytest.raises(ValueError, match="at least one line"):
        learning_rate({}, 5)


def test_targets_and_predictions_stand_side_by_side_on_one_scale():
    target, said = np.eye(3, 5), np.full((3, 5), 0.2)
    figure = distributions(target, said, list("abcde"), ["x", "y", "z"])
    left, right = figure.axes[:2]
    np.testing.assert_array_equal(left.images[0].get_array(), target)
    np.testing.assert_array_equal(right.images[0].get_array(), said)
    assert left.images[0].get_clim() == right.images[0].get_clim() == (0, 1)
    assert [label.get_text() for label in left.get_xticklabels()] == list("abcde")
    assert [label.get_text() for label in left.get_yticklabels()] == ["x", "y", "z"]


def test_distributions_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3, 3\)"):
        distributions(np.eye(2, 3), np.eye(3), "abc")


@pytest.mark.parametrize("wrong", [[[0.5, 0.6]], [[1.5, -0.5]]])
def test_what_is_no_distribution_is_refused(wrong):
    with pytest.raises(ValueError, match="`probabilities` must be a distribution"):
        distributions([[0.0, 1.0]], wrong, "ab")

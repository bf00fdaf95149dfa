from types import SimpleNamespace

import numpy as np

from keras_vanilla.plots import training_history

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


def test_each_kind_of_value_has_a_panel():
    figure = training_history(SimpleNamespace(history=HISTORY))  # as `fit` returns it
    expected = ["Cross-entropy", "Accuracy of the next token", "BLEU"]
    assert titles(figure) == expected == titles(training_history(HISTORY))
    assert names(figure.axes[0]) == ["training", "validation", "training, smoothed"]
    assert all(axes.get_xlabel() == "epoch" for axes in figure.axes if axes.axison)


def test_ticks_are_whole_epochs():
    for history in (HISTORY, {"val_bleu": [3.0]}):
        ticks = training_history(history).axes[0].get_xticks()
        assert len(ticks) and (ticks == np.round(ticks)).all()
    bleu = training_history(HISTORY).axes[2].lines[0]
    np.testing.assert_array_equal(bleu.get_xydata(), [[1, 1], [2, 7], [3, 12]])


def test_csv_file_is_read_without_its_cut_line(tmp_path):
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

import numpy as np

from keras_vanilla.plots import attention_map

SENTENCE = "The animal was too tired .".split()


def weights_of(*shape):
    scores = np.exp(2 * np.random.default_rng(0).normal(size=shape))
    return scores / scores.sum(-1, keepdims=True)


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_map_has_queries_as_rows_and_keys_as_columns():
    weights = weights_of(2, 3)
    axes = attention_map(weights, ["a", "b"], ["x", "y", "z"], title="T").axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), weights)
    assert axes.images[0].get_clim() == (0.0, weights.max())
    assert names(axes.yaxis) == ["a", "b"] and names(axes.xaxis) == ["x", "y", "z"]
    labels = axes.get_title(), axes.get_xlabel(), axes.get_ylabel()
    assert labels == ("T", "key", "query")


def test_heads_share_one_scale():
    weights = weights_of(5, 6, 6)
    maps = [a for a in attention_map(weights, SENTENCE).axes if a.images]
    maps = [axes for axes in maps if axes.get_title()]
    assert [axes.get_title() for axes in maps] == [f"head {i}" for i in range(1, 6)]
    for axes, head in zip(maps, weights, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (0.0, weights.max())
        assert names(axes.xaxis) == SENTENCE
    figure = attention_map(weights[:2], SENTENCE, heads=["head 3", "head 7"])
    assert [a.get_title() for a in figure.axes[:2]] == ["head 3", "head 7"]


def test_zeros_and_nan_are_drawn():
    assert attention_map(np.zeros((2, 2)), ["a", "b"]).axes[0].images
    assert attention_map(np.full((2, 2), np.nan), ["a", "b"]).axes[0].images

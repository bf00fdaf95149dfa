import numpy as np
import pytest

from keras_vanilla.plots import attention_links, attention_map, mask_table

SENTENCE = "The animal was too tired .".split()
SCRIPTS = ["我们", "שלום", "مرحبا", "⁇", "<unk>", "$x_1$", "", "a\nb"]
MANY = [f"token{i}" for i in range(300)]


def weights_of(*shape):
    scores = np.exp(2 * np.random.default_rng(0).normal(size=shape))
    return scores / scores.sum(-1, keepdims=True)


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def drawn(figure):
    return figure.axes[0].lines


def assert_nothing_is_cut(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    inside = figure.bbox.padded(1)
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert inside.contains(box.x0, box.y0) and inside.contains(box.x1, box.y1)


def test_map_has_queries_as_rows_and_keys_as_columns():
    weights = weights_of(2, 3)
    axes = attention_map(weights, ["a", "b"], ["x", "y", "z"], title="T").axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), weights)
    assert names(axes.yaxis) == ["a", "b"] and names(axes.xaxis) == ["x", "y", "z"]
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (
        "T",
        "key",
        "query",
    )


def test_white_is_weight_zero():
    weights = weights_of(3, 3)
    image = attention_map(weights, list("abc")).axes[0].images[0]
    assert image.get_clim() == (0.0, weights.max())


def test_queries_are_the_default_keys():
    axes = attention_map(weights_of(6, 6), SENTENCE).axes[0]
    assert names(axes.xaxis) == names(axes.yaxis) == SENTENCE


def test_heads_share_one_scale():
    weights = weights_of(5, 6, 6)
    maps = [a for a in attention_map(weights, SENTENCE).axes if a.images]
    maps = [axes for axes in maps if axes.get_title()]
    assert [axes.get_title() for axes in maps] == [f"head {i}" for i in range(1, 6)]
    for axes, head in zip(maps, weights, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (0.0, weights.max())


def test_heads_are_named():
    figure = attention_map(weights_of(2, 6, 6), SENTENCE, heads=["head 3", "head 7"])
    assert [a.get_title() for a in figure.axes[:2]] == ["head 3", "head 7"]


def test_zeros_and_nan_are_drawn():
    assert attention_map(np.zeros((2, 2)), ["a", "b"]).axes[0].images
    assert attention_map(np.full((2, 2), np.nan), ["a", "b"]).axes[0].images


def test_larger_weights_have_darker_wider_links():
    lines = drawn(attention_links(np.array([[0.7, 0.2, 0.1]]), ["q"], list("abc")))
    ends = [line.get_ydata().tolist() for line in lines]
    assert ends == [[0, 2], [0, 1], [0, 0]]  # the darkest is drawn last
    greys = [float(line.get_color()) for line in lines]
    assert greys == sorted(greys, reverse=True)
    widths = [line.get_linewidth() for line in lines]
    assert widths == sorted(widths) and len(set(widths)) == 3


def look_of_links(*weights):
    lines = drawn(attention_links(np.array([weights]), ["q"], MANY[: len(weights)]))
    return [(line.get_color(), line.get_linewidth()) for line in lines]


def test_weights_look_the_same_in_every_figure():
    assert look_of_links(0.2, 0.8)[0] == look_of_links(0.1, 0.2)[1]
    assert look_of_links(1.0, 0.0) == [("0.0", 3.6)]


def test_legend_has_sample_and_uniform_weights():
    figure = attention_links(np.full((1, 40), 1 / 40), ["q"], MANY[:40])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["1", "0.5", "0.25", "0.025 (all alike)"]
    assert look_of_links(*[1 / 40] * 40)[0][0] == str(0.82 * (1 - 1 / 40))


def test_links_name_tokens_on_both_sides():
    left, right = attention_links(weights_of(2, 3), ["a", "b"], list("xyz")).axes
    assert names(left.yaxis) == ["a", "b"] and names(right.yaxis) == ["x", "y", "z"]
    assert (left.get_ylabel(), right.get_ylabel()) == ("query", "key")


def test_one_query_is_framed_and_linked_alone():
    figure = attention_links(weights_of(6, 6), SENTENCE, query=4)
    assert {line.get_ydata()[0] for line in drawn(figure)} == {4}
    framed = [
        label.get_text()
        for label in figure.axes[0].get_yticklabels()
        if label.get_bbox_patch() is not None
    ]
    assert framed == ["tired"]


def test_masked_weights_have_no_links():
    assert not drawn(attention_links(np.zeros((2, 2)), ["a", "b"]))


@pytest.mark.full
@pytest.mark.parametrize(
    "figure",
    [
        lambda: attention_map(weights_of(8, 8), SCRIPTS),
        lambda: attention_links(weights_of(8, 8), SCRIPTS, query=1),
        lambda: attention_links(
            weights_of(40, 40), MANY[:40], query=39, title=40 * "x"
        ),
        lambda: attention_map(weights_of(8, 300, 300), MANY),
        lambda: mask_table(np.tri(300), MANY, MANY),
        lambda: attention_links(weights_of(1, 1), ["a"]),
    ],
    ids=["map", "links", "long links", "long heads", "long mask", "one token"],
)
@pytest.mark.filterwarnings("ignore:No font on this machine")
def test_figures_contain_all_tokens(figure):
    assert_nothing_is_cut(figure())

"""What stands in the drawings of models and layers, and that nothing overlaps."""

import itertools

import numpy as np
import pytest

from keras_vanilla.models.transformer import Transformer
from keras_vanilla.plots import architecture, layer_with_frame, token_flow
from keras_vanilla.plots.architecture import LEVELS


def transformer(**options):
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_encoder_layers": 3}
    return Transformer(17, **{**sizes, "num_decoder_layers": 2, **options})


@pytest.fixture(scope="module")
def models():
    return {False: transformer(), True: transformer(normalize_first=True)}


def artists(figure, gid):
    return figure.findobj(lambda artist: artist.get_gid() == gid)


def texts(figure):
    return [text.get_text() for text in artists(figure, "text")]


@pytest.fixture(scope="module")
def drawings(models):
    figures = []
    for model in models.values():
        figures += [architecture(model, level) for level in LEVELS]
        figures.append(layer_with_frame(model.encoder_layers[0]))
        figures.append(layer_with_frame(model.decoder_layers[0]))
    flow = token_flow(model.encoder_layers[0], ["Thinking", "Machines"])
    return [*figures, flow]


def inside(points, box):
    (x0, y0), (x1, y1) = box.get_bbox().get_points()
    slack = 1e-6
    x, y = points.T
    return (x0 + slack < x) & (x < x1 - slack) & (y0 + slack < y) & (y < y1 - slack)


@pytest.mark.full
def test_no_arrow_crosses_a_box(drawings):
    for figure in drawings:
        boxes = artists(figure, "box")
        for arrow in artists(figure, "arrow"):
            corners = arrow._path_original.vertices
            for start, end in itertools.pairwise(corners):
                points = start + np.linspace(0, 1, 101)[:, None] * (end - start)
                assert not any(inside(points, box).any() for box in boxes)


def test_no_two_boxes_overlap(drawings):
    for figure in drawings:
        for one, other in itertools.combinations(artists(figure, "box"), 2):
            assert not one.get_bbox().padded(-1e-6).overlaps(other.get_bbox())


def test_each_text_fits_into_its_box_and_onto_the_figure(drawings):
    for figure in drawings:
        figure.draw_without_rendering()
        boxes = [box.get_window_extent() for box in artists(figure, "box")]
        for text in artists(figure, "text"):
            extent = text.get_window_extent()
            assert figure.bbox.x0 <= extent.x0 and extent.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= extent.y0 and extent.y1 <= figure.bbox.y1
            for box in boxes:
                if box.overlaps(extent):
                    assert box.x0 < extent.x0 and extent.x1 < box.x1, text.get_text()
                    assert box.y0 < extent.y0 and extent.y1 < box.y1, text.get_text()


def test_the_black_box_names_what_goes_in_and_comes_out(models):
    model = models[False]
    figure = architecture(model, "box", "bonjour", "hello")
    assert set(texts(figure)) == {
        f"Transformer\n{model.count_params():,} parameters",
        "bonjour",
        "hello",
    }


def test_the_stacks_have_the_models_sizes(models):
    drawn = texts(architecture(models[False], "stacks"))
    assert {"encoder\n3 layers", "decoder\n2 layers", "memory (S, 12)"} <= set(drawn)


def test_each_layer_is_drawn_and_each_decoder_layer_reads_the_memory(models):
    figure = architecture(models[False], "layers")
    assert len(artists(figure, "box")) == 5
    assert {f"encoder_layer_{i}" for i in range(3)} <= set(texts(figure))
    between_encoder_layers, into_and_out = 2 + 1, 3
    reading = len(artists(figure, "arrow")) - between_encoder_layers - into_and_out
    assert reading == 2


@pytest.mark.parametrize("normalize_first", [False, True])
def test_parts_stand_in_the_order_of_the_layer(models, normalize_first):
    figure = architecture(models[normalize_first], "parts")
    middle = np.mean([b.get_bbox().x0 for b in artists(figure, "box")])
    left = [
        text
        for text in artists(figure, "text")
        if text.get_position()[0] < middle and text.get_ha() == "center"
    ]
    order = [t.get_text() for t in sorted(left, key=lambda t: t.get_position()[1])]
    attention, network = "self-attention\n3 heads of 4", "feed-forward\n12 → 20 → 12"
    post = [attention, "add, LayerNorm", network, "add, LayerNorm"]
    pre = ["LayerNorm", attention, "add", "LayerNorm", network, "add", "LayerNorm"]
    assert order[1:] == (pre if normalize_first else post)
    assert {"3 × encoder layer", "2 × decoder layer"} <= set(texts(figure))


def test_the_whole_has_every_layer_and_what_stands_around_them(models):
    drawn = texts(architecture(models[False], "whole"))
    assert drawn.count("self-attention\n3 heads of 4") == 3
    assert drawn.count("cross-attention\n3 heads of 4") == 2
    assert drawn.count("TokenEmbedding × √12") == 2
    assert drawn.count("logits: x Eᵀ\n(17)") == 1


def test_unscaled_embeddings_and_an_output_bias_are_drawn_so():
    model = transformer(
        scale_embeddings=False,
        output_bias=True,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    drawn = texts(architecture(model, "whole"))
    assert {"TokenEmbedding", "logits: x Eᵀ + b\n(17)"} <= set(drawn)


def test_a_level_that_does_not_exist_is_refused(models):
    with pytest.raises(ValueError, match="`level` must be one of"):
        architecture(models[False], "atoms")


def test_any_script_goes_in_and_comes_out(models):
    drawn = texts(architecture(models[False], "stacks", "שלום", "x_1$ привет"))
    assert "שלום" in drawn
    assert any("привет" in text for text in drawn)


def test_a_script_without_a_font_is_drawn_as_code_points(models):
    with pytest.warns(UserWarning, match="No font on this machine can show '你'"):
        drawn = texts(architecture(models[False], "stacks", "你"))
    assert "<4F60>" in drawn


def test_a_simplified_decoder_layer_has_three_boxes_and_its_frame_three_more(models):
    figure = layer_with_frame(models[False].decoder_layers[0])
    assert len(artists(figure, "box")) == 3 + 6
    assert len(artists(figure, "frame")) == 1


def test_words_meet_in_attention_alone(models):
    figure = token_flow(models[False].encoder_layers[0], ["one", "two", "three"])
    drawn = texts(figure)
    assert drawn.count("self-attention\n3 heads of 4") == 1
    assert drawn.count("feed-forward\n12 → 20 → 12") == 3
    assert {"x₁ (12,)", "z₂ (12,)", "r₃ (12,)", "three"} <= set(drawn)


@pytest.mark.parametrize("count", [0, 9])
def test_a_flow_of_no_words_or_too_many_is_refused(models, count):
    with pytest.raises(ValueError, match=f"1 to 8 words. Received: {count}"):
        token_flow(models[False].encoder_layers[0], ["word"] * count)

import io

import numpy as np
import pytest
from automaton import END, Automaton
from PIL import Image
from tiers import in_full

from keras_vanilla.decoding import beam_search, greedy_search, trace_search
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.plots import (
    beam_tree,
    decoding_animation,
    decoding_stills,
    next_token,
    search_tree,
)
from keras_vanilla.plots.canvas import shown
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation.translator import Translator

NAMES = "<pad> <s> </s> I a am student pupil".split()
SOURCE = np.array([[4]])
LINES = ["Ein Hund rennt über die Wiese.", "A dog runs across the meadow."] * 3


@pytest.fixture(scope="module")
def translator():
    tokenizer = Tokenizer.train(lines=LINES, vocabulary_size=330, model_type="bpe")
    model = Transformer.from_preset(
        "tiny", source_vocabulary_size=tokenizer.vocabulary_size, num_encoder_layers=3
    )
    return Translator(tokenizer, model)


def searched(beam_size, **arguments):
    model = Automaton.random(len(NAMES), seed=3, max_length=9)
    return trace_search(beam_search, model, SOURCE, beam_size=beam_size, **arguments)


def until_the_end(ids):
    """The tokens said; among them an automaton's may be pads."""
    return ids[: ids.tolist().index(END) + 1].tolist()


def boxes(figure, kind=None):
    found = [box for box in figure.axes[0].patches if box.get_gid()]
    return [box for box in found if kind in (None, box.get_gid())]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def middle(box):
    (x, y), width, height = box.get_xy(), box.get_width(), box.get_height()
    return round(x + width / 2, 3), round(y + height / 2, 3)


def test_every_hypothesis_that_was_held_has_a_box_of_its_own():
    found, states = searched(4)
    figure = beam_tree(found, states, NAMES.__getitem__)
    held = set()
    for n, state in enumerate(states):
        for ids, log_prob, length in zip(
            state["ids"][0], state["log_probs"][0], state["lengths"][0], strict=True
        ):
            if n and np.isfinite(log_prob) and length == n:
                held.add(tuple(ids[:n].tolist()))
    assert len(boxes(figure)) == len(held) + 1  # the start
    assert len({middle(box) for box in boxes(figure)}) == len(held) + 1
    links = [line for line in figure.axes[0].lines if line.get_gid() == "link"]
    assert len(links) == len(held)


def test_the_result_lies_straight_and_dark_with_its_tokens_and_its_score():
    found, states = searched(4)
    figure = beam_tree(found, states, NAMES.__getitem__)
    best = until_the_end(found[0][0, 0])
    on_the_path = sorted(boxes(figure, "best"), key=middle)
    assert len(on_the_path) == len(best) + 1
    assert len({middle(box)[1] for box in on_the_path}) == 1
    written = {
        (round(text.get_position()[0], 3), round(text.get_position()[1], 3)): text
        for text in figure.axes[0].texts
    }
    for box, id_ in zip(on_the_path[1:], best, strict=True):
        assert written[middle(box)].get_text().split("\n")[0] == NAMES[id_]
    assert f"score\n{found[1][0, 0]:.2f}" in texts(figure)


def test_dropped_and_ended_hypotheses_can_be_told_without_colours():
    found, states = searched(4)
    figure = beam_tree(found, states, NAMES.__getitem__)
    assert {box.get_linestyle() for box in boxes(figure, "kept")} == {"-"}
    dropped = boxes(figure, "dropped")
    assert dropped and "-" not in {box.get_linestyle() for box in dropped}
    ended = sum(
        int(ids[n - 1]) == END
        for n, state in enumerate(states)
        for ids, length in zip(state["ids"][0], state["lengths"][0], strict=True)
        if n and length == n
    )
    thick = [box for box in boxes(figure) if box.get_linewidth() > 2]
    assert len(thick) >= ended > 0


def test_numbers_are_the_log_probabilities():
    found, states = searched(2)
    written = texts(beam_tree(found, states, NAMES.__getitem__))
    first = states[1]
    for ids, log_prob in zip(first["ids"][0], first["log_probs"][0], strict=True):
        assert f"{NAMES[ids[0]]}\n{log_prob:.2f}" in written


def test_the_greedy_path_lies_below_the_tree():
    found, states = searched(2)
    model = Automaton.random(len(NAMES), seed=3, max_length=9)
    (ids, _), greedy = trace_search(greedy_search, model, SOURCE, return_scores=True)
    figure = beam_tree(found, states, NAMES.__getitem__, greedy=greedy)
    path = boxes(figure, "greedy")
    assert len(path) == len(until_the_end(ids[0]))
    lowest = min(middle(box)[1] for box in boxes(figure) if box not in path)
    assert {middle(box)[1] < lowest for box in path} == {True}
    assert "greedy:" in texts(figure)


@pytest.mark.parametrize("steps", [1, 9])
def test_the_legend_fits_into_the_picture(translator, steps):
    figure = search_tree(translator, "Ein Hund.", 3, max_length=4, steps=steps)
    figure.draw_without_rendering()
    place = figure.legends[0].get_window_extent()
    assert 0 <= place.x0 and place.x1 <= figure.bbox.width
    assert 0 <= place.y0 < place.y1 < figure.axes[0].get_window_extent().y0 + 2


def test_later_steps_are_left_out_and_the_title_says_so():
    found, states = searched(3, length_penalty=2.0)
    figure = beam_tree(found, states, NAMES.__getitem__, steps=2)
    count = len(states) - 1
    assert f"the first 2 of {count} steps" in figure.axes[0].get_title()
    assert len({middle(box)[0] for box in boxes(figure)}) == 3
    last = max(middle(box)[0] for box in boxes(figure))
    assert "dropped" not in {
        box.get_gid() for box in boxes(figure) if middle(box)[0] == last
    }


@pytest.mark.parametrize(
    "beams, steps, message", [(17, 12, "more than 16 beams"), (2, 0, "`steps`")]
)
def test_trees_that_cannot_be_drawn_are_refused(beams, steps, message):
    found, states = searched(beams)
    with pytest.raises(ValueError, match=message):
        beam_tree(found, states, NAMES.__getitem__, steps=steps)


@pytest.mark.parametrize("text", ["$x$\t{", *in_full("犬が走る。", "כלב רץ.")])
@pytest.mark.filterwarnings("ignore:No font on this machine")
def test_any_text_can_be_drawn(translator, text):
    figure = search_tree(translator, text, beam_size=2, max_length=3)
    assert shown(text) in figure.axes[0].get_title()
    assert boxes(figure, "best") and boxes(figure, "greedy")
    figure.savefig(io.BytesIO())


@pytest.mark.parametrize("draw", [search_tree, decoding_animation, decoding_stills])
def test_a_text_without_a_piece_is_refused(translator, draw):
    with pytest.raises(ValueError, match="at least one piece"):
        draw(translator, " ")


def test_too_many_beams_are_refused_before_the_search(translator):
    with pytest.raises(ValueError, match="more than 16 beams"):
        search_tree(translator, "Ein Hund.", beam_size=17)


# What may come next


def test_bars_are_the_likeliest_tokens_and_the_rest():
    probabilities = np.array([0.02, 0.0, 0.1, 0.4, 0.25, 0.2, 0.03, 0.0])
    axes = next_token(probabilities, NAMES.__getitem__, top=3, title="T").axes[0]
    assert [x.get_text() for x in axes.get_xticklabels()] == [
        "I",
        "a",
        "am",
        "5 others",
    ]
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights, [0.4, 0.25, 0.2, 0.15])
    assert axes.get_title() == "T"


def test_distributions_side_by_side_share_their_tokens():
    one, other = np.eye(8)[3], np.eye(8)[5]
    axes = next_token({"x": one, "y": other}, NAMES.__getitem__, top=2).axes[0]
    assert [x.get_text() for x in axes.get_xticklabels()] == ["I", "am"]
    assert sorted(bar.get_height() for bar in axes.patches) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "probabilities, top, message",
    [
        ({}, 3, "one shape"),
        ({"x": np.ones(3), "y": np.ones(4)}, 3, "one shape"),
        (np.ones((2, 2)), 3, "one shape"),
        (np.ones(3), 0, "`top`"),
        (np.array([0.5, np.nan]), 8, "must be finite"),
    ],
)
def test_what_is_no_distribution_is_refused(probabilities, top, message):
    with pytest.raises(ValueError, match=message):
        next_token(probabilities, NAMES.__getitem__, top=top)


# Decoding, animated


def frames_of(animation):
    """(picture, milliseconds) of each frame of a PNG that repeats."""
    image = Image.open(io.BytesIO(animation))
    assert image.format == "PNG" and image.info["loop"] == 0
    for index in range(image.n_frames):
        image.seek(index)
        yield np.array(image.convert("RGB"), float), image.info["duration"]


@pytest.mark.full
def test_an_animation_has_a_picture_per_layer_and_token_and_begins_with_its_last(
    translator,
):
    text, layers, tokens = "Ein Hund rennt.", 3, 4
    animations = [
        decoding_animation(translator, text, part, max_length=tokens)
        for part in ("all", "first", "following")
    ]
    whole, first, following = map(list, map(frames_of, animations))
    assert len(whole) == layers + tokens
    assert max(map(len, animations)) < 15_000 * len(whole)

    def nearest(picture):  # each animation has a palette of its own
        return np.argmin([np.abs(picture - other).mean() for other, _ in whole])

    poster, encoder, first_token = 0, list(range(1, 1 + layers)), 1 + layers
    later = list(range(first_token + 1, len(whole)))
    assert [nearest(p) for p, _ in first] == [first_token, *encoder]
    assert [nearest(p) for p, _ in following] == [poster, *later]
    for frames in (whole, first, following):
        assert all(frames[0][1] > milliseconds for _, milliseconds in frames[1:])


@pytest.mark.full
def test_stills_begin_with_the_encoder_and_end_with_the_last_token(translator):
    figure = decoding_stills(translator, "Ein Hund rennt.", count=5, max_length=6)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles[:2] == [
        "Step 1: the encoder, layer 1",
        "Step 1: the encoder, layer 3",
    ]
    assert titles[2].startswith("Step 1: the decoder predicts")
    assert len(titles) == 5


def test_animations_that_cannot_be_drawn_are_refused(translator):
    with pytest.raises(ValueError, match="`part`"):
        decoding_animation(translator, "Ein Hund.", "second")
    with pytest.raises(ValueError, match="`count`"):
        decoding_stills(translator, "Ein Hund.", count=1)
    with pytest.raises(ValueError, match="at most 24 tokens .* a text of"):
        decoding_animation(translator, "Ein Hund " * 30, max_length=4)


def test_tokens_of_one_name_are_told_apart_by_their_ids():
    axes = next_token([0.5, 0.3, 0.2], lambda id_: "⁇" if id_ else "a").axes[0]
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["a", "⁇ (1)", "⁇ (2)"]
    assert [bar.get_height() for bar in axes.patches] == [0.5, 0.3, 0.2]


def test_the_title_of_a_long_text_is_not_cut():
    figure = beam_tree(*searched(2), str, title="M and more of it " * 8)
    figure.canvas.draw()
    place = figure.axes[0].title.get_window_extent()
    assert 0 <= place.x0 and place.x1 <= figure.bbox.width

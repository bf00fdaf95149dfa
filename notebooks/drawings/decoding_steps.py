"""Greedy decoding as an animation and as still pictures."""

import io
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from keras import ops

from drawings.canvas import canvas
from drawings.drawing import Box, draw_arrow, draw_box, write
from keras_vanilla._checks import check_choice
from keras_vanilla.decoding import greedy_search, trace_search
from keras_vanilla.decoding.attended_source import alignment_layer
from keras_vanilla.plots.style import PARTS, color_map, ink_on, shown, style
from keras_vanilla.plots.translation import source_of
from keras_vanilla.tokenizer.piece_names import START, source_names, target_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.translation.translator import Translator

MILLISECONDS, POSTER_MILLISECONDS = 1200, 3000  # per picture
MOST_TOKENS = 24  # of the source, and of the translation
COLOURS = 256
LIKELIEST = 4  # next tokens with a bar
TOKEN = 0.72  # inches from token to token, less in a long text
WIDEST = 8.7  # inches of a picture
NAMES = 2.1  # approximate inches of the row names and a margin
LARGE, SMALL = 8, 6.5  # font sizes in boxes, in points
LEFT = -0.7  # left end of the stacks; their first token is at 0
BAR, BAR_STEP = 3.0, 0.3  # length of a bar for probability 1; distance between bars
IDLE = "white", "black"  # colours of a box and of its letters
AT_WORK = {part: (shades.dark, "white") for part, shades in PARTS.items()}
DONE = {part: (shades.light, "black") for part, shades in PARTS.items()}


class _Scene(NamedTuple):
    """One picture: the active part of the model, and the tokens so far."""

    title: str
    layer: int | None  # of the encoder; None if the decoder is active
    output: list = ()  # the tokens that the decoder has predicted
    attended: list = ()  # weight of each source token for the last one
    likeliest: list = ()  # (token, probability) of the next ones


class _Decoding(NamedTuple):
    """A decoded text: one scene per encoder layer, then one per predicted token."""

    source: list
    layers: int
    scenes: list

    @property
    def width(self):
        """Number of tokens of the longer side."""
        return max(len(self.source), len(self.scenes[-1].output), 6)

    @property
    def token(self):
        """Inches from token to token."""
        return min(TOKEN, (WIDEST - NAMES) / self.width)

    @property
    def inches(self):
        """Width and height of a picture."""
        return self.width * self.token + NAMES, 3.3 + 0.16 * self.layers


@style()
def decoding_animation(
    translator: "Translator",
    text: str,
    part: str = "all",
    max_length: int | None = None,
    poster: str | None = None,
) -> bytes:
    """Animates the greedy decoding of a text, with one picture per step.

    In the first step, the encoder reads the text, layer by layer, and the decoder
    predicts its first token. In each of the following steps, only the decoder runs; it
    reads the token that it has just predicted and predicts the next one, until the end.
    The shade of the memory shows the weights of the cross-attention, averaged over the
    heads of the layer that aligns best. Bars show the most likely next tokens.

    The last picture comes first, or the one of `poster`, for viewers without
    animations, previews and prints. The animation repeats, so this does not change the
    order of the steps.

    Args:
        translator: Translator.
        text: str.
        part: "first" (the first step), "following" (all others; the last picture if
            there is only one step) or "all".
        max_length: int or None, see `greedy_search`.
        poster: str or None. The token whose prediction comes first.
    Returns:
        bytes of an animated PNG, for `IPython.display.Image(data=..., format="png")`,
        browsers and pages made from notebooks.
    Raises:
        ValueError: if the part is unknown, the text has no piece or more pieces than
            the model takes, the text or its translation has more than 24 tokens, or no
            picture of the part predicts `poster`.
    """
    check_choice("part", part, ("first", "following", "all"))
    decoding = _decode(translator, text, max_length)
    scenes, second = decoding.scenes, decoding.layers + 1
    if part == "first":
        scenes = scenes[:second]
    elif part == "following":
        scenes = scenes[second:] or scenes[-1:]
    last = [scene.output[-1:] for scene in scenes]
    if poster is not None and [poster] not in last:
        raise ValueError(f"`poster` must be a predicted token. Received: {poster!r}")
    first = len(last) - 1 if poster is None else last.index([poster])
    return _png([_picture(decoding, scene) for scene in scenes], first)


@style()
def decoding_stills(
    translator: "Translator", text: str, count: int = 6, max_length: int | None = None
) -> "Figure":
    """Draws pictures of the animation: the first ones, and others at equal intervals.

    Args:
        translator: Translator.
        text: str.
        count: int, at least 2. Maximum number of pictures.
        max_length: int or None, see `greedy_search`.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if `count` is below 2, or as in `decoding_animation`.
    """
    if count < 2:
        raise ValueError(f"`count` must be at least 2. Received: {count}")
    decoding = _decode(translator, text, max_length)
    scenes = decoding.scenes
    first = [0, decoding.layers - 1, decoding.layers]
    chosen = sorted({i for i in first if i < len(scenes) - 1})[: count - 1]
    rest = np.linspace(chosen[-1], len(scenes) - 1, count - len(chosen) + 1)[1:]
    chosen += sorted({round(i) for i in rest} - set(chosen))
    width, height = decoding.inches
    columns = 2 if width < 6 else 1
    rows = -(-len(chosen) // columns)
    figure, axes = canvas(rows, columns, width=columns * width, height=rows * height)
    for panel in axes.flat:
        panel.set_axis_off()
    for panel, i in zip(axes.flat, chosen, strict=False):
        _draw(panel, decoding, scenes[i])
    titles = "; ".join(scenes[i].title for i in chosen)
    output = " ".join(scenes[-1].output)
    figure.set_label(f"Greedy decoding of {text!r} to {output}. {titles}.")
    return figure


def _decode(translator, text, max_length):
    model, tokenizer = translator.model, translator.tokenizer
    sources, names = source_of(translator, text), target_names(tokenizer)
    states = trace_search(
        greedy_search, model, np.array([sources]), max_length=max_length
    )[1]
    ids = states[-1]["ids"][0]
    output = [names(i) for i in ids[: len(states) - 1]]
    source = list(map(source_names(tokenizer), sources))
    for side, tokens in (("text", source), ("translation", output)):
        if len(tokens) > MOST_TOKENS:
            raise ValueError(
                f"Decoding is drawn for at most {MOST_TOKENS} tokens per text. "
                f"Received: a {side} of {len(tokens)} tokens"
            )
    layers = model.num_encoder_layers
    scenes = [_Scene(f"Step 1: the encoder, layer {i + 1}", i) for i in range(layers)]
    attended = _attended(model, sources, ids)
    for n, (token, weights) in enumerate(zip(output, attended, strict=False), start=1):
        title = f"Step {n}: the decoder predicts {token}"
        p = ops.convert_to_numpy(ops.softmax(states[n - 1]["logits"][0]))
        likeliest = np.argsort(-p, kind="stable")[:LIKELIEST]
        bars = [(names(i), p[i]) for i in likeliest]
        scenes.append(_Scene(title, None, output[:n], weights, bars))
    return _Decoding(source, layers, scenes)


def _attended(model, source, output):
    """Returns the weights (L, S) of the source tokens for each predicted token."""
    read = np.concatenate([[model.start_id], output[:-1]])
    inputs = {"source_ids": np.array([source]), "target_ids": read[None]}
    layer = alignment_layer(model.num_decoder_layers)
    return model.attention_weights(inputs)[f"decoder/{layer}/cross"][0].mean(axis=0)


def _picture(decoding, scene):
    """Draws a scene as an RGB array (height, width, 3)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    width, height = decoding.inches
    figure, axes = canvas(width=width, height=height)
    axes[0, 0].set_axis_off()
    _draw(axes[0, 0], decoding, scene)
    drawn = FigureCanvasAgg(figure)
    drawn.draw()
    return np.asarray(drawn.buffer_rgba())[..., :3]


def _png(pictures, first):
    """Creates a repeating animated PNG that begins with a picture."""
    from PIL import Image  # comes with matplotlib

    pictures = [*pictures[first:], *pictures[:first]]
    palette = Image.fromarray(np.concatenate(pictures)).quantize(COLOURS)
    frames = [
        Image.fromarray(picture).quantize(palette=palette, dither=Image.Dither.NONE)
        for picture in pictures
    ]
    file = io.BytesIO()
    frames[0].save(
        file,
        format="png",
        save_all=True,
        append_images=frames[1:],
        duration=[POSTER_MILLISECONDS] + [MILLISECONDS] * (len(frames) - 1),
        loop=0,
    )
    return file.getvalue()


def _draw(axes, decoding, scene):
    """Draws, from the bottom, source, encoder, memory, decoder input and output."""
    layers, encoding = decoding.layers, scene.layer is not None
    memory = 0.62 + 0.28 * layers
    reads, decoder, predicts = memory + 0.72, memory + 1.18, memory + 1.64
    left, high = (0.5 - NAMES) / decoding.token, predicts + 0.6 + LIKELIEST * BAR_STEP
    axes.set(xlim=(left, decoding.width + 0.5), ylim=(-0.3, high))
    axes.set_title(scene.title)
    rows = {"source": 0, "encoder": 0.36 + 0.14 * layers, "memory": memory}
    rows |= {"reads": reads, "decoder": decoder, "predicts": predicts}
    for name, y in rows.items():
        _name(axes, y, name)
    look = (AT_WORK if scene.layer == 0 else DONE)["X"]
    _tokens(axes, decoding, decoding.source, 0, look)
    for layer in range(layers):
        look = DONE["encoder"] if not encoding or layer < scene.layer else IDLE
        look = AT_WORK["encoder"] if layer == scene.layer else look
        _stack(axes, decoding.source, 0.5 + 0.28 * layer, 0.2, look)
    look = IDLE if encoding else AT_WORK["decoder"]
    _stack(axes, decoding.scenes[-1].output, decoder, 0.26, look)
    if encoding:
        return
    _draw_memory(axes, decoding, memory, scene.attended)
    draw_arrow(axes, (LEFT + 0.2, memory + 0.2), (LEFT + 0.2, decoder - 0.13))
    _tokens(axes, decoding, [START, *scene.output[:-1]], reads, DONE["X"])
    _tokens(axes, decoding, scene.output[:-1], predicts, DONE["decoder"])
    newest = len(scene.output) - 1
    _tokens(axes, decoding, scene.output[-1:], predicts, AT_WORK["decoder"], newest)
    if newest:  # the token predicted before is the newest one read
        before, over, right = newest - 1, predicts + 0.32, newest + 0.75
        corners = (before, predicts + 0.15), (before, over), (right, over)
        draw_arrow(axes, *corners, (right, reads), (newest + 0.46, reads), zorder=2)
    _draw_likeliest(axes, scene.likeliest, high - BAR_STEP)


def _draw_memory(axes, decoding, y, attended):
    """Draws the encoder's output, with darker tokens for larger weights."""
    for x, (token, weight) in enumerate(zip(decoding.source, attended, strict=True)):
        fill = color_map("memory")(weight)
        look, below = (fill, ink_on(fill)), f"\n{weight:.2f}"
        _token(axes, decoding, x, y, token, look, below, height=0.4)


def _draw_likeliest(axes, likeliest, top):
    """Draws bars of the next token's probabilities at the top."""
    _name(axes, top, "next token")
    x = 1.0
    for row, (token, p) in enumerate(likeliest):
        y = top - BAR_STEP * row
        fill, _ = (AT_WORK if row == 0 else DONE)["decoder"]
        write(axes, x - 0.1, y, shown(token, longest=11), LARGE, ha="right")
        if p > 0.001:
            draw_box(axes, Box(x + BAR * p / 2, y, BAR * p, 0.22), facecolor=fill)
        write(axes, x + BAR * p + 0.08, y, f"{p:.2f}", LARGE, ha="left")


def _name(axes, y, text):
    write(axes, LEFT - 0.12, y, text, 9, ha="right", style="italic")


def _stack(axes, tokens, y, height, look):
    """Draws a layer as a bar along the tokens."""
    right = len(tokens) - 0.54
    box = Box((LEFT + right) / 2, y, right - LEFT, height)
    draw_box(axes, box, facecolor=look[0])


def _tokens(axes, decoding, tokens, y, look, first=0):
    for x, token in enumerate(tokens, start=first):
        _token(axes, decoding, x, y, token, look)


def _token(axes, decoding, x, y, token, look, below="", height=0.3):
    """Draws a box with a token, cut to its size, and a text below it."""
    (fill, ink), size = look, LARGE if decoding.token > 0.6 else SMALL
    text = shown(token, longest=max(3, int(decoding.token * 110 / size))) + below
    draw_box(axes, Box(x, y, 0.92, height), text, ink, size, facecolor=fill)

"""The tree of the hypotheses of a beam search, and the greedy path below it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from keras_vanilla.decoding import beam_search, greedy_search, trace_search
from keras_vanilla.plots.canvas import canvas, cut, name_picture, shown, title_inches
from keras_vanilla.plots.curves import DARK
from keras_vanilla.plots.drawing import Box, draw_named_box
from keras_vanilla.plots.pieces import START, source_of, target_names
from keras_vanilla.plots.search_nodes import DROPPED, FINISHED, KEPT, tree, walk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.translation.translator import Translator

MOST_BEAMS = 16
COLUMN, ROW = 1.12, 0.5  # inches from box to box
WIDTH, HEIGHT = 0.92, 0.38  # of a box
LONGEST = 11  # characters of a piece in a box
GREEDY = "greedy"
STYLES = {  # of a box: fill, edge, width of the edge, dashes, writing
    "best": (DARK, "black", 1.0, "-", "white"),
    KEPT: ("white", "black", 1.0, "-", "black"),
    DROPPED: ("white", "#666666", 0.9, (0, (4, 2)), "#444444"),
    FINISHED: ("white", "black", 2.6, "-", "black"),
    GREEDY: ("#dddddd", "black", 1.0, "-", "black"),
}
MEANINGS = {
    "best": "the result",
    KEPT: "kept and continued",
    DROPPED: "kept once, then dropped",
    FINISHED: "ended",
    GREEDY: "greedy search",
}


def search_tree(
    translator: "Translator",
    text: str,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    max_length: int | None = None,
    steps: int = 12,
) -> "Figure":
    """Draws a beam search for one text as a tree, and the greedy path below it.

    Args:
        translator: Translator.
        text: str.
        beam_size: int, at most 16.
        length_penalty: float, see `beam_search`.
        max_length: int or None, see `beam_search`.
        steps: int. Later steps are not drawn, and the title says so.
    Returns:
        A matplotlib Figure, as `beam_tree` draws it.
    Raises:
        ValueError: if the text has no piece or more pieces than the model takes, an
            argument is out of its range, or there are more than 16 beams.
    """
    _check_beams(beam_size)
    model, source_ids = translator.model, np.array([source_of(translator, text)])
    result, states = trace_search(
        beam_search,
        model,
        source_ids,
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_length=max_length,
    )
    greedy = trace_search(
        greedy_search, model, source_ids, max_length=max_length, return_scores=True
    )[1]
    return beam_tree(
        result,
        states,
        target_names(translator.tokenizer),
        greedy=greedy,
        steps=steps,
        title=f"Beam search with {beam_size} beams: {cut(text, 60)}",
    )


def beam_tree(
    result: tuple[np.ndarray, np.ndarray],
    states: list[dict],
    names: Callable[[int], str],
    *,
    greedy: list[dict] | None = None,
    steps: int = 12,
    title: str = "Beam search",
) -> "Figure":
    """Draws the hypotheses of a beam search as a tree, the result along the top.

    A column is a step. A box has a token and the log-probability of all tokens up to
    it. A hypothesis that ended and is in the result has its score to the right.

    Args:
        result: ids (B, n, L) and scores (B, n), the result of
            `trace_search(beam_search, ...)`; the first row of the batch is drawn.
        states: list of dicts, the states of the same search.
        names: function from an id to its name.
        greedy: list of dicts or None, the states of `trace_search(greedy_search, ...,
            return_scores=True)`, for the path of the most likely tokens.
        steps: int. Later steps are not drawn, and the title says so.
        title: str.
    Returns:
        A matplotlib Figure.
    Raises:
        ValueError: if there are more than 16 beams, or `steps` is below 1.
    """
    _check_beams(states[0]["ids"].shape[1])
    if steps < 1:
        raise ValueError(f"`steps` must be at least 1. Received: {steps}")
    start = tree(states, result, steps)
    nodes = list(walk(start))
    lowest = 1 + max(node.row for node in nodes)
    paths = [] if greedy is None else _greedy_path(greedy, steps)
    last = max([node.step for node in nodes] + [len(paths)])
    drawn = max(len(states), len(greedy or ())) - 1
    if drawn > steps:
        title += f" (the first {steps} of {drawn} steps)"
    axes = _plane(title, last + 1, lowest + bool(paths))
    for node in nodes:
        _draw_node(axes, node, names)
        for child in node.children:
            _link(axes, node, child)
    for step, (token, log_prob) in enumerate(paths, start=1):
        _box(axes, step, lowest + 0.3, names(token), log_prob, GREEDY)
    if paths:
        axes.text(0, -(lowest + 0.3) * ROW, "greedy:", ha="center", va="center")
    _explain(axes, nodes, paths)
    return axes.figure


def _check_beams(count):
    if count > MOST_BEAMS:
        raise ValueError(
            f"A tree of more than {MOST_BEAMS} beams cannot be read. Received: {count}"
        )


def _greedy_path(states, steps):
    """(token, log-probability up to it) of each step until the first row's end."""
    path = []
    for step, state in enumerate(states[1 : steps + 1]):
        path.append((int(state["ids"][0, step]), float(state["sums"][0])))
        if state["finished"][0]:
            break
    return path


def _plane(title, columns, rows):
    """Axes in inches: column c is at x = c * COLUMN, row r at y = -r * ROW."""
    width, height = (columns + 0.6) * COLUMN, (rows + 0.6) * ROW
    width = max(6.0, width, title_inches(title))
    axes = canvas(width=width, height=height + 0.9)[1][0, 0]
    axes.set_axis_off()
    axes.set(xlim=(-0.6 * COLUMN, columns * COLUMN), ylim=(-rows * ROW, 0.6 * ROW))
    name_picture(axes, title)
    return axes


def _draw_node(axes, node, names):
    if not node.step:
        style = "best"
        _box(axes, 0, node.row, START, 0.0, style)
        return
    style = "best" if node.best else node.kind
    ended = node.kind is FINISHED
    _box(axes, node.step, node.row, names(node.tokens[-1]), node.log_prob, style, ended)
    if node.score is not None:
        x, y = node.step * COLUMN + WIDTH / 2 + 0.08, -node.row * ROW
        text = f"score\n{node.score:.2f}"
        axes.text(x, y, text, ha="left", va="center", fontsize=8, gid="score")


def _box(axes, column, row, name, log_prob, style, ended=False):
    fill, edge, line, dashes, color = STYLES[style]
    draw_named_box(
        axes,
        Box(column * COLUMN, -row * ROW, WIDTH, HEIGHT),
        f"{shown(name, longest=LONGEST)}\n{log_prob:.2f}",
        color,
        facecolor=fill,
        edgecolor=edge,
        linewidth=STYLES[FINISHED][2] if ended else line,
        linestyle=dashes,
        gid=style,
    )


def _link(axes, node, child):
    left, right = node.step * COLUMN + WIDTH / 2, child.step * COLUMN - WIDTH / 2
    axes.plot(
        [left, (left + right) / 2, (left + right) / 2, right],
        [-node.row * ROW, -node.row * ROW, -child.row * ROW, -child.row * ROW],
        color="black" if child.kind is not DROPPED else "#666666",
        linewidth=2.2 if child.best else 0.9,
        linestyle="--" if child.kind is DROPPED else "-",
        zorder=1,
        gid="link",
    )


def _explain(axes, nodes, paths):
    from matplotlib.patches import Patch

    kinds = {node.kind for node in nodes} | {"best"} | ({GREEDY} if paths else set())
    handles = []
    for kind, meaning in MEANINGS.items():
        if kind in kinds:
            fill, edge, line, dashes, _ = STYLES[kind]
            handles.append(
                Patch(
                    facecolor=fill,
                    edgecolor=edge,
                    linewidth=line,
                    linestyle=dashes,
                    label=meaning,
                )
            )
    axes.figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles),
        fontsize="small",
        title="a number is the log-probability of all tokens up to there",
        title_fontsize="small",
        frameon=False,
    )

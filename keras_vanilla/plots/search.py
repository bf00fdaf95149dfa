"""Drawings of the tree of hypotheses of a beam search, and of other paths."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from keras import ops

from keras_vanilla.decoding import (
    DecodingConfig,
    beam_search,
    greedy_search,
    trace_search,
)
from keras_vanilla.plots.canvas import canvas, cut, name_picture, shown, title_inches
from keras_vanilla.plots.drawing import Box, draw_named_box
from keras_vanilla.plots.palette import PARTS
from keras_vanilla.plots.pieces import source_of, target_of
from keras_vanilla.plots.search_nodes import DROPPED, FINISHED, KEPT, tree, walk
from keras_vanilla.tokenizer.piece_names import START, target_names

GREEDY, GIVEN = "greedy", "given"


class Path(NamedTuple):
    """A sequence of tokens with the model's log-probabilities.

    Fields:
        kind: GREEDY or GIVEN.
        tokens: list of int, one per step.
        log_probs: list of float. Cumulative log-probability after each step.
        score: float or None. The last one divided by the length normalization.
    """

    kind: str
    tokens: list[int]
    log_probs: list[float]
    score: float | None = None


def greedy_path(states: list[dict]) -> Path:
    """Returns the path of the first row of a greedy search, until its end.

    Args:
        states: list of dicts, from `trace_search(greedy_search, ...,
            return_scores=True)`.
    """
    tokens, log_probs = [], []
    for step, state in enumerate(states[1:]):
        tokens.append(int(state["ids"][0, step]))
        log_probs.append(float(state["sums"][0]))
        if state["finished"][0]:
            break
    return Path(GREEDY, tokens, log_probs)


def given_path(
    model: Any,
    source_ids: np.ndarray,
    target: Sequence[int],
    length_penalty: float = 0.6,
) -> Path:
    """Returns the path of a given translation, with its score as in beam search.

    Args:
        model: Transformer.
        source_ids: int array (1, S).
        target: list of int, including the end.
        length_penalty: float, see `beam_search`.
    """
    shifted = np.array([[model.start_id, *target[:-1]]])
    logits = model({"source_ids": source_ids, "target_ids": shifted})
    log_probs = ops.convert_to_numpy(ops.log_softmax(logits))[0]  # (T, V)
    sums = np.cumsum(log_probs[np.arange(len(target)), target])
    config = DecodingConfig(length_penalty=length_penalty)
    score = config.apply_length_penalty(float(sums[-1]), len(target))
    return Path(GIVEN, list(target), sums.tolist(), score)


if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.translation.translator import Translator

MOST_BEAMS = 16
COLUMN, ROW = 1.12, 0.5  # distance between boxes in inches
WIDTH, HEIGHT = 0.92, 0.38  # of a box
LONGEST = 11  # characters of a piece in a box
ENTRY, LINE = 1.75, 0.25  # inches of an entry of the legend
STYLES = {  # of a box: fill, edge, width of the edge, dashes, writing
    "best": (PARTS["decoder"].dark, "black", 1.0, "-", "white"),
    KEPT: ("white", "black", 1.0, "-", "black"),
    DROPPED: ("white", "#666666", 0.9, (0, (4, 2)), "#444444"),
    FINISHED: ("white", "black", 2.6, "-", "black"),
    GREEDY: (PARTS["decoder"].light, "black", 1.0, "-", "black"),
    GIVEN: ("white", "black", 1.6, (0, (1, 1)), "black"),
}
MEANINGS = {
    "best": "the result",
    KEPT: "kept and continued",
    DROPPED: "kept once, then dropped",
    FINISHED: "ended",
    GREEDY: "greedy search",
    GIVEN: "the given translation",
}


def search_tree(
    translator: "Translator",
    text: str,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    max_length: int | None = None,
    steps: int = 12,
    translation: str | None = None,
) -> "Figure":
    """Draws a beam search for one text as a tree, and the greedy path below it.

    A given translation is drawn as a separate path with its log-probabilities and its
    score. If this score is higher than that of the result, the search missed the
    translation; if it is lower, the model prefers the result.

    Args:
        translator: Translator.
        text: str.
        beam_size: int, at most 16.
        length_penalty: float, see `beam_search`.
        max_length: int or None, see `beam_search`.
        steps: int. Later steps are not drawn, which the title mentions.
        translation: str or None.
    Returns:
        A matplotlib Figure, see `beam_tree`.
    Raises:
        ValueError: if text or translation has no piece or more pieces than the model
            takes, an argument is out of its range, or there are more than 16 beams.
    """
    _check_beams(beam_size)
    model, source_ids = translator.model, np.array([source_of(translator, text)])
    target = None if translation is None else target_of(translator, translation)
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
        given=target and given_path(model, source_ids, target, length_penalty),
        steps=steps,
        title=f"Beam search with {beam_size} beams: {cut(text, 60)}",
    )


def beam_tree(
    result: tuple[np.ndarray, np.ndarray],
    states: list[dict],
    names: Callable[[int], str],
    *,
    greedy: list[dict] | None = None,
    given: Path | None = None,
    steps: int = 12,
    title: str = "Beam search",
) -> "Figure":
    """Draws the hypotheses of a beam search as a tree, with the result at the top.

    Each column is a step. Each box has a token and the log-probability of all tokens up
    to it. The score of a finished hypothesis of the result is to its right.

    Args:
        result: ids (B, n, L) and scores (B, n), the result of
            `trace_search(beam_search, ...)`; the first row of the batch is drawn.
        states: list of dicts, the states of the same search.
        names: function from an id to its name.
        greedy: list of dicts or None, the states of `trace_search(greedy_search, ...,
            return_scores=True)`, for the path of the most likely tokens.
        given: Path of another translation, from `given_path`, or None.
        steps: int. Later steps are not drawn, which the title mentions.
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
    paths = [] if greedy is None else [greedy_path(greedy)]
    paths += [] if given is None else [given]
    longest = max([len(states) - 1, *(len(path.tokens) for path in paths)])
    if longest > steps:
        title += f" (the first {steps} of {longest} steps)"
    kinds = {"best", *(node.kind for node in nodes), *(path.kind for path in paths)}
    columns, rows = _columns(nodes, paths, steps), lowest + len(paths)
    axes = _plane(title, columns, rows, len(kinds))
    for node in nodes:
        _draw_node(axes, node, names)
        for child in node.children:
            _link(axes, node, child)
    for row, path in enumerate(paths, start=lowest):
        _draw_path(axes, path, row + 0.3, names, steps)
    _explain(axes, kinds)
    return axes.figure


def _check_beams(count):
    if count > MOST_BEAMS:
        raise ValueError(
            f"A tree of more than {MOST_BEAMS} beams cannot be read. Received: {count}"
        )


def _columns(nodes, paths, steps):
    """Returns the number of columns, including the start and room for scores."""
    scored = [min(steps, len(path.tokens)) + (path.score is not None) for path in paths]
    return 1 + max([node.step for node in nodes] + scored)


def _plane(title, columns, rows, entries):
    """Creates axes in inches; column c is at x = c * COLUMN, row r at y = -r * ROW."""
    width, height = (columns + 0.6) * COLUMN, (rows + 0.6) * ROW
    width = max(6.0, width, title_inches(title))
    height += 0.65 + LINE * _legend_lines(width, entries)
    axes = canvas(width=width, height=height)[1][0, 0]
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
        _write_score(axes, node.step, node.row, node.score)


def _draw_path(axes, path, row, names, steps):
    axes.text(0, -row * ROW, f"{path.kind}:", ha="center", va="center")
    pairs = zip(path.tokens[:steps], path.log_probs, strict=False)
    for step, (token, log_prob) in enumerate(pairs, start=1):
        _box(axes, step, row, names(token), log_prob, path.kind)
    if path.score is not None and len(path.tokens) <= steps:
        _write_score(axes, len(path.tokens), row, path.score)


def _write_score(axes, column, row, score):
    x, y = column * COLUMN + WIDTH / 2 + 0.08, -row * ROW
    text = f"score\n{score:.2f}"
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


def _legend_lines(width, entries):
    return -(-entries // max(1, int(width / ENTRY)))


def _explain(axes, kinds):
    from matplotlib.patches import Patch

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
    lines = _legend_lines(axes.figure.get_figwidth(), len(handles))
    axes.figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=-(-len(handles) // lines),
        fontsize="small",
        title="a number is the log-probability of all tokens up to there",
        title_fontsize="small",
        frameon=False,
    )

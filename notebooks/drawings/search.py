"""Drawings of the tree of hypotheses of a beam search, and of the greedy path."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from drawings.canvas import title_inches
from drawings.drawing import Box, draw_box, plane, write
from keras_vanilla.decoding import beam_search, greedy_search, trace_search
from keras_vanilla.plots.style import PARTS, shown, style
from keras_vanilla.plots.translation import source_of
from keras_vanilla.tokenizer.piece_names import START, target_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keras_vanilla.translation.translator import Translator

BEST, KEPT, DROPPED, FINISHED = "best", "kept", "dropped", "finished"
GREEDY = "greedy"
MOST_BEAMS = 16
COLUMN, ROW = 1.12, 0.5  # distance between boxes in inches
WIDTH, HEIGHT = 0.92, 0.38  # of a box
LONGEST = 11  # characters of a piece in a box
ENTRY, LINE = 1.75, 0.25  # inches of an entry of the legend


class _Style(NamedTuple):
    """The meaning and the look of a kind of box."""

    meaning: str
    fill: str = "white"
    ink: str = "black"
    edge: str = "black"
    width: float = 1.0  # of the edge
    dashes: str | tuple = "-"

    @property
    def patch(self):
        edge = {"edgecolor": self.edge, "linewidth": self.width}
        return {"facecolor": self.fill, "linestyle": self.dashes, **edge}


STYLES = {
    BEST: _Style("the result", PARTS["decoder"].dark, ink="white"),
    KEPT: _Style("kept and continued"),
    DROPPED: _Style(
        "kept once, then dropped", "white", "#444444", "#666666", 0.9, (0, (4, 2))
    ),
    FINISHED: _Style("ended", width=2.6),
    GREEDY: _Style("greedy search", PARTS["decoder"].light),
}


@dataclass(eq=False)
class Node:
    """A hypothesis of the tree, or a step of the greedy path.

    Args:
        tokens: tuple of int, one per step.
        log_prob: float. Sum over the tokens.
        kind: KEPT, DROPPED (no kept hypothesis continues it), FINISHED or GREEDY.
        best: bool. Whether it is part of the result.
        score: float or None. `log_prob` divided by the length normalization.
    """

    tokens: tuple
    log_prob: float = 0.0
    kind: str = KEPT
    best: bool = False
    score: float | None = None
    row: float = 0
    children: list = field(default_factory=list)

    @property
    def step(self) -> int:
        return len(self.tokens)


@style()
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
        steps: int. Later steps are not drawn, which the title mentions.
    Returns:
        A matplotlib Figure, see `beam_tree`.
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
        title=f"Beam search with {beam_size} beams: {shown(text, longest=60)}",
    )


@style()
def beam_tree(
    result: tuple[np.ndarray, np.ndarray],
    states: list[dict],
    names: Callable[[int], str],
    *,
    greedy: list[dict] | None = None,
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
    nodes = _tree(states, result, steps)
    path = [] if greedy is None else _greedy_path(greedy)
    longest = max(len(states) - 1, len(path))
    if longest > steps:
        title += f" (the first {steps} of {longest} steps)"
    lowest = 1 + max(node.row for node in nodes)
    for node in path:
        node.row = lowest + 0.3
    path = path[:steps]
    axes = _plane(title, [*nodes, *path], lowest + bool(path))
    for node in nodes:
        _draw_node(axes, node, names)
    if path:
        write(axes, 0, -path[0].row * ROW, "greedy:", 10)
    for node in path:
        _draw_node(axes, node, names)
    return axes.figure


def _check_beams(count):
    if count > MOST_BEAMS:
        raise ValueError(
            f"A tree of more than {MOST_BEAMS} beams cannot be read. Received: {count}"
        )


def _tree(states, result, steps):
    """Returns the nodes of the first row of a batch, those of the result first."""
    nodes = {(): Node(())}
    for step, state in enumerate(states[1 : steps + 1], start=1):
        keys = "ids", "log_probs", "lengths", "finished"
        for ids, log_prob, length, finished in zip(
            *(state[key][0] for key in keys), strict=True
        ):
            if length == step and np.isfinite(log_prob):  # others ended before
                tokens = tuple(ids[:step].tolist())
                kind = FINISHED if finished else KEPT
                nodes[tokens] = Node(tokens, float(log_prob), kind)
                nodes[tokens[:-1]].children.append(nodes[tokens])
    ids, scores = result[0][0].tolist(), result[1][0].tolist()
    hypotheses = [*zip(map(tuple, ids), scores, strict=True)]
    for node in nodes.values():
        node.best = hypotheses[0][0][: node.step] == node.tokens
        continues = node.step == steps < len(states) - 1  # the drawing ends here
        if node.kind is KEPT and not node.children and not continues:
            node.kind = DROPPED
        for tokens, score in hypotheses:
            if node.kind is FINISHED and tokens[: node.step] == node.tokens:
                node.score = score
    for node in nodes.values():
        node.children.sort(key=lambda child: (not child.best, -child.log_prob))
    return list(_placed(nodes[()], 0, set()))


def _placed(node, row, occupied):
    """Sets rows so that the best hypothesis is a straight line and none overlap.

    Yields the nodes from the top; `occupied` has the (row, step) of those before.
    """
    chain = [node]
    while chain[-1].children:
        chain.append(chain[-1].children[0])
    last = chain[-1].step + (chain[-1].kind is FINISHED)  # room for its score
    steps = range(node.step, last + 1)
    while any((row, step) in occupied for step in steps):
        row += 1
    occupied.update((row, step) for step in steps)
    for link in chain:
        link.row = row
    yield from chain
    for link in reversed(chain):
        for child in link.children[1:]:
            yield from _placed(child, row + 1, occupied)


def _greedy_path(states):
    """Returns the steps of the first row of a greedy search, until its end."""
    ended = [bool(state["finished"][0]) for state in states[1:]]
    count = 1 + (ended.index(True) if True in ended else len(ended) - 1)
    sums = [float(state["sums"][0]) for state in states[1 : count + 1]]
    tokens = states[count]["ids"][0, :count].tolist()
    return [
        Node(tuple(tokens[:step]), log_prob, GREEDY)
        for step, log_prob in enumerate(sums, start=1)
    ]


def _plane(title, nodes, rows):
    """Creates axes in inches; column c is at x = c * COLUMN, row r at y = -r * ROW."""
    from matplotlib.patches import Patch

    kinds = {BEST, *(node.kind for node in nodes)}
    columns = 1 + max(node.step for node in nodes)
    width = max(6.0, (columns + 0.6) * COLUMN, title_inches(title))
    lines = -(-len(kinds) // max(1, int(width / ENTRY)))
    height = (rows + 0.6) * ROW + 0.65 + LINE * lines
    x, y = (-0.6 * COLUMN, columns * COLUMN), (-rows * ROW, 0.6 * ROW)
    axes = plane(title, width, height, x, y)
    axes.figure.legend(
        handles=[
            Patch(label=look.meaning, **look.patch)
            for kind, look in STYLES.items()
            if kind in kinds
        ],
        loc="outside lower center",
        ncols=-(-len(kinds) // lines),
        fontsize="small",
        title="a number is the log-probability of all tokens up to there",
        title_fontsize="small",
        frameon=False,
    )
    return axes


def _draw_node(axes, node, names):
    """Draws a hypothesis, its score, and lines to those that continue it."""
    name = names(node.tokens[-1]) if node.tokens else START
    kind = BEST if node.best else node.kind
    width = STYLES[FINISHED if node.kind is FINISHED else kind].width
    look = STYLES[kind]._replace(width=width)
    x, y = node.step * COLUMN, -node.row * ROW
    text = f"{shown(name, longest=LONGEST)}\n{node.log_prob:.2f}"
    draw_box(axes, Box(x, y, WIDTH, HEIGHT), text, look.ink, gid=kind, **look.patch)
    left = x + WIDTH / 2
    if node.score is not None:
        write(axes, left + 0.08, y, f"score\n{node.score:.2f}", ha="left", gid="score")
    for child in node.children:
        right, down = child.step * COLUMN - WIDTH / 2, -child.row * ROW
        middle = (left + right) / 2
        axes.plot(
            [left, middle, middle, right],
            [y, y, down, down],
            color=STYLES[child.kind].edge,
            linewidth=2.2 if child.best else 0.9,
            linestyle="--" if child.kind is DROPPED else "-",
            zorder=1,
            gid="link",
        )

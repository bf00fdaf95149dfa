"""The hypotheses of a traced beam search as a tree, and their positions."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

KEPT, DROPPED, FINISHED = "kept", "dropped", "finished"


@dataclass(eq=False)
class Node:
    """A hypothesis of the tree.

    Args:
        tokens: tuple of int, one per step.
        log_prob: float. Sum over the tokens.
        kind: KEPT, DROPPED (no kept hypothesis continues it) or FINISHED.
    """

    tokens: tuple
    log_prob: float
    kind: str = KEPT
    best: bool = False
    score: float | None = None
    row: int = 0
    children: list = field(default_factory=list)

    @property
    def step(self) -> int:
        return len(self.tokens)


def tree(states: list[dict], result: tuple[np.ndarray, np.ndarray], steps: int) -> Node:
    """Returns the start Node of the tree for the first row of a batch.

    Args:
        states: list of dicts, from `trace_search(beam_search, ...)`.
        result: ids (B, n, L) and scores (B, n) of that search.
        steps: int. Later steps are omitted.
    """
    start = Node((), 0.0)
    nodes = {(): start}
    for step, state in enumerate(states[1 : steps + 1], start=1):
        for node in _extended(state, step):
            nodes[node.tokens] = node
            nodes[node.tokens[:-1]].children.append(node)
    for node in nodes.values():
        continues = node.step == steps < len(states) - 1  # the drawing ends here
        if node.kind is KEPT and not node.children and not continues:
            node.kind = DROPPED
    _mark_results(nodes, *result)
    _give_rows(start)
    return start


def walk(node: Node) -> Iterator[Node]:
    """Yields the node and all nodes below it."""
    yield node
    for child in node.children:
        yield from walk(child)


def _extended(state, step):
    """Returns the hypotheses that a step extended, without those that ended before."""
    held = zip(
        state["ids"][0],
        state["log_probs"][0],
        state["lengths"][0],
        state["finished"][0],
        strict=True,
    )
    for ids, log_prob, length, finished in held:
        if length == step and np.isfinite(log_prob):
            tokens = tuple(ids[:step].tolist())
            yield Node(tokens, float(log_prob), FINISHED if finished else KEPT)


def _mark_results(nodes, ids, scores):
    best = tuple(ids[0, 0].tolist())
    for node in nodes.values():
        node.best = best[: node.step] == node.tokens
        node.children.sort(key=lambda child: -child.log_prob)
    for tokens, score in zip(ids[0].tolist(), scores[0].tolist(), strict=True):
        for step in range(1, len(tokens) + 1):
            node = nodes.get(tuple(tokens[:step]))
            if node is not None and node.kind is FINISHED:
                node.score = score


def _give_rows(start):
    """Sets rows so that the best hypothesis is a straight line and none overlap."""
    taken = set()

    def place(node, row):
        chain = [node]
        while chain[-1].children:
            children = chain[-1].children
            children.sort(key=lambda child: not child.best)
            chain.append(children[0])
        last = chain[-1].step + (chain[-1].kind is FINISHED)  # room for its score
        places = range(node.step, last + 1)
        while any((row, step) in taken for step in places):
            row += 1
        taken.update((row, step) for step in places)
        for link in chain:
            link.row = row
        for link in reversed(chain):
            for child in link.children[1:]:
                place(child, row + 1)

    place(start, 0)

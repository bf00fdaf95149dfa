"""The hypotheses of a traced beam search as a tree, and where to draw each."""

from dataclasses import dataclass, field

import numpy as np

KEPT, DROPPED, FINISHED = "kept", "dropped", "finished"


@dataclass(eq=False)
class Node:
    """A hypothesis: the tokens so far, and what became of it.

    Args:
        tokens: tuple of int; as many as the step that made it.
        log_prob: float, the sum over the tokens.
        kind: KEPT, DROPPED (nothing that was kept goes on from it) or FINISHED.
    """

    tokens: tuple
    log_prob: float
    kind: str = KEPT
    best: bool = False
    score: float | None = None
    row: int = 0
    children: list = field(default_factory=list)

    @property
    def step(self):
        return len(self.tokens)


def tree(states, result, steps):
    """The start's Node, of the first row of a batch, with all that came of it.

    Args:
        states: list of dicts, from `trace_search(beam_search, ...)`.
        result: ids (B, n, L) and scores (B, n) of that search.
        steps: int. Later ones are left out.
    """
    start = Node((), 0.0)
    nodes = {(): start}
    for step, state in enumerate(states[1 : steps + 1], start=1):
        for node in _made(state, step):
            nodes[node.tokens] = node
            nodes[node.tokens[:-1]].children.append(node)
    for node in nodes.values():
        goes_on = node.step == steps < len(states) - 1  # where the drawing ends
        if node.kind is KEPT and not node.children and not goes_on:
            node.kind = DROPPED
    _mark_results(nodes, *result)
    _give_rows(start)
    return start


def walk(node):
    """The node and all that came of it."""
    yield node
    for child in node.children:
        yield from walk(child)


def _made(state, step):
    """The hypotheses of a state that its step made: not those that ended before."""
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
    for found, score in zip(ids[0].tolist(), scores[0].tolist(), strict=True):
        for step in range(1, len(found) + 1):
            node = nodes.get(tuple(found[:step]))
            if node is not None and node.kind is FINISHED:
                node.score = score


def _give_rows(start):
    """Rows so that the best lies straight and no two hypotheses share a place."""
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

"""Formulas as MathML, which browsers draw themselves: no script, no fonts."""

import re

from docutils import nodes
from docutils.utils.math import latex2mathml

# docutils takes the index after an accent for a limit, as below a sum: it gets `{}_j`.
ACCENT = re.compile(r"\\(hat|bar|tilde|vec)\s*(\{[^{}]*\}|[A-Za-z])(?=\s*[_^])")


def mathml(node, as_block=False):
    """The MathML of a formula."""
    formula = ACCENT.sub(r"\\\1 \2{}", node.astext())
    return latex2mathml.tex2mathml(formula, as_block=as_block)


def visit_inline(translator, node):
    """Writes a formula in a line."""
    translator.body.append(mathml(node))
    raise nodes.SkipNode


def visit_block(translator, node):
    """Writes a formula of its own."""
    formula = mathml(node, as_block=True)
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    """Registers the extension."""
    inline, block = (visit_inline, None), (visit_block, None)
    app.add_html_math_renderer("mathml", inline, block)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Formulas as MathML, which browsers draw themselves: no script, no fonts."""

from docutils import nodes
from docutils.utils.math import latex2mathml


def visit_inline(translator, node):
    """Writes a formula in a line."""
    translator.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(translator, node):
    """Writes a formula of its own."""
    formula = latex2mathml.tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    """Registers the extension."""
    inline, block = (visit_inline, None), (visit_block, None)
    app.add_html_math_renderer("mathml", inline, block)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

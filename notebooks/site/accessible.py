"""What the theme's pages lack for screen readers."""

import re

# Patterns in a page, and what they become.
CHANGES = [
    # The captions of the sidebar, and rubrics.
    (r'role="heading"(?![^>]*aria-level)', r'role="heading" aria-level="2"'),
    # The corner of a table that has names of rows.
    (r'<th class="head">(?:<p></p>)?</th>', r"<td></td>"),
    # The lines of a long signature, which are no definitions.
    (r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>", r'<span class="sig-lines">\n\1</span>'),
    (
        r"<dd>(<(?:em|span) class=\"(?:sig-|keyword-only|positional).*)</dd>",
        r"<span>\1</span>",
    ),
    # Both sidebars are landmarks.
    (
        r'<aside class="sidebar-drawer"',
        r'<aside aria-label="All pages" class="sidebar-drawer"',
    ),
    (r'<aside class="toc-drawer', r'<aside aria-label="This page" class="toc-drawer'),
]


def complete(app, exception):
    """Changes each written page."""
    if exception or app.builder.format != "html":
        return
    for path in app.outdir.rglob("*.html"):
        if path.is_relative_to(app.outdir / "live"):
            continue
        page = path.read_text(encoding="utf-8")
        for pattern, change in CHANGES:
            page = re.sub(pattern, change, page)
        path.write_text(page, encoding="utf-8")


def setup(app):
    """Registers the extension."""
    app.connect("build-finished", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

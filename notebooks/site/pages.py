"""Pages whose files are anywhere in the repository, and the links between them."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from sphinx import addnodes
from sphinx.project import Project


class SitePages(Project):
    """The pages of the site: their names are addresses, their files are anywhere.

    Args:
        srcdir: path of the repository.
        source_suffix: as in conf.py.
        files: dict of each page's name and the path of its file in the repository.
    """

    def __init__(self, srcdir, source_suffix, files):
        super().__init__(srcdir, source_suffix)
        self.files = {name: Path(file) for name, file in files.items()}
        self.names = {file: name for name, file in self.files.items()}

    def discover(self, exclude_paths=(), include_paths=("**",)):
        self.docnames.clear()
        self.docnames.update(self.files)
        return self.docnames

    def path2doc(self, filename):
        path = Path(filename)
        if path.is_relative_to(self.srcdir):
            path = path.relative_to(self.srcdir)
        return self.names.get(path)

    def doc2path(self, docname, absolute):
        path = self.files.get(docname, Path(f"{docname}.md"))
        if absolute:
            return self.srcdir / path
        # The search index names it: no path of the machine that builds.
        return Path(f"{docname}{path.suffix}") if path.is_absolute() else path


def use_site_pages(app):
    """Gives Sphinx the pages of conf.py instead of all files of a folder."""
    files = app.config.site_pages
    app.project = SitePages(app.srcdir, app.config.source_suffix, files)
    app.env.project = app.project


def resolve_links(app, doctree):
    """Changes the links that lead elsewhere on the code host than in the site."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link["reftype"] != "myst":
            continue
        page = app.project.doc2path(link["refdoc"], absolute=True)
        if link["refdomain"] is None:
            if (page.parent / link["reftarget"]).is_dir():
                link.replace_self(link.children)  # the site has no page of a folder
                continue
            if page.suffix == ".ipynb":  # to a heading of the same notebook
                link["refdomain"], link["reftargetid"] = "doc", link["reftarget"]
                link["reftarget"] = link["refdoc"]
        if link["refdomain"] == "doc":
            file = app.project.doc2path(link["reftarget"], absolute=False)
            if file.suffix == ".ipynb" and link["reftargetid"]:
                link["reftargetid"] = heading_slug(link["reftargetid"])


def embed_attachments(app, doctree):
    """Gives each picture inside a notebook's text cell its bytes."""
    images = [i for i in doctree.findall(nodes.image) if "attachment:" in i["uri"]]
    if images:
        cells = notebook_cells(app)
        attached = [cell["attachments"] for cell in cells if "attachments" in cell]
        files = {name: types for each in attached for name, types in each.items()}
        for image in images:
            name = image["uri"].rpartition("attachment:")[2]
            ((kind, content),) = files[name].items()
            image["uri"] = f"data:{kind};base64,{content}"


def describe_pictures(app, doctree):
    """Gives each picture of a notebook's outputs its alternative text.

    An output has a picture of each of its kinds, of which the builder takes one.
    """
    cells = notebook_cells(app)
    if cells is None:
        return
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    texts = [
        "".join(output["data"]["text/plain"])
        for output in outputs
        for kind in output.get("data", ())
        if kind.startswith("image/")
    ]
    images = [i for i in doctree.findall(nodes.image) if not is_attached(i)]
    for image, text in zip(images, texts, strict=True):
        image["alt"] = text


def notebook_cells(app):
    """The cells of the page that is read, or None if it is not a notebook."""
    path = app.project.doc2path(app.env.docname, absolute=True)
    if path.suffix != ".ipynb":
        return None
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def is_attached(image):
    """True if a picture is of a text cell, not of an output."""
    return image["uri"].startswith("data:")


def heading_slug(anchor):
    """The slug of a heading, of its anchor in Jupyter: `Why,-X%3F` -> `why-x`."""
    return re.sub(r"[^\w\- ]", "", unquote(anchor).lower())


def setup(app):
    """Registers the extension."""
    app.add_config_value("site_pages", {}, "env", dict)
    app.connect("builder-inited", use_site_pages, priority=900)
    app.connect("doctree-read", resolve_links)
    app.connect("doctree-read", embed_attachments, priority=100)
    app.connect("doctree-read", describe_pictures, priority=200)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

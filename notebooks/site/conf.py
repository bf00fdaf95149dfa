"""The documentation as a site: Sphinx's configuration.

Each page is a file of the repository as it stands. What is written here alone is
the home page and the list of the pages; README.md beside this file has the command.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The parts of the site beside this file, and the package whose docstrings are read.
sys.path[:0] = [str(HERE), str(ROOT)]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from keras_vanilla._version import __version__  # noqa: E402

project = "keras_vanilla"
version = release = __version__
copyright = "the authors of keras_vanilla, Apache License 2.0"

include_patterns = []  # `site_pages` below has them
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "accessible",
    "pages",
    "reference",
    "formulas",
    "live_translator",
]

# Each page of the site, and its file. Links between the files become links between
# the pages. A guide that index.md does not name comes last in its list; another page
# that it does not name is an error.
guides = {
    "guides/overview": "README.md",
    "guides/architecture": "keras_vanilla/README.md",
    "guides/exported-files": "export/README.md",
    "guides/web": "export/web/README.md",
    "guides/pretrained-en-fr": "keras_vanilla/pretrained/en-fr/README.md",
    "guides/recipes": "notebooks/recipes.md",
    "guides/tests": "tests/README.md",
    "guides/site": "notebooks/site/README.md",
    "notebooks/index": "notebooks/README.md",
    "results": "tests/benchmarks/README.md",
    "changelog": "CHANGELOG.md",
}
guides |= {
    f"guides/{path.parent.name}": str(path.relative_to(ROOT))
    for path in ROOT.glob("keras_vanilla/*/README.md")
}
notebooks = {
    f"notebooks/{path.stem}": str(path.relative_to(ROOT))
    for path in ROOT.glob("notebooks/*.ipynb")
}
site_pages = {"index": "notebooks/site/index.md", **guides, **notebooks}

# Markdown, as the code host reads it.
myst_heading_anchors = 6
myst_enable_extensions = ["dollarmath"]
highlight_language = "text"

# The notebooks are shown with the outputs that are committed.
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # no widgets, and nothing from another host
nb_merge_streams = True

# Docstrings.
default_role = "name"  # of reference.py
autodoc_typehints = "none"  # the arguments' descriptions begin with the types
autodoc_inherit_docstrings = False  # those of Keras are in its documentation
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [
    ("Call arguments", "params_style"),
    ("Attributes", "params_style"),
    ("Fields", "params_style"),
    "Source",
]
maximum_signature_line_length = 72
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"keras_vanilla {version}"
html_favicon = "../../keras_vanilla/web/page/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"  # of formulas.py

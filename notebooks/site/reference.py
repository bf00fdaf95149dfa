"""The reference: a page for each public module, written from the package itself."""

import argparse
import importlib
import inspect
import os
import pkgutil
import re
from types import ModuleType

from docutils import nodes
from docutils.parsers.rst import roles
from sphinx import addnodes
from sphinx.util import inspect as sphinx_inspect

import keras_vanilla
from keras_vanilla.cli import parser

# Whose members are those of Keras and Python; a class of ours shows its own and those
# of its bases below these.
FOREIGN = (
    "Layer, Model, Functional, Loss, Metric, Callback, LearningRateSchedule, "
    "Exception, BaseException, Protocol, Generic, tuple, object"
)
SECTION = re.compile(r"[A-Z][a-z]+( [a-z]+)?:$")


def public_modules():
    """The public modules of the package, by their names in it."""
    attributes = {name: getattr(keras_vanilla, name) for name in keras_vanilla.__all__}
    return {n: a for n, a in attributes.items() if isinstance(a, ModuleType)}


def public_names(module):
    """The public names of a module, each with the module that it is documented in.

    They are those in `__all__`, or else the functions and classes that the module
    defines, or else those that its modules define.
    """
    if hasattr(module, "__all__"):
        return [(module.__name__, name) for name in sorted(module.__all__)]
    paths = getattr(module, "__path__", [])
    prefix = f"{module.__name__}."
    below = [
        importlib.import_module(found.name)
        for found in pkgutil.iter_modules(paths, prefix)
    ]
    return defined_in(module) or [pair for each in below for pair in defined_in(each)]


def defined_in(module):
    """The public functions and classes that a module defines."""
    return [
        (module.__name__, name)
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]


def title(text):
    """The title of a page."""
    return f"{text}\n{'=' * len(text)}\n"


def module_page(module):
    """The page of a module: what it is, a table of its names, and each of them."""
    names = public_names(module)
    lines = [title(module.__name__), f".. automodule:: {module.__name__}\n"]
    lines += [f".. currentmodule:: {module.__name__}\n"]
    lines += [".. autosummary::", "   :nosignatures:\n"]
    prefix = f"{module.__name__}."
    lines += [f"   {f'{home}.{name}'.removeprefix(prefix)}" for home, name in names]
    lines += [""]
    for home, name in names:
        value = getattr(importlib.import_module(home), name)
        lines.append(f".. {directive(value)}:: {home}.{name}")
        if inspect.isclass(value):
            lines += ["   :members:", f"   :inherited-members: {FOREIGN}"]
            if value.__bases__ != (object,):
                lines.append("   :show-inheritance:")
        lines.append("")
    return "\n".join(lines)


def directive(value):
    """The directive that documents a value."""
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, Exception) else "autoclass"
    return "autofunction" if callable(value) else "autodata"


def first_page(modules):
    """The page of the package: its own names, and a table of its modules."""
    lines = [title("Reference"), ".. automodule:: keras_vanilla\n"]
    lines += ["Modules\n-------\n", ".. list-table::", "   :widths: 30 70\n"]
    for name, module in modules.items():
        lines.append(f"   * - :doc:`{name} <{name}>`")
        lines.append(f"     - {module.__doc__.splitlines()[0]}")
    lines.append("   * - :doc:`command-line`")
    lines.append("     - The command ``keras-vanilla``, with all of its options.")
    lines += ["", "Names of the package\n--------------------\n"]
    for name in keras_vanilla.__all__:
        value = getattr(keras_vanilla, name)
        if inspect.isclass(value):
            home = value.__module__.rpartition(".")[0]
            lines.append(f".. py:class:: {name}")
            lines += ["   :no-index-entry:", f"\n   The same as `{home}.{name}`.\n"]
        elif callable(value):
            lines.append(f".. autofunction:: keras_vanilla.{name}\n")
        elif not isinstance(value, ModuleType):
            lines.append(f".. py:data:: {name}\n")
            lines.append("   The version of the package, a str.\n")
    lines += [".. toctree::", "   :hidden:\n"]
    lines += [f"   {name} <{name}>" for name in modules]
    lines += ["   command line <command-line>", ""]
    return "\n".join(lines)


def command_page():
    """The page of the command line: what each command says of itself."""
    os.environ["COLUMNS"] = "80"
    every = parser()
    lines = [title("The command line"), help_of(every)]
    (commands,) = (
        a for a in every._actions if isinstance(a, argparse._SubParsersAction)
    )
    for name, command in commands.choices.items():
        heading = f"keras-vanilla {name}"
        lines += [f"{heading}\n{'-' * len(heading)}\n", help_of(command)]
    return "\n".join(lines)


def help_of(command):
    """A command's help as a block of text."""
    text = command.format_help()
    return ".. code-block:: text\n\n" + "".join(
        f"   {line}\n" if line else "\n" for line in text.splitlines()
    )


def write_reference(app):
    """Writes the pages beside Sphinx's own files, and adds them to the site."""
    modules = public_modules()
    pages = {name: module_page(module) for name, module in modules.items()}
    pages |= {"index": first_page(modules), "command-line": command_page()}
    folder = app.doctreedir / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        app.config.site_pages[f"reference/{name}"] = path


def restructured(app, what, name, value, options, lines):
    """Turns a docstring's blocks of code and formulas into what Sphinx reads as such.

    An indented block after an empty line is a formula or a table; an example without
    prompts is code; "Source: ..." is a section.
    """
    result, section, block = [], None, None  # block: indentation of the text before it
    before, is_first = "", False  # the last line with text; whether a block begins here
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        indentation = indented(line)
        if line and block is not None and indentation <= block:
            block = None
        if line and not indentation:
            section = line if SECTION.match(line) and following[:1] == " " else None
            if line.startswith("Source: "):
                result += ["", "Source:"]
                line, section = line.removeprefix("Source: "), "Source:"
        is_first = bool(line) and line != section and block is None
        if is_first and section == "Example:" == before:
            if ">>>" not in line:
                result += ["    .. code-block:: python", ""]
                block = 0
        elif is_first and not lines[number - 1] and indentation > indented(before):
            block = indented(before)
            result += [f"{' ' * block}.. code-block:: text", ""]
        deeper = block == 0 and section is not None or section == "Source:"
        result.append(f"    {line}" if line and deeper else line)
        before = line or before
    lines[:] = result


def indented(line):
    """The number of spaces at the beginning of a line."""
    return len(line) - len(line.lstrip())


def constructor_signature(app, what, name, value, options, signature, returned):
    """The signature of a class's constructor, also of one that it inherits.

    Keras's classes have a `__new__` that takes anything, which Sphinx would show.
    """
    if what not in ("class", "exception") or not inspect.isclass(value):
        return None
    if "__init__" not in vars(value) and "__new__" in vars(value):
        return None  # a NamedTuple
    if value.__init__ in (object.__init__, Exception.__init__):
        return None
    found = sphinx_inspect.signature(value.__init__, bound_method=True)
    return sphinx_inspect.stringify_signature(found, show_annotation=False), None


def skipped(app, what, name, value, skip, options):
    """Shows what the package itself says of a member, and `call` in any case.

    Left out are the members that Keras and Python define, those without a word, and
    those of Keras that a class refuses.
    """
    function = getattr(value, "fget", None) or getattr(value, "__func__", value)
    home = getattr(inspect.unwrap(function), "__module__", None) or ""
    is_code = inspect.isroutine(function) or inspect.isclass(function)
    if is_code and not home.startswith("keras_vanilla"):
        return True
    if name == "call":
        return False
    text = getattr(function, "__doc__", None) or ""
    empty = "Alias for field number", "Not available"
    return True if not text or text.startswith(empty) else None


def name_role(role, raw, text, line, inliner, options=None, content=None):
    """`text` of a docstring: code, and a link where the reference has the name."""
    code = nodes.literal(raw, text)
    if not re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", text):
        return [code], []
    context = inliner.document.settings.env.ref_context
    link = addnodes.pending_xref(
        raw,
        code,
        refdomain="py",
        reftype="obj",
        reftarget=text,
        refdoc=inliner.document.settings.env.docname,
        refwarn=False,
        **{name: context.get(name) for name in ("py:module", "py:class")},
    )
    return [link], []


def without_source(app, doctree):
    """Takes the names of the package itself from viewcode: their classes are there."""
    if app.env.docname == "reference/index":
        for signature in doctree.findall(addnodes.desc_signature):
            signature["module"] = None


def resolve_short_name(app, env, node, contnode):
    """The link of `Class.method`, wherever the class is, if there is only one."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target[:1].isupper():
        return None
    domain = env.domains.python_domain
    found = [
        name
        for name, entry in domain.objects.items()
        if name.endswith(f".{target}") and not entry.aliased
    ]
    found = [n for n in found if n.count(".") > target.count(".") + 1]  # no alias
    if len(found) != 1:
        return None
    entry = domain.objects[found[0]]
    uri = app.builder.get_relative_uri(node["refdoc"], entry.docname)
    return nodes.reference(
        "", "", contnode, refuri=f"{uri}#{entry.node_id}", internal=True
    )


def setup(app):
    """Registers the extension."""
    roles.register_local_role("name", name_role)
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", restructured, priority=100)
    app.connect("autodoc-process-signature", constructor_signature)
    app.connect("autodoc-skip-member", skipped)
    app.connect("doctree-read", without_source, priority=100)
    app.connect("missing-reference", resolve_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

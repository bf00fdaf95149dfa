"""The notebooks run, print the same again, and have what their table lists."""

import base64
import io
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NAMES = [
    "1_attention",
    "2_layers_and_positions",
    "3_training",
    "4_looking_inside",
    "5_to_the_phone",
]
LARGEST = 1_500_000  # bytes
WIDEST = 900  # pixels of a picture
PICTURES = {"image/png", "image/svg+xml"}
INSTALLED = {  # by the extra `notebooks`
    "IPython",
    "ai_edge_litert",
    "drawings",  # beside the notebooks
    "keras",
    "keras_vanilla",
    "keras_vanilla_cli",
    "numpy",
    "tensorflow",
    "tensorflow_text",
    "tornado",  # Jupyter's own
}
NUMBERS = range(1, 62)  # of what the usual tutorials contain
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| \[[^]]+\]\((\w+)\.ipynb#([^)]+)\) \|$", re.M)
SOLUTION = re.compile(
    r"<details>\n<summary>Solution</summary>\n\n```python\n(.+?)\n```\n\n.+\n\n</details>\Z",
    re.DOTALL,
)
SANITISER = "nbconvert.preprocessors.sanitize.SanitizeHTML"
OF_ONE_MACHINE = re.compile(r"/(?:home|root|work|tmp|Users)/|site-packages")


def nbformat():
    """The package, whose import takes seconds."""
    return pytest.importorskip("nbformat", reason="no Jupyter is installed")


def notebook(name):
    return nbformat().read(FOLDER / f"{name}.ipynb", as_version=4)


def code(cells):
    return [cell for cell in cells if cell.cell_type == "code"]


def exercises(name):
    """The cells of exercises; each holds its solution, which readers unfold."""
    return [c for c in notebook(name).cells if "exercise" in c.metadata.get("tags", ())]


def to_run(name):
    """A notebook with less to compute, and with the exercises' solutions as cells.

    A cell's metadata `fast` says which of its parts is replaced by what.
    """
    run = notebook(name)
    cells = []
    for cell in run.cells:
        for usual, fast in cell.metadata.get("fast", ()):
            assert cell.source.count(usual) == 1, (usual, cell.source)
            cell.source = cell.source.replace(usual, fast)
        cells.append(cell)
        if "exercise" in cell.metadata.get("tags", ()):
            solution = SOLUTION.search(cell.source)[1]
            cells.append(nbformat().v4.new_code_cell(solution))
    run.cells = cells
    return run


def printed(cell):
    """All text that a cell put out, but for warnings and pictures' names."""
    texts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if output.get("name") != "stderr" and not PICTURES & set(data):
            texts.append(output.get("text", "") or data.get("text/plain", ""))
    return "".join(texts)


def heading(cell):
    """The heading that a section's first cell begins with, as a link names it."""
    match = re.match(r"#+ (.+)", cell.source) if cell.cell_type == "markdown" else None
    return match and match[1].strip().replace(" ", "-")


def sections(name):
    """Each section's heading: its cells, the heading's first."""
    cells = {}
    for cell in notebook(name).cells:
        if heading(cell):
            assert heading(cell) not in cells
            cells[heading(cell)] = []
        if cells:
            list(cells.values())[-1].append(cell)
    return cells


def table():
    """(number, notebook, section) of each row of the table in the folder's README."""
    rows = ROW.findall((FOLDER / "README.md").read_text(encoding="utf-8"))
    return [(int(number), name, unquote(section)) for number, name, section in rows]


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs_and_prints_the_same(name, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="no Jupyter is installed")
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    committed, run = notebook(name), to_run(name)
    for cell in code(run.cells):
        cell.outputs = []
    shutil.copytree(FOLDER / "drawings", tmp_path / "drawings")
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        run, timeout=600, kernel_name="python3", resources=where
    ).execute()
    exact, after_run = 0, {cell.id: cell for cell in run.cells}
    for before in code(committed.cells):
        after = after_run[before.id]
        if "exact" in before.metadata.get("tags", ()):
            exact += 1
            assert printed(after) == printed(before), after.source
    assert exact >= 1
    assert os.listdir(tmp_path) == ["drawings"]  # nothing else is left


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_committed_as_it_ran(name):
    cells = code(notebook(name).cells)
    counts = [cell.execution_count for cell in cells]
    assert counts == list(range(1, len(cells) + 1))
    assert (FOLDER / f"{name}.ipynb").stat().st_size < LARGEST
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.text
            # A page of the server that a cell starts is gone when its output is read.
            assert "<iframe" not in str(output.get("data", {}).get("text/html"))
        assert not OF_ONE_MACHINE.search(printed(cell)), printed(cell)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_imports_what_extra_installs(name):
    source = "\n".join(cell.source for cell in code(notebook(name).cells))
    imported = re.findall(r"^ *(?:import|from) (\w+)", source, re.MULTILINE)
    assert set(imported) - set(sys.stdlib_module_names) <= INSTALLED


def pictures(name):
    """(cell's id, data, metadata) of each picture that a notebook has put out."""
    for cell in code(notebook(name).cells):
        for output in cell.outputs:
            if PICTURES & set(output.get("data", {})):
                yield cell.id, output.data, output.metadata


@pytest.mark.parametrize("name", NAMES)
def test_pictures_have_width_and_alternative_text(name):
    for id_, data, metadata in pictures(name):
        if "image/svg+xml" in data:
            svg, alt = data["image/svg+xml"], metadata["image/svg+xml"]["alt"]
            assert float(re.search(r'<svg [^>]*\bwidth="(\d+)"', svg)[1]) <= WIDEST, id_
            assert "<title>" in svg and data["text/plain"] == alt
            assert metadata["image/png"]["alt"] == alt, id_
        else:
            image = pytest.importorskip("PIL.Image").open(
                io.BytesIO(base64.b64decode(data["image/png"]))
            )
            assert image.width <= WIDEST, id_
            assert image.mode in ("RGB", "RGBA") or len(image.getcolors()) > 128, id_
            alt = metadata["image/png"]["alt"]
        assert len(alt) > 20, id_


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_pictures_remain_where_svg_is_dropped(name):
    nbconvert = pytest.importorskip("nbconvert", reason="no Jupyter is installed")
    exporter = nbconvert.HTMLExporter()
    exporter.register_preprocessor(SANITISER, enabled=True)
    page, _ = exporter.from_notebook_node(notebook(name))
    tags = re.findall(r"<img[^>]+>", page)
    shown = [tag for tag in tags if 'src="data:image/png;base64,' in tag]
    alternatives = [re.search(r'alt="(.+?)"', tag, re.DOTALL)[1] for tag in shown]
    assert len([alt for alt in alternatives if len(alt) > 20]) >= len([*pictures(name)])
    assert not any("image/svg+xml" in tag for tag in tags)


def test_pictures_have_white_ground(monkeypatch):
    pytest.importorskip("matplotlib", reason="of the extra notebooks")
    image = pytest.importorskip("PIL.Image")
    monkeypatch.syspath_prepend(FOLDER)
    from drawings.curves import curves
    from drawings.picture import png, svg

    figure = curves([0, 1], {"a": [0, 1]}, title="a line", x_axis="x", y_axis="y")
    drawn = image.open(io.BytesIO(png(figure)))
    assert drawn.width <= WIDEST and drawn.convert("RGB").getpixel((0, 0)) == (255,) * 3
    assert "fill: #ffffff" in svg(figure)


def test_table_has_every_number():
    assert sorted({number for number, _, _ in table()}) == list(NUMBERS)


@pytest.mark.parametrize("name", NAMES)
def test_table_names_computed_sections(name):
    promised = {}
    for number, where, section in table():
        if where == name:
            promised.setdefault(section, set()).add(number)
    by_section = sections(name)
    held = {
        section: set(cells[0].metadata["catalogue"])
        for section, cells in by_section.items()
        if "catalogue" in cells[0].metadata
    }
    assert held == promised
    for section in promised:
        assert any(cell.outputs for cell in code(by_section[section])), section

"""Names along axes that can be read: fonts, room, and what is no formula."""

import os
import subprocess
import sys

import numpy as np
import pytest

from keras_vanilla.plots import canvas as canvas_module
from keras_vanilla.plots.canvas import canvas, fonts_for, name_ticks, shown


def names_drawn(count, inches=4.0, names=None):
    _, axes = canvas(width=inches, height=inches)
    axis = axes[0, 0].xaxis
    axis.set_label_text("key")
    name_ticks(axis, names or [f"w{i}" for i in range(count)], inches)
    return axis, [label.get_text() for label in axis.get_ticklabels()]


def test_without_matplotlib_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[notebooks\]"'):
        canvas()


PROGRAM = """
import sys
from keras_vanilla.plots import canvas, heat_map

heat_map([[1]], title="t", x_axis="x", y_axis="y").savefig(sys.argv[1])
print(*canvas._fonts(), sep="\\n")
"""


@pytest.mark.full
def test_a_program_needs_no_display_and_sees_no_font_of_this_machine(tmp_path):
    # A backend with a window, and no screen to open it on.
    environment = {**os.environ, "MPLBACKEND": "tkagg"}
    environment.pop("DISPLAY", None)
    picture = tmp_path / "picture.png"
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, picture],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert child.stdout.splitlines() == list(map(str, canvas_module._fonts()))


def test_few_names_are_all_written():
    axis, names = names_drawn(12)
    assert names == [f"w{i}" for i in range(12)]
    assert axis.get_label_text() == "key"


def test_of_many_names_some_are_written_with_their_number_and_the_axis_says_so():
    axis, names = names_drawn(300, inches=9.0)
    assert names[:3] == ["0 w0", "5 w5", "10 w10"] and len(names) == 60
    assert axis.get_label_text() == "key (one of 5 named)"


@pytest.mark.parametrize("count", [1, 2, 17, 26, 27, 299, 10_000])
def test_written_names_have_room(count):
    _, names = names_drawn(count, inches=4.0)
    assert 1 <= len(names) <= 4.0 / canvas_module.NAME_INCHES


def test_a_long_name_ends_in_an_ellipsis():
    assert shown("x" * 24) == "x" * 24
    assert shown("x" * 25) == "x" * 23 + "…"


def test_dollars_are_no_formula():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure, axes = canvas(title="$x$ costs $\\frac$ more")
    name_ticks(axes[0, 0].yaxis, ["$5", "a$b$c", "$\\frac$"], 4.0)
    FigureCanvasAgg(figure).draw()  # a formula that cannot be read would raise


def test_what_cannot_be_seen_is_named():
    assert shown("a\nb\tc\x00") == "a⏎b<09>c<00>"


def test_scripts_that_the_first_font_has_need_no_other():
    assert fonts_for("▁Straße عربي עברית ⁇\n") == ["DejaVu Sans"]


def test_characters_that_no_font_has_are_named_and_told_apart(monkeypatch):
    first = canvas_module._fonts()[:1]
    monkeypatch.setattr(canvas_module, "_fonts", lambda: first)
    canvas_module.font_of.cache_clear()
    with pytest.warns(UserWarning, match="No font on this machine can show '动物'"):
        assert shown("动物 a") == "<52A8><7269> a"
    canvas_module.font_of.cache_clear()


def test_a_font_that_has_the_characters_is_found(monkeypatch):
    first = canvas_module._fonts()[0]
    known = {first[1]: frozenset(map(ord, "ab")), "/second": frozenset(map(ord, "动"))}
    monkeypatch.setattr(canvas_module, "_fonts", lambda: [first, ("Song", "/second")])
    monkeypatch.setattr(canvas_module, "_characters", known.get)
    canvas_module.font_of.cache_clear()
    assert fonts_for("ab 动") == ["DejaVu Sans", "Song"]
    assert shown("动") == "动"
    canvas_module.font_of.cache_clear()


def test_a_picture_takes_the_fonts_that_its_texts_need_unless_one_was_chosen():
    figure, axes = canvas(title="a title")
    name_ticks(axes[0, 0].yaxis, ["plain", "Ⓣ"], 4.0)
    chosen = figure.text(0.1, 0.1, "T", fontfamily=["serif"])
    figure.draw_without_rendering()
    plain, other = (label.get_fontfamily() for label in axes[0, 0].get_yticklabels())
    assert plain == figure._suptitle.get_fontfamily() == ["DejaVu Sans"]
    assert other == ["DejaVu Sans", "STIXGeneral"]  # matplotlib brings both
    assert chosen.get_fontfamily() == ["serif"]


def test_the_tests_see_no_font_of_this_machine():
    import matplotlib

    own = matplotlib.get_data_path()
    assert all(path.startswith(own) for _, path in canvas_module._fonts())


def test_the_font_of_boxes_is_never_taken():
    assert all("Last Resort" not in family for family, _ in canvas_module._fonts())


def test_right_to_left_text_is_drawn_from_the_right():
    """The picture of a text and of its mirrored order differ only by the order."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    def drawn(text):
        figure, axes = canvas(width=3, height=1)
        axes[0, 0].set_axis_off()
        figure.text(0.1, 0.4, text)
        picture = FigureCanvasAgg(figure)
        picture.draw()
        return np.asarray(picture.buffer_rgba())[..., 0]

    forward, overridden = drawn("אב"), drawn("\u202dבא\u202c")
    np.testing.assert_array_equal(forward, overridden)

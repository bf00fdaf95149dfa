"""The callers in `export/`, run without TensorFlow, and what their guide says."""

import concurrent.futures
import hashlib
import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import echo_file
import pytest

from keras_vanilla.cli import parser
from keras_vanilla.export.metadata.description import Description, model_card
from keras_vanilla.export.metadata.flatbuffer import unpacked, with_description

FOLDER = Path(__file__).resolve().parents[2] / "export"
GUIDE = (FOLDER / "README.md").read_text(encoding="utf-8")
TEXTS = [
    "Ein Hund rennt 37.",
    "",
    "   ",
    "Grüße,\t猫!",
    "\u00e9" * 65,
    "a\0b",
    "Hund\0\0",
    "\0",
    "x y " * 32,
    "Ein Hund rennt 37. " * 6 + "Hund rennt. Hund!",
    "x" * 132,
    "\u00e9" * 66,
]
SHARES = [0.001, 0.1, 0.5, 0.9, 0.99, 0.9999]
EACH = """
import json, sys
from {module} import Translator

translate = Translator(sys.argv[1])
for text in json.load(sys.stdin):
    try:
        answer = translate(text).text
    except ValueError as error:
        answer = {{"error": str(error)}}
    print(json.dumps(answer))
"""
# What is put before a program; a name that is None cannot be imported.
ALONE = """
import runpy, sys
sys.modules.update(tensorflow=None, keras=None, keras_vanilla=None)
"""
OPEN_ALL = """
import sys
from {module} import Translator

for path in sys.argv[1:]:
    try:
        Translator(path)
    except ValueError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("echo") / "translator.tflite"
    path.write_bytes(echo_file.content())
    return path


def described_echo(end_id=echo_file.END_ID):
    """The echo's bytes with a description."""
    sizes = {"max_bytes": 131, "max_source_tokens": 40, "max_output_tokens": 40}
    description = Description(name="echo", parameters=0, end_id=end_id, **sizes)
    return with_description(unpacked(echo_file.content()), description)


@pytest.fixture(params=["translate", "translate_compiled"])
def module(request, monkeypatch):
    """A caller, imported as an app imports it."""
    monkeypatch.syspath_prepend(FOLDER / "python")
    return importlib.import_module(request.param)


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    path = tmp_path_factory.mktemp("described") / "echo.tflite"
    path.write_bytes(described_echo())
    return path


def run(program, *arguments, **options):
    """The result of a program in the folder of the callers."""
    return subprocess.run(
        [sys.executable, "-c", ALONE + program, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        cwd=FOLDER / "python",
        timeout=600,
        **options,
    )


def translate(*arguments, **options):
    program = "runpy.run_path('translate.py', run_name='__main__')"
    return run(program, *arguments, **options)


def said_to_each_text(module, file):
    result = run(EACH.format(module=module), file, input=json.dumps(TEXTS))
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.full
def test_both_runtimes_translate_or_refuse_without_tensorflow(file):
    answers = said_to_each_text("translate", file)
    assert answers == said_to_each_text("translate_compiled", file)
    said = dict(zip(TEXTS, answers, strict=True))
    assert said["Ein Hund rennt 37."] == "Ein Hund rennt 37."
    assert said[""] == said["   "] == said["\0"] == ""
    assert said["Grüße,\t猫!"] == "Grüße, 猫!"
    assert said["a\0b"] == "a \u2047 b" and said["Hund\0\0"] == "Hund"
    too_many_tokens = {"error": "A sentence has more tokens than the file takes."}
    assert said["x y " * 32] == too_many_tokens
    for text in ("x" * 132, "\u00e9" * 66):
        assert said[text] == {"error": "A sentence has 132 bytes, at most 131."}


@pytest.mark.full
def test_command_line_translates_arguments_or_lines(file):
    for result in (
        translate(file, "Ein Hund", "", "猫"),
        translate(file, input="Ein Hund\n\n猫"),
    ):
        assert (result.returncode, result.stdout) == (0, "Ein Hund\n\n猫\n")
    result = translate(file, "Hund", "x" * 132, "Ein")
    assert (result.returncode, result.stdout) == (1, "Hund\n")
    last = result.stderr.splitlines()[-1]
    assert last == "A sentence has 132 bytes, at most 131."
    result = translate()
    assert result.returncode == 1 and "python translate.py FILE" in result.stderr


@pytest.mark.full
@pytest.mark.parametrize("module", ["translate", "translate_compiled"])
def test_wrong_file_is_one_sentence(module, tmp_path):
    content, paths = echo_file.content(), []
    for name, part in [
        ("missing", None),
        ("empty", b""),
        ("text", b"Ein Hund rennt."),
        *((f"cut{share}", content[: int(share * len(content))]) for share in SHARES),
    ]:
        paths.append(tmp_path / name)
        if part is not None:
            paths[-1].write_bytes(part)
    result = run(OPEN_ALL.format(module=module), *paths)
    assert result.returncode == 0, result.stderr  # a crash is negative
    assert result.stdout.splitlines() == [
        f"{path} is missing, damaged or no translator." for path in paths
    ]


@pytest.mark.full
def test_examples_of_guide_and_model_card_run(file):
    sizes = {"max_bytes": 131, "max_source_tokens": 40, "max_output_tokens": 40}
    description = Description(name="echo", parameters=0, **sizes)
    card = model_card(description, file.name, file.read_bytes())
    for page, printed in {GUIDE: "Ein Hund rennt.", card: "Text to translate."}.items():
        example, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        example = example.replace('"translator.tflite"', repr(str(file)))
        assert run(example).stdout == f"{printed}\n"


@pytest.mark.full
def test_damaged_files_are_refused_in_a_sentence(tmp_path, monkeypatch):
    """Bits changed and ends cut off, of files with a checksum; every place is tried."""
    monkeypatch.syspath_prepend(FOLDER / "python")
    translate = importlib.import_module("translate")
    whole = described_echo()
    path = tmp_path / "echo.tflite"
    path.write_bytes(whole)
    assert translate.Translator(path)("Ein Hund").text == "Ein Hund"
    name = whole.index(b"keras_vanilla_sha256")
    for place in range(0, len(whole), len(whole) // 60):
        if name <= place < name + 20:
            continue
        changed = bytearray(whole)
        changed[place] ^= 16
        for content in (changed, whole[:place]):
            path.write_bytes(content)
            with pytest.raises(ValueError) as refused:
                translate.Translator(path)
            expected = f"{path} is missing, damaged or no translator."
            assert str(refused.value) == expected


def test_sentences_and_lines_are_translated_and_joined(module, described):
    translate = module.Translator(described)
    text = "Ein Hund rennt 37. Grüße, 猫!  Hund rennt.\n\nEin Hund\nHund. "
    assert translate(8 * text) == ((8 * text).strip(), False, [], ["unchanged"])
    assert translate(" \n ") == translate("") == ("", False, [], [])
    with pytest.raises(ValueError, match="A sentence has 132 bytes, at most 131."):
        translate("Hund rennt. " + "X" * 132)
    with pytest.raises(ValueError, match="has more tokens than the file takes"):
        translate("x y " * 32)


def test_blank_lines_do_not_run_the_model(module, described, monkeypatch):
    with module.Translator(described) as translate:
        expected = translate("Ein Hund.\n \n\nHund.")
        assert expected.text == "Ein Hund.\n \n\nHund."
        run, texts = translate._run, []
        monkeypatch.setattr(
            translate, "_run", lambda text: texts.append(bytes(text)) or run(text=text)
        )
        assert translate(200 * " \t\n\u3000\n") == ("", False, [], []) and not texts
        assert translate("Ein Hund.\n \n\nHund.") == expected and len(texts) == 2


def test_output_without_end_is_truncated(module, tmp_path):
    path = tmp_path / "echo.tflite"
    for end_id, truncated in [(echo_file.END_ID, False), (77_777, True), (None, False)]:
        path.write_bytes(described_echo(end_id))
        expected = ("Ein Hund. Hund", truncated, [], ["unchanged"])
        assert module.Translator(path)("Ein Hund. Hund") == expected


@pytest.mark.parametrize("text", [None, 7, b"Hund", ["Hund"], object()])
def test_text_of_other_type_is_refused(module, described, text, monkeypatch):
    translate = module.Translator(described)
    marked = importlib.import_module("marked_text")
    for call in (
        translate,
        translate.translate_sentence,
        lambda text: marked.translate_marked(translate, text),
    ):
        with pytest.raises(TypeError, match="^`text` must be a str. Received: "):
            call(text)
    translate.close()
    with pytest.raises(ValueError, match="The translator is closed"):
        translate("Hund")


@pytest.mark.parametrize("threads", [0, 1.5, "2", None])
def test_number_of_threads_is_refused(described, threads, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER / "python")
    translator = importlib.import_module("translate").Translator
    with pytest.raises(ValueError, match=f"`threads` .* Received: {threads!r}"):
        translator(described, threads)
    assert translator(described, 2)("Hund").text == "Hund"


@pytest.mark.parametrize("path", [None, 7, b"translator.tflite", "missing.tflite", "/"])
def test_other_path_is_refused(module, path):
    with pytest.raises(ValueError, match="is missing, damaged or no translator"):
        module.Translator(path)


@pytest.mark.parametrize(
    "threads, calls",
    [(4, 40), pytest.param(8, 300, marks=pytest.mark.full)],
)
def test_each_thread_gets_its_own_translations(module, described, threads, calls):
    translate = module.Translator(described)
    texts = [[f"Hund {n} rennt {c}." for c in range(calls)] for n in range(threads)]
    expected = [list(map(translate, each)) for each in texts]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        received = list(pool.map(lambda each: list(map(translate, each)), texts))
    assert received == expected
    assert [[each.text for each in own] for own in received] == texts


@pytest.mark.full
def test_file_of_8_tokens_marks_cut_outputs(module, short_file, trained_translator):
    translate = module.Translator(short_file)
    words = " ".join(["one", "two", "three", "small"] * 3)
    texts = [words[: 6 * count].strip() for count in range(1, 10)]
    expected = trained_translator.translate(texts, max_length=8)
    ids = trained_translator.search(trained_translator.encode(texts), max_length=8)
    ended = [0, 0]
    for text, translation, row in zip(texts, expected, ids, strict=True):
        result = translate(text)
        is_cut = trained_translator.model.end_id not in row
        assert result[:3] == (translation, is_cut, [])
        ended[result.truncated] += 1
    assert all(ended)
    both = translate("one two. " + "small tree " * 9)
    assert both.truncated and both.text


def test_all_callers_have_the_same_abbreviations():
    package = FOLDER.parent / "keras_vanilla"
    ours = package / "data" / "sentences.py"
    assert (FOLDER / "python" / "sentences.py").read_bytes() == ours.read_bytes()
    blocks = re.findall(r'"""\n([\w\s]+)"""', ours.read_text("utf-8"))
    assert len(blocks) == 3
    for caller in (
        FOLDER / "android" / "Sentences.kt",
        FOLDER / "ios" / "Sentences.swift",
        package / "web" / "page" / "sentences.js",
    ):
        words = " ".join(caller.read_text("utf-8").split())
        assert all(f" {' '.join(block.split())} " in words for block in blocks)


@pytest.mark.full
def test_download_of_guide_keeps_whole_file(described, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER / "python")
    _, example = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    names = {}
    exec(example, names)
    content, path = described.read_bytes(), tmp_path / "kept.tflite"
    url, digest = described.as_uri(), hashlib.sha256(content).hexdigest()
    names["update"](url, digest, path)
    assert path.read_bytes() == content
    other = tmp_path / "other.tflite"
    other.write_bytes(b"no translator")
    for wrong in (digest, hashlib.sha256(other.read_bytes()).hexdigest()):
        with pytest.raises(ValueError):
            names["update"](other.as_uri(), wrong, path)
        assert path.read_bytes() == content


def test_commands_of_guide_exist():
    commands = re.findall(r"^keras-vanilla (.+)$", GUIDE, re.MULTILINE)
    assert {command.split()[0] for command in commands} == {
        "export",
        "describe",
        "verify",
        "serve-web",
        "caller",
    }
    for command in commands:
        parser().parse_args(shlex.split(command))


def test_files_of_guide_exist():
    links = re.findall(r"\]\(([\w./-]+)\)", GUIDE)
    assert len(links) >= 5
    for link in links:
        assert (FOLDER / link).exists()
    scripts = re.findall(r"^python (\S+)", GUIDE, re.MULTILINE)
    assert scripts
    for script in scripts:
        folder, _, name = script.partition("/")
        assert f"\nkeras-vanilla caller python {folder}\n" in GUIDE
        assert (FOLDER / "python" / name).exists()

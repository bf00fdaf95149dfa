"""What a `.tflite` file says of itself, and the page that goes with it."""

import dataclasses
import hashlib
import json
import subprocess
import sys

import echo_file
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.interpreter import Interpreter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import keras_vanilla
from keras_vanilla import cli, export
from keras_vanilla.export.metadata.description import (
    FORMAT,
    NAME,
    Description,
    read_description,
    with_description,
)
from keras_vanilla.export.metadata.flatbuffer import packed, read_metadata, unpacked
from keras_vanilla.export.metadata.model_card import model_card_text, write_model_card
from keras_vanilla.translation import Score

FACTS = {
    "name": "de-en",
    "source_language": "de",
    "target_language": "en-GB",
    "max_bytes": 131,
    "max_source_tokens": 40,
    "max_output_tokens": 43,
    "beam_size": 4,
    "length_penalty": 0.6,
    "quantize": "int8",
    "parameters": 7_654_321,
    "model_license": "Apache-2.0",
    "data": "Grüße | 猫",
    "data_license": "CC-BY-4.0",
}
REQUIRED = "name max_bytes max_source_tokens max_output_tokens parameters".split()
LEAST = {name: FACTS[name] for name in REQUIRED}


@pytest.fixture(scope="module")
def described():
    return with_description(unpacked(echo_file.content()), Description(**FACTS))


@pytest.fixture
def file(described, tmp_path):
    path = tmp_path / "echo.tflite"
    path.write_bytes(described)
    return path


def parse(content):
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))


def tree(part):
    """All that a part of a file holds, comparable with `==`."""
    if isinstance(part, list):
        return [tree(each) for each in part]
    if isinstance(part, np.ndarray):
        return part.tolist()
    if hasattr(part, "__dict__"):
        return {name: tree(value) for name, value in vars(part).items()}
    return part


def buffer_places(content):
    """Where the bytes of each buffer begin, and how many they are."""
    model = schema.Model.GetRootAs(content, 0)
    buffers = [model.Buffers(place) for place in range(model.BuffersLength())]
    filled = [buffer._tab for buffer in buffers if buffer.DataLength()]
    return [(table.Vector(table.Offset(4)), table.VectorLen(4)) for table in filled]


def outputs_of_both_runtimes(content, text):
    octets = np.zeros(echo_file.MAX_BYTES, "uint8")
    octets[: len(text)] = list(text)
    runner = Interpreter(model_content=content).get_signature_runner("translate")
    yield runner(text=octets)["text"].tobytes()
    model = CompiledModel.from_buffer(content)
    source = model.create_input_buffer_by_name("translate", "text")
    outputs = {
        name: model.create_output_buffer_by_name("translate", name)
        for name in ("text", "ids", "score")
    }
    source.write(octets)
    model.run_by_name("translate", {"text": source}, outputs)
    (size,) = outputs["text"].get_tensor_details()["shape"]
    yield outputs["text"].read(size, np.uint8).tobytes()


def test_what_is_written_is_read(file):
    description = read_description(file)
    assert description == Description(**FACTS)
    assert (description.format, description.version) == (
        "keras_vanilla translator 4",
        keras_vanilla.__version__,
    )
    assert read_description(str(file)) == description


def test_it_is_utf8_json_by_the_name_of_the_package(file):
    said = read_metadata(file, "keras_vanilla").decode()
    assert json.loads(said) == dataclasses.asdict(Description(**FACTS))
    assert "Grüße | 猫" in said


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(name=st.text(), data=st.none() | st.text(), penalty=st.none() | st.floats(0, 9))
def test_any_text_survives(name, data, penalty, tmp_path):
    facts = {**LEAST, "name": name, "data": data, "length_penalty": penalty}
    path = tmp_path / "any.tflite"
    bare = schema.ModelT(version=3, buffers=[schema.BufferT()])
    path.write_bytes(with_description(bare, Description(**facts)))
    assert read_description(path) == Description(**facts)
    assert len(str(read_description(path)).splitlines()) == 12


def test_the_file_still_runs(described):
    before = [*outputs_of_both_runtimes(echo_file.content(), "Ein Hund é".encode())]
    after = [*outputs_of_both_runtimes(described, "Ein Hund é".encode())]
    assert before == after and after[0].startswith("Ein Hund é\0".encode())


def test_nothing_else_changes(described):
    before, after = tree(parse(echo_file.content())), tree(parse(described))
    assert len(before["buffers"]) > 20
    for part in ("buffers", "metadata"):
        assert after.pop(part)[:-2] == before.pop(part)
    assert after == before


@pytest.mark.parametrize("length", [1, 6, 11, 16])
def test_buffers_are_aligned_and_each_is_there_once(length):
    description = Description(**{**FACTS, "name": length * "x"})
    described = with_description(unpacked(echo_file.content()), description)
    places = sorted(buffer_places(described))
    assert all(begin % 16 == 0 for begin, _ in places)
    ends = [begin + size for begin, size in places]
    assert all(end <= begin for end, (begin, _) in zip(ends, places[1:], strict=False))
    assert len(described) - len(echo_file.content()) < 2000
    assert len(described) == ends[-1]  # the checksum, and before it the description
    assert len(described) - ends[-2] < 64


def test_a_file_without_any_metadata_gets_one(tmp_path):
    path = tmp_path / "bare.tflite"
    bare = schema.ModelT(version=3, buffers=[schema.BufferT()])
    path.write_bytes(packed(bare, {"a": b"1"}))
    assert (read_metadata(path, "a"), read_metadata(path, "b")) == (b"1", None)


def test_an_entry_without_its_buffer_is_damage(tmp_path):
    builder = schema.flatbuffers.Builder()
    model = schema.ModelT(version=3, metadata=[schema.MetadataT("a", 0)])
    builder.Finish(model.Pack(builder), b"TFL3")
    path = tmp_path / "damaged.tflite"
    path.write_bytes(builder.Output())
    with pytest.raises(ValueError, match="damaged.tflite is damaged"):
        read_metadata(path, "a")


@pytest.mark.parametrize("share", [0, 0.00005, 0.001, 0.01, 0.3, 0.9, 0.999, 0.9999])
def test_a_file_cut_short_is_refused(share, file, described):
    file.write_bytes(described[: int(share * len(described))])
    with pytest.raises(
        ValueError, match="echo.tflite is (damaged or )?cut short|not a"
    ):
        read_description(file)


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.dictionaries(st.integers(4, 200), st.integers(0, 255), max_size=4))
def test_damage_is_an_error_in_a_sentence(described, file, damage):
    damaged = bytearray(described)
    for place, octet in damage.items():
        damaged[place] = octet
    file.write_bytes(damaged)
    try:
        assert read_description(file) == Description(**FACTS)
    except ValueError as error:
        assert str(error).startswith(str(file))


@pytest.mark.parametrize("content", [b"", b"TFL3", b"Ein Hund rennt.", b"PK\3\4" * 99])
def test_another_kind_of_file_is_refused(content, tmp_path):
    path = tmp_path / "other.tflite"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="other.tflite is not a .tflite file"):
        read_description(path)
    with pytest.raises(ValueError, match="not a .tflite file. Received: b"):
        with_description(unpacked(content), Description(**FACTS))


def test_a_path_to_no_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_description(tmp_path / "none.tflite")
    with pytest.raises(IsADirectoryError, match="is a folder.*saved_model_cli show"):
        read_description(tmp_path)


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "else.tflite"
    path.write_bytes(echo_file.content())
    with pytest.raises(ValueError, match="else.tflite has no description"):
        read_description(path)


def test_a_file_is_described_once(described):
    with pytest.raises(ValueError, match="the name 'keras_vanilla' already"):
        with_description(unpacked(described), Description(**FACTS))


def test_removed_form_is_refused_by_name(tmp_path):
    old = {"format": FORMAT, **FACTS, "form": "ids", "oldest_runtime": "2.17"}
    path = tmp_path / "old.tflite"
    content = packed(unpacked(echo_file.content()), {NAME: json.dumps(old).encode()})
    path.write_bytes(content)
    with pytest.raises(ValueError, match="old.tflite has .*'ids'.*0.7.0 reads it"):
        read_description(path)


def test_another_format_is_refused(tmp_path):
    newer = json.dumps({"format": "keras_vanilla translator 5"}).encode()
    path = tmp_path / "newer.tflite"
    path.write_bytes(packed(unpacked(echo_file.content()), {NAME: newer}))
    expected = f"as 'keras_vanilla translator 5', and .* knows only .*{FORMAT!r}"
    with pytest.raises(ValueError, match=expected):
        read_description(path)


def test_fields_of_other_versions_are_left_out(tmp_path):
    said = json.dumps({"format": FORMAT, **FACTS, "shortlist": 512}).encode()
    path = tmp_path / "other.tflite"
    path.write_bytes(packed(unpacked(echo_file.content()), {NAME: said}))
    assert read_description(path) == Description(**FACTS)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"7",
        b'{"format": "keras_vanilla translator 1"}',
        json.dumps({"format": FORMAT, **FACTS, "max_bytes": "many"}).encode(),
        json.dumps({"format": FORMAT, **FACTS, "target_language": "?"}).encode(),
    ],
)
def test_a_damaged_description_is_refused(said, tmp_path):
    path = tmp_path / "damaged.tflite"
    path.write_bytes(packed(unpacked(echo_file.content()), {NAME: said}))
    with pytest.raises(ValueError, match="damaged.tflite is damaged"):
        read_description(path)


@pytest.mark.parametrize(
    "name, value", [("max_bytes", 1.5), ("name", None), ("data", b"x")]
)
def test_a_value_of_another_type_is_refused(name, value):
    with pytest.raises(TypeError, match=f"`{name}` must be .*Received: {value!r}"):
        Description(**{**FACTS, name: value})
    with pytest.raises(ValueError, match="`data` must be Unicode text"):
        Description(**{**FACTS, "data": "\udc80"})


@pytest.mark.parametrize("tag", ["german", "de_DE", "", "d", "de-", "de en"])
def test_a_language_is_a_tag(tag):
    with pytest.raises(ValueError, match=f"BCP-47 tag.*Received: {tag!r}"):
        Description(**{**FACTS, "source_language": tag})


@pytest.mark.parametrize("tag", ["de", "pt-BR", "zh-Hant-TW", "gsw", None])
def test_tags_of_every_kind_are_languages(tag):
    assert Description(**{**FACTS, "target_language": tag}).target_language == tag


def test_the_table_says_all_that_is_known():
    assert str(Description(**FACTS)) == (
        "name           de-en\n"
        "languages      de to en-GB\n"
        "form           text: UTF-8 bytes in, UTF-8 bytes out\n"
        "takes          131 bytes of UTF-8, at most 40 tokens\n"
        "gives          at most 43 tokens\n"
        "search         beam 4, length penalty 0.6\n"
        "weights        7,654,321 parameters, int8\n"
        "model license  Apache-2.0\n"
        "trained on     Grüße | 猫\n"
        "data license   CC-BY-4.0\n"
        "runs on        LiteRT 2.1 and later\n"
        f"written by     keras_vanilla {keras_vanilla.__version__}"
    )


@pytest.mark.parametrize(
    "fact, row, in_card",
    [
        (
            {"examples": ["Grüße.", "Ein Hund | rennt."]},
            "examples       Grüße. | Ein Hund | rennt.\n",
            'text_bytes = "Grüße.".encode()',
        ),
        (
            {"converted_from": "hub:owner/model@0123abc"},
            "\nconverted from  hub:owner/model@0123abc\n",
            "| converted from | hub:owner/model@0123abc |",
        ),
    ],
)
def test_what_is_stated_is_kept_and_shown(tmp_path, fact, row, in_card):
    description, path = Description(**FACTS, **fact), tmp_path / "x.tflite"
    path.write_bytes(with_description(unpacked(echo_file.content()), description))
    assert read_description(path) == description
    assert row in str(description)
    assert in_card in model_card_text(description, path.name, 1, "0")


@pytest.mark.parametrize(
    "examples, error",
    [(["a", ""], ValueError), ([3], TypeError), ("a", TypeError)],
)
def test_examples_are_texts(examples, error):
    with pytest.raises(error, match="xample"):
        Description(**FACTS, examples=examples)


def test_the_table_says_what_is_not_stated():
    said = str(Description(**{**LEAST, "name": "a\nb\x1b[31m"}))
    assert "name           a\ufffdb\ufffd[31m\n" in said
    assert "languages      (not stated) to (not stated)\n" in said
    assert said.count("not stated") == 5
    assert "search         greedy" in said and "parameters, float32" in said


def test_the_command_prints_the_table_or_json(file, described, capsys):
    assert cli.main(["describe", str(file)]) == 0
    size = f"{file}: {len(described):,} bytes, as its checksum says\n"
    digest = hashlib.sha256(described).hexdigest()
    printed = f"{size}SHA-256 {digest}\n\n{Description(**FACTS)}\n"
    assert capsys.readouterr().out == printed
    assert cli.main(["describe", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {**dataclasses.asdict(Description(**FACTS)), "sha256": digest}


def test_the_command_says_in_a_sentence_what_is_wrong(tmp_path, capsys):
    for path, expected in [
        (tmp_path / "none.tflite", "none.tflite: No such file or directory.\n"),
        (tmp_path, "describes a SavedModel.\n"),
    ]:
        assert cli.main(["describe", str(path)]) == 1
        out, said = capsys.readouterr()
        assert out == "" and said.endswith(expected) and said.count("\n") == 1


def test_the_command_needs_neither_tensorflow_nor_keras(file):
    script = (
        "import sys; from keras_vanilla_cli import main\n"
        f"sys.argv = ['keras-vanilla', 'describe', {str(file)!r}]\n"
        "assert main() == 0\n"
        "print({'tensorflow', 'keras'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "set()"


def test_the_package_offers_what_it_says():
    for name in export.__all__:
        assert callable(getattr(export, name))
    with pytest.raises(AttributeError, match="has no attribute 'tflight'"):
        _ = export.tflight


def test_a_model_card_says_what_a_publisher_must(file, described):
    signatures = {"signature": "nrefs:1", "chrf_signature": "nrefs:1|nc:6"}
    scores = Score(bleu=41.234, chrf=60.1, **signatures)
    path = write_model_card(read_description(file), file, scores)
    card = path.read_text(encoding="utf-8")
    assert path == file.with_suffix(".md") and card.startswith("# de-en\n")
    assert f"`echo.tflite`, {len(described):,} bytes" in card
    assert f"| SHA-256 | `{hashlib.sha256(described).hexdigest()}` |" in card
    for said in (
        "de to en-GB",
        "| 131 bytes of UTF-8, at most 40 tokens |",
        "| 7,654,321 parameters, int8 |",
        "| Apache-2.0 |",
        "| LiteRT 2.1 and later |",
        r"| Grüße \| 猫 |",
        "| SentencePiece, unigram |",
        "BLEU 41.23, chrF 60.10 (`nrefs:1`).",
        'Interpreter("echo.tflite")',
        "ljust(131,",
    ):
        assert said in card
    assert "not stated" not in card.casefold()


def test_a_model_card_names_what_must_be_stated(file):
    card = write_model_card(Description(**LEAST), file).read_text(encoding="utf-8")
    must = "**not stated: it must be before the file is published** |\n"
    for name in ("model license", "trained on", "data license"):
        assert f"| {name} | {must}" in card
    assert "## Evaluation\n\nNot stated.\n" in card


def test_a_model_card_is_never_overwritten(file):
    file.with_suffix(".md").write_text("mine")
    with pytest.raises(FileExistsError):
        write_model_card(Description(**FACTS), file)
    assert file.with_suffix(".md").read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        write_model_card(Description(**FACTS), file.with_name("none.tflite"))

"""A JSON file with a key missing, or of another type, is one sentence."""

import copy
import dataclasses
import inspect
import json

import pytest

from keras_vanilla.export.metadata import description
from keras_vanilla.interop import (
    from_ctranslate2,
    from_marian,
    to_ctranslate2,
    to_marian,
)
from keras_vanilla.models import Transformer, assembly
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation import Translator

WRONG = None, "x", -1, 1.5, True, [], {}, [["x"]], 10**15
LINES = ["a small house", "the green tree is large", "one river", "two stones"]
FEW = 3  # entries of each list or dict that are changed, such as of a vocabulary


def damaged(value):
    """The value with one entry, at any depth, left out or replaced by `WRONG` ones."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    for key in keys if isinstance(value, dict) and len(value) < 40 else keys[:FEW]:
        without = copy.copy(value)
        del without[key]
        yield without
        inner = value[key]
        inside = damaged(inner) if isinstance(inner, (dict, list)) else ()
        for other in (*WRONG, *inside):
            changed = copy.copy(value)
            changed[key] = other
            yield changed


def check(path, read):
    """Each damage of a JSON file is refused in a sentence, or has no effect."""
    original, refused = json.loads(path.read_text("utf-8")), 0
    for content in (*damaged(original), *WRONG):
        path.write_text(json.dumps(content), encoding="utf-8")
        refused += is_refused(read, content)
    path.write_text(json.dumps(original), encoding="utf-8")
    assert refused
    assert not is_refused(read, original)


def is_refused(read, content):
    try:
        read()
    except (ValueError, OSError) as error:
        assert "\n" not in str(error) and " " in str(error), (content, error)
        # What Python says of its own, and not what expects something of a file.
        assert not str(error).startswith(("zip()", "buffer ", "invalid literal"))
        return True
    except Exception as error:
        raise AssertionError(f"{content!r:.2000}") from error
    return False


@pytest.fixture(scope="module")
def translator():
    tokenizer = Tokenizer.train(lines=LINES * 20, vocabulary_size=290)
    model = Transformer(
        tokenizer.vocabulary_size,
        d_model=8,
        num_heads=2,
        d_ff=8,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_length=16,
    )
    return Translator(tokenizer, model)


@pytest.fixture
def no_model(monkeypatch):
    """Nothing is built: only the arguments are checked, as a Transformer's are."""

    class Built(Exception):
        pass

    parameters = inspect.signature(Transformer.__init__).parameters.values()
    defaults = {each.name: each.default for each in parameters}

    def only_checked(**arguments):
        assembly.checked({**defaults, **arguments})
        raise Built

    for format in ("marian", "ctranslate2"):
        monkeypatch.setattr(f"keras_vanilla.interop.{format}.Transformer", only_checked)

    def reads(read, path):
        def call():
            with pytest.raises(Built):
                read(path)

        return call

    return reads


@pytest.mark.parametrize("name", ["config.json", "shared_vocabulary.json"])
def test_ctranslate2(translator, tmp_path, no_model, name):
    to_ctranslate2(translator, tmp_path / "model")
    check(tmp_path / "model" / name, no_model(from_ctranslate2, tmp_path / "model"))


def test_argos_package(translator, tmp_path, no_model):
    to_ctranslate2(translator, tmp_path / "model")
    (tmp_path / "model" / "sentencepiece.model").rename(
        tmp_path / "sentencepiece.model"
    )
    metadata = {"type": "translate", "target_prefix": "", "from_code": "en"}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    check(tmp_path / "metadata.json", no_model(from_ctranslate2, tmp_path))


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "generation_config.json",
        "tokenizer_config.json",
        "added_tokens.json",
        "vocab.json",
        "model.safetensors.index.json",
    ],
)
def test_marian_folder(translator, tmp_path, no_model, name):
    folder = tmp_path / "model"
    to_marian(translator, folder)
    if name == "added_tokens.json":
        (folder / name).write_text(json.dumps({"</s>": 3}))
    if name == "tokenizer_config.json":
        added = {
            "eos_token": {"content": "</s>"},
            "additional_special_tokens": ["</s>"],
            "extra_special_tokens": {"end": "</s>"},
            "added_tokens_decoder": {"3": {"content": "</s>"}},
        }
        config = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(config | added))
    if name.endswith("index.json"):
        whole, part = folder / "model.safetensors", folder / "1.safetensors"
        names = json.loads(whole.read_bytes()[8:].split(b"}}")[0] + b"}}")
        whole.rename(part)
        index = {"weight_map": dict.fromkeys(set(names) - {"__metadata__"}, part.name)}
        (folder / name).write_text(json.dumps(index))
    check(folder / name, no_model(from_marian, folder))


def test_description_inside_a_file(tmp_path):
    fields = dataclasses.asdict(
        description.Description(
            name="x",
            source_language="de",
            max_bytes=3,
            max_source_tokens=5,
            max_output_tokens=7,
            length_penalty=0.5,
            parameters=11,
            outputs=["scores"],
            examples=["x"],
        )
    )
    path = tmp_path / "description.json"
    path.write_text(json.dumps(fields))
    check(path, lambda: str(description.Description.from_json(path, path.read_bytes())))

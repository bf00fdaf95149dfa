"""A JSON file with a key missing, or of another type, is one sentence."""

import copy
import dataclasses
import inspect
import json
import shutil

import pytest

from keras_vanilla.export.metadata.description import Description
from keras_vanilla.interop import (
    from_ctranslate2,
    from_marian,
    to_ctranslate2,
    to_marian,
)
from keras_vanilla.interop.files.stored_arrays import read_safetensors
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
        try:
            read(path)
        except (ValueError, OSError) as error:
            assert "\n" not in str(error) and " " in str(error), (content, error)
            # Not an error of Python's own.
            assert not str(error).startswith(("zip()", "buffer ", "invalid literal"))
            refused += 1
        except Exception as error:
            raise AssertionError(f"{content!r:.2000}") from error
    assert refused
    path.write_text(json.dumps(original), encoding="utf-8")
    read(path)


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


class Built(Exception):
    """Raised where a Transformer would be built of valid arguments."""


@pytest.fixture
def reads(monkeypatch):
    """Readers of folders that check arguments, and build nothing."""
    parameters = inspect.signature(Transformer.__init__).parameters.values()
    defaults = {each.name: each.default for each in parameters}

    def only_checked(**arguments):
        assembly.checked({**defaults, **arguments})
        raise Built

    for format in ("marian", "ctranslate2"):
        monkeypatch.setattr(f"keras_vanilla.interop.{format}.Transformer", only_checked)

    def reads(read):
        def call(path):
            with pytest.raises(Built):
                read(path.parent)

        return call

    return reads


@pytest.mark.parametrize("name", ["config.json", "shared_vocabulary.json"])
def test_ctranslate2(translator, tmp_path, reads, name):
    to_ctranslate2(translator, tmp_path / "model")
    check(tmp_path / "model" / name, reads(from_ctranslate2))


def test_argos_package(translator, tmp_path, reads):
    to_ctranslate2(translator, tmp_path / "model")
    shutil.move(tmp_path / "model" / "sentencepiece.model", tmp_path)
    metadata = {"type": "translate", "target_prefix": "", "from_code": "en"}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    check(tmp_path / "metadata.json", reads(from_ctranslate2))


END = {"content": "</s>"}
MORE = {  # of optional files
    "added_tokens.json": {"</s>": 3},
    "tokenizer_config.json": {
        "eos_token": END,
        "additional_special_tokens": ["</s>"],
        "extra_special_tokens": {"end": "</s>"},
        "added_tokens_decoder": {"3": END},
    },
}


@pytest.mark.parametrize(
    "name", ["config.json", "generation_config.json", "vocab.json", *MORE]
)
def test_marian_folder(translator, tmp_path, reads, name):
    path = tmp_path / "model" / name
    to_marian(translator, path.parent)
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(content | MORE.get(name, {})))
    check(path, reads(from_marian))


def test_index_of_shards(translator, tmp_path, reads):
    to_marian(translator, tmp_path / "model")
    whole = tmp_path / "model" / "model.safetensors"
    index = {"weight_map": dict.fromkeys(read_safetensors(whole), "1.safetensors")}
    whole.rename(whole.with_name("1.safetensors"))
    path = whole.with_name("model.safetensors.index.json")
    path.write_text(json.dumps(index))
    check(path, reads(from_marian))


def test_description_inside_a_file(tmp_path):
    fields = {"name": "x", "source_language": "de", "length_penalty": 0.5}
    fields |= {"max_bytes": 3, "max_source_tokens": 5, "max_output_tokens": 7}
    fields |= {"parameters": 11, "outputs": ["scores"], "examples": ["x"]}
    path = tmp_path / "description.json"
    path.write_text(json.dumps(dataclasses.asdict(Description(**fields))))
    check(path, lambda path: str(Description.from_json(path, path.read_bytes())))

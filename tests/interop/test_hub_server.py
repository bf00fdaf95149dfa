"""Models of a hub on this machine, fetched through `huggingface_hub`."""

import errno
import json
import shutil
import socket
import warnings
from pathlib import Path

import child_process
import pytest
from local_hub import PORTAL, TO_PORTAL, TOKEN, LocalHub
from marian_folder import learn_models, write_model, write_tokenizer
from word_reversal import english_sentences

from keras_vanilla import Translator, pipeline
from keras_vanilla.bulk import translate_shards
from keras_vanilla.cli import main
from keras_vanilla.interop import from_marian, read_translator
from keras_vanilla.interop.files.json_file import read_json

from .same_translators import assert_same_translator, assert_same_weights

pytestmark = pytest.mark.full
huggingface_hub = pytest.importorskip("huggingface_hub", reason="it is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="it is not installed")

LINES = english_sentences(7, seed=5)
NAME = "Helsinki-NLP/opus-mt-en-nl"
CARD = """\
---
language:
- nl
- en
license: apache-2.0
tags:
- translation
---
# A model for tests
"""
READ = {
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "README.md",
    "source.spm",
    "target.spm",
    "tokenizer_config.json",
    "vocab.json",
}
ONE_LAYER = {"encoder_layers": 1, "decoder_layers": 1}
OTHERS = "pytorch_model.bin", "tf_model.h5", "rust_model.ot", "metadata.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model as `transformers` saves it, among files that are not read."""
    folder = tmp_path_factory.mktemp("hub")
    write_model(folder, write_tokenizer(folder, learn_models()), **ONE_LAYER)
    (folder / "README.md").write_text(CARD)
    for name in OTHERS:
        (folder / name).write_bytes(b"not to be read")
    return folder


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def use(monkeypatch, url):
    """Sets what HF_ENDPOINT sets at import."""
    template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template
    )


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub without models, and an empty cache."""
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", f"{tmp_path}/cache")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", f"{tmp_path}/token")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub = LocalHub()
    use(monkeypatch, hub.url)
    with hub.running():
        yield hub


@pytest.fixture
def commit(hub, folder):
    return hub.add(NAME, folder)


def disconnect(monkeypatch):
    """Sends all requests to a closed port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        use(monkeypatch, f"http://127.0.0.1:{free.getsockname()[1]}")


def test_needed_files_are_fetched_once(hub, commit, folder):
    expected = from_marian(folder)
    for name in (NAME, NAME, f"{NAME}@{commit}"):
        assert_same_translator(Translator.from_hub(name), expected)
    assert sorted(hub.fetched()) == sorted(READ)


def test_pickles_and_shards_are_fetched(hub, copy, folder):
    model = transformers.MarianMTModel.from_pretrained(folder)
    expected = from_marian(folder)
    (copy / "model.safetensors").unlink()
    torch.save(model.state_dict(), copy / "pytorch_model.bin")
    hub.add(NAME, copy)
    assert_same_translator(Translator.from_hub(NAME), expected)
    assert "pytorch_model.bin" in hub.fetched()
    model.save_pretrained(copy, max_shard_size="5KB")
    hub.add(NAME, copy)
    assert_same_translator(Translator.from_hub(NAME), expected)
    assert sum(name.endswith(".safetensors") for name in hub.fetched()) > 1


def test_revision_is_tag_commit_or_moving_branch(hub, copy, commit):
    assert commit in Translator.from_hub(NAME).about.converted_from
    (copy / "README.md").write_text("no license")
    tagged = hub.add(NAME, copy, revision="v1")
    for revision, expected in (("v1", tagged), (tagged, tagged), (commit, commit)):
        about = Translator.from_hub(f"{NAME}@{revision}").about
        assert about.converted_from == f"hub:{NAME}@{expected}"
        assert (about.model_license is None) == (expected == tagged)
    moved = hub.add(NAME, copy)
    assert moved in Translator.from_hub(NAME).about.converted_from
    assert sorted(hub.fetched()) == sorted([*READ, "README.md"])  # the rest is the same
    with pytest.raises(FileNotFoundError, match=f"hub has no hub:{NAME}@v2"):
        Translator.from_hub(f"{NAME}@v2")


CARDS = {  # -> the license
    CARD: "apache-2.0",
    "---\nlicense: other\nlicense_name: of-the-lab\n---\n": "of-the-lab",
    "---\nlicense: [mit, apache-2.0]\n---\n": None,
    "# A title": None,
    "---\n{: [\n---\n": None,
    "---\n- a\n---\n": None,
}


def test_card_states_license_or_nothing(hub, copy):
    for card, license_ in CARDS.items():
        (copy / "README.md").write_text(card)
        commit = hub.add("owner/captions", copy)
        about = Translator.from_hub("owner/captions").about
        assert about.model_license == license_
        assert about.converted_from == f"hub:owner/captions@{commit}"
        assert about.name == "captions" and about.source_language is None
    (copy / "README.md").unlink()
    hub.add(NAME, copy)
    about = Translator.from_hub(NAME).about
    assert about.model_license is None
    assert about.source_language == "en" and about.target_language is None  # by a code


def without(*names):
    def change(hub, copy, monkeypatch):
        for name in names:
            (copy / name).unlink()
        hub.add(NAME, copy)

    return change


def gated(hub, copy, monkeypatch):
    hub.add(NAME, copy)
    hub.gated.add(NAME)


def private(hub, copy, monkeypatch):
    hub.add(NAME, copy)
    hub.private.add(NAME)


def unreachable(hub, copy, monkeypatch):
    disconnect(monkeypatch)


def offline(hub, copy, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def answers(status, content=b"", headers=None):
    def change(hub, copy, monkeypatch):
        hub.answer = status, content, headers or {}

    return change


def full_disk(hub, copy, monkeypatch):
    hub.add(NAME, copy)

    def download(*args, **settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)


REVOKED = {"X-Error-Message": "Invalid credentials in Authorization header"}
NO_ANSWERS = {  # of the hub -> a word of the warning
    "unreachable": (unreachable, "refused"),
    "revoked token": (answers(401, b"", REVOKED), "401"),
    "429": (answers(429), "429"),
    "503": (answers(503), "503"),
    "captive portal": (answers(*TO_PORTAL), "Expecting value"),
    "page of another server": (answers(*PORTAL), "Expecting value"),
    "truncated": (answers(200, b'{"id": "a/b", "siblings"'), "Expecting"),
    "a list": (answers(200, b"[]"), "mapping"),
}
PROBLEMS = {
    "missing": (lambda *_: None, FileNotFoundError, f"hub has no hub:{NAME}, or it is"),
    "private": (private, FileNotFoundError, f"{NAME}, or it is private .*hf auth"),
    "gated": (gated, FileNotFoundError, f"{NAME}, .* gated: .* or set HF_TOKEN"),
    "no tokenizer": (without("source.spm"), FileNotFoundError, "has no source.spm"),
    "no weights": (
        without("model.safetensors", "pytorch_model.bin"),
        FileNotFoundError,
        "has no model.safetensors or pytorch_model.bin",
    ),
    "unreachable": (unreachable, ConnectionError, "not in the cache .*cache.*refused"),
    "offline": (offline, ConnectionError, "not in the cache .*HF_HUB_OFFLINE is set"),
    "portal": (answers(*TO_PORTAL), ConnectionError, "not answer .* Expecting"),
    "full disk": (full_disk, ConnectionError, "No space left on device"),
}


@pytest.mark.parametrize("arrange, kind, message", PROBLEMS.values(), ids=PROBLEMS)
def test_problem_is_one_sentence(arrange, kind, message, hub, copy, monkeypatch, capfd):
    arrange(hub, copy, monkeypatch)
    with pytest.raises(kind, match=message) as error:
        Translator.from_hub(NAME)
    assert "\n" not in str(error.value)
    assert hub.fetched() in ([], ["config.json"])
    assert main(["translate", f"hub:{NAME}", LINES[0]]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last == f"keras-vanilla: {error.value}"


@pytest.mark.parametrize("arrange", [private, gated])
def test_token_opens_private_and_gated_models(arrange, hub, copy, monkeypatch):
    arrange(hub, copy, monkeypatch)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert Translator.from_hub(NAME).about.name == "opus-mt-en-nl"


def from_cache(recwarn):
    messages = [str(each.message) for each in recwarn.list]
    return [message for message in messages if "cache" in message]


def test_cached_model_is_used_with_a_warning(hub, commit, copy, monkeypatch, recwarn):
    online = Translator.from_hub(NAME)
    warnings.simplefilter("always")  # two are the same
    for name, (arrange, why) in NO_ANSWERS.items():
        recwarn.clear()
        with monkeypatch.context() as patch:
            arrange(hub, copy, patch)
            cached = Translator.from_hub(NAME)
        hub.answer = None
        (warning,) = from_cache(recwarn)
        assert f"hub:{NAME} is read from the cache, at the commit {commit}: " in warning
        assert why in warning and "\n" not in warning, name
        assert cached.about == online.about
    assert_same_weights(cached.model, online.model)


@pytest.mark.parametrize("revision", ["", "@main", "@COMMIT"])
def test_cached_model_is_used_offline(revision, hub, commit, monkeypatch, recwarn):
    online = Translator.from_hub(NAME)
    offline(hub, None, monkeypatch)
    cached = Translator.from_hub(NAME + revision.replace("COMMIT", commit))
    assert cached.about == online.about and not from_cache(recwarn)


def test_lost_file_of_the_cache_is_fetched_again(hub, commit, folder, monkeypatch):
    Translator.from_hub(NAME)
    cache = Path(huggingface_hub.constants.HF_HUB_CACHE)
    (link,) = cache.glob("models*/snapshots/*/target.spm")
    link.resolve().unlink()  # its link stays
    with monkeypatch.context() as patch:
        disconnect(patch)
        with pytest.raises(ConnectionError, match="or not all of its files"):
            Translator.from_hub(NAME)
    assert_same_translator(Translator.from_hub(NAME), from_marian(folder))


def test_silent_hub_is_not_waited_for(hub, commit, monkeypatch):
    Translator.from_hub(NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_ETAG_TIMEOUT", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        use(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.warns(UserWarning, match=f"{commit}: .*timed out"):
            Translator.from_hub(NAME)


def test_cut_download_is_resumed(hub, commit, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    hub.cuts["model.safetensors"] = [1000, 2500]
    assert_same_translator(Translator.from_hub(NAME), from_marian(folder))
    assert hub.fetched().count("model.safetensors") == 3


def test_complete_files_are_kept_after_interruption(hub, commit, folder, monkeypatch):
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    hub.cuts["model.safetensors"] = [1000] * 20
    with pytest.raises(ConnectionError, match="model.safetensors of .*: try again"):
        Translator.from_hub(NAME)
    hub.cuts.clear()
    hub.requests.clear()
    assert_same_translator(Translator.from_hub(NAME), from_marian(folder))
    assert hub.fetched() == ["model.safetensors"]


def test_child_process_heeds_variables_of_hub(hub, commit, folder, tmp_path):
    variables = {"HF_HUB_CACHE": f"{tmp_path}/own", "HF_ENDPOINT": hub.url}
    convert = "-m", "keras_vanilla", "convert", f"hub:{NAME}"
    child_process.run(*convert, tmp_path / "online.keras", **variables)
    assert sorted(hub.fetched()) == sorted(READ)
    hub.requests.clear()
    variables["HF_HUB_OFFLINE"] = "1"
    child_process.run(*convert, tmp_path / "offline.keras", **variables)
    assert hub.requests == []
    for name in ("online.keras", "offline.keras"):
        assert_same_translator(read_translator(tmp_path / name), from_marian(folder))


def test_shards_are_translated_by_one_commit(hub, commit, copy, tmp_path):
    source, output = tmp_path / "source", tmp_path / "output"
    source.write_text("\n".join(LINES))
    for name in (NAME, f"{NAME}@{commit}"):
        translate_shards(f"hub:{name}", [source], output, max_length=11)
    record = read_json(output / ".translating" / "run.json")
    assert record["model"] == f"hub:{NAME}@{commit}"
    (copy / "README.md").write_text("another card")
    hub.add(NAME, copy)
    with pytest.raises(ValueError, match=f"begun with another model: hub:{NAME}"):
        translate_shards(f"hub:{NAME}", [source], output, max_length=11)


LOCAL = "folder"  # in place of a name: a model on this machine
TO_ENGLISH = "Ce cours est produit par Hugging Face."
COMPANY = "Hugging Face is a technology company based in New York and Paris"
PLUGIN = "Unable to import %1 using the OFX importer plugin."
LEGUMES = "Legumes share resources with nitrogen-fixing bacteria."
CALLS = {  # of the documentation and the course of transformers 4, by their places
    "course, pipelines": (["translation", NAME], {}, TO_ENGLISH, {}),
    "course, fine-tuning": (
        ["translation", NAME],
        {},
        "Default to expanded threads",
        {},
    ),
    "course, a message": (["translation", NAME], {}, PLUGIN, {}),
    "task summary": (["translation_en_to_de", NAME], {}, COMPANY, {"max_length": 40}),
    "task guide": (["translation_xx_to_yy", NAME], {}, LEGUMES, {}),
    "local folder": (["translation", LOCAL], {}, LEGUMES, {}),
    "list": (["translation", NAME], {}, [PLUGIN, *LINES[:3]], {}),
    "batch size": (["translation", NAME], {}, [*LINES, COMPANY], {"batch_size": 8}),
    "one beam": (["translation", NAME], {"return_text": True}, LINES, {"num_beams": 1}),
    "settings": (
        ["translation", NAME],
        {"max_length": 25, "num_beams": 2},
        LINES,
        {"num_beams": 5, "early_stopping": True, "length_penalty": 0.5},
    ),
}


@pytest.fixture(scope="module")
def of_pipeline(tmp_path_factory):
    """A folder, whose model ends its outputs, and the model of `transformers`."""
    folder = tmp_path_factory.mktemp("pipeline")
    source, target = write_tokenizer(folder, learn_models(), separate=True)
    settings = {**ONE_LAYER, "tie_word_embeddings": False}
    model = write_model(
        folder, (source, target), 1, max_position_embeddings=131, **settings
    )
    with torch.no_grad():
        model.final_logits_bias[:, target["</s>"]] += 1.0
    model.generation_config.update(num_beams=3, max_length=17)
    model.save_pretrained(folder)
    return folder, model


@pytest.mark.parametrize("name", CALLS)
def test_pipeline_translates_as_in_version_4(name, hub, of_pipeline, recwarn):
    folder, model = of_pipeline
    hub.add(NAME, folder)
    (task, place), at_first, texts, settings = CALLS[name]
    translator = pipeline(task, model=folder if place == LOCAL else place, **at_first)
    received = translator(texts, **settings)
    settings = at_first | settings
    for without_effect in ("batch_size", "return_text"):
        settings.pop(without_effect, None)
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    expected = []
    for text in [texts] if isinstance(texts, str) else texts:
        ids = model.generate(**tokenizer([text], return_tensors="pt"), **settings)
        text = tokenizer.decode(ids[0], skip_special_tokens=True)
        expected.append({"translation_text": text})
    assert received == expected
    different = {each["translation_text"] for each in received}
    assert isinstance(texts, str) or len(different) > 1


def test_pipeline_heeds_forced_end(of_pipeline, tmp_path):
    folder = shutil.copytree(of_pipeline[0], tmp_path / "model")
    free = pipeline("translation", model=folder, num_beams=1, max_length=6)
    settings = read_json(folder / "generation_config.json")
    settings["forced_eos_token_id"] = settings["eos_token_id"]
    (folder / "generation_config.json").write_text(json.dumps(settings))
    forced = pipeline("translation", model=folder, num_beams=1, max_length=6)
    model = transformers.MarianMTModel.from_pretrained(folder)
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    ids = model.generate(**batch, num_beams=1, max_length=6)
    texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
    with pytest.warns(UserWarning, match="without an end"):
        received, longer = forced(LINES), free(LINES)
    assert received == [{"translation_text": text} for text in texts] != longer

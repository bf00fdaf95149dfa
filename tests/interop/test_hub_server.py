"""Models of a hub on this machine, fetched through `huggingface_hub`.

The oracle of what they compute is `transformers`, on the folder that the hub serves.
"""

import errno
import json
import shutil
import socket
import warnings
from pathlib import Path

import child_process
import numpy as np
import pytest
from checks import array
from local_hub import PORTAL, TO_PORTAL, TOKEN, LocalHub
from marian_folder import learn_models, write_model, write_tokenizer
from near_ties import assert_same_but_for_near_ties
from word_reversal import dutch, english_sentences

from keras_vanilla import Translator, export
from keras_vanilla.bulk import translate_shards
from keras_vanilla.cli import main
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.interop import from_marian, read_translator
from keras_vanilla.interop.files.json_file import read_json
from keras_vanilla.training.run import TrainingRun

from .same_translators import assert_same_translator, assert_same_weights

pytestmark = pytest.mark.full
huggingface_hub = pytest.importorskip("huggingface_hub", reason="it is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="it is not installed")

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "opus-mt-en-mg"
LINES = english_sentences(7, seed=5)
LENGTH = 11  # of the longest outputs
TOLERANCE = 1e-5  # of logits of about 1
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
    """A model as `transformers` saves it, among files that nothing here reads."""
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
    """What HF_ENDPOINT does in a process that begins with it."""
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
    """Nobody listens any more."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        use(monkeypatch, f"http://127.0.0.1:{free.getsockname()[1]}")


def test_a_model_is_that_of_transformers(hub, tmp_path):
    """With the tokenizer of a published one: ids, logits, texts of greedy search."""
    if not PUBLISHED.exists():
        pytest.skip("the files of the published model are not here")
    folder = tmp_path / "model"
    folder.mkdir()
    for file in PUBLISHED.iterdir():
        shutil.copy(file, folder)
    vocabulary = read_json(folder / "vocab.json")
    write_model(folder, [vocabulary, vocabulary], **ONE_LAYER)
    commit = hub.add("Helsinki-NLP/opus-mt-en-mg", folder)
    ours = Translator.from_hub("Helsinki-NLP/opus-mt-en-mg")
    texts = ["How are you?", "Tom bought 3 red cars in 2019.", "Café, naïve — “so”!"]
    about = ours.about
    assert (about.source_language, about.target_language) == ("en", "mg")
    assert about.model_license == "apache-2.0"
    assert about.converted_from == f"hub:Helsinki-NLP/opus-mt-en-mg@{commit}"

    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    ids = [row[row != ours.model.pad_id].tolist() for row in batch.input_ids.numpy()]
    assert ours.encode(texts) == ids
    targets = np.random.default_rng(0).integers(2, 30, (len(texts), 7))
    targets[:, 0] = ours.model.start_id
    with torch.no_grad():
        output = model.generate(**batch, num_beams=1, max_length=LENGTH + 1)
        logits = model(**batch, decoder_input_ids=torch.tensor(targets)).logits.numpy()
    feed = {"source_ids": batch.input_ids.numpy(), "target_ids": targets}
    assert np.abs(logits).max() > 1
    np.testing.assert_allclose(array(ours.model(feed)), logits, atol=TOLERANCE)
    searched = ours.search(ids, DecodingConfig(max_length=LENGTH))
    theirs = output.numpy()[:, 1:]
    assert_same_but_for_near_ties(ours.model, ids, searched, theirs)
    with pytest.warns(UserWarning, match="longest length"):
        translations = ours.translate(texts, max_length=LENGTH)
    texts = tokenizer.batch_decode(theirs, skip_special_tokens=True)
    pairs = zip(translations, texts, searched, theirs, strict=True)
    same = [one == two for one, two, *rows in pairs if np.array_equal(*rows)]
    assert len(same) > 1 and all(same)


def test_each_file_that_is_read_is_fetched_once(hub, commit):
    Translator.from_hub(NAME)
    assert sorted(hub.fetched()) == sorted(READ)
    Translator.from_hub(NAME)
    Translator.from_hub(f"{NAME}@{commit}")
    assert sorted(hub.fetched()) == sorted(READ)


def test_pickles_are_fetched_where_there_is_nothing_else(hub, copy, folder):
    model = transformers.MarianMTModel.from_pretrained(folder)
    torch.save(model.state_dict(), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    hub.add(NAME, copy)
    assert_same_translator(Translator.from_hub(NAME), from_marian(folder))
    assert "pytorch_model.bin" in hub.fetched()


def test_weights_in_several_files(hub, copy, folder):
    (copy / "model.safetensors").unlink()
    model = transformers.MarianMTModel.from_pretrained(folder)
    model.save_pretrained(copy, max_shard_size="5KB")
    hub.add(NAME, copy)
    assert_same_translator(Translator.from_hub(NAME), from_marian(folder))
    assert sum(name.endswith(".safetensors") for name in hub.fetched()) > 1


def test_a_revision_is_a_tag_or_a_commit(hub, copy, commit):
    (copy / "README.md").write_text("no license")
    tagged = hub.add(NAME, copy, revision="v1")
    of = {revision: f"hub:{NAME}@{revision}" for revision in (commit, tagged)}
    for revision, expected in (("v1", tagged), (tagged, tagged), (commit, commit)):
        about = Translator.from_hub(f"{NAME}@{revision}").about
        assert about.converted_from == of[expected]
        assert (about.model_license is None) == (expected == tagged)


def test_a_branch_that_moved_is_fetched_anew(hub, copy, commit):
    assert commit in Translator.from_hub(NAME).about.converted_from
    (copy / "README.md").write_text("another card")
    moved = hub.add(NAME, copy)
    assert moved in Translator.from_hub(NAME).about.converted_from
    assert sorted(hub.fetched()) == sorted([*READ, "README.md"])  # the rest is the same


@pytest.mark.parametrize(
    "card",
    ["", "# A title", "---\n{: [\n---\n", "---\n- a\n---\n"],
    ids=["empty", "no header", "not YAML", "a list"],
)
def test_a_card_that_states_nothing(card, hub, copy):
    (copy / "README.md").write_text(card)
    commit = hub.add("owner/captions", copy)
    stated = {"name": "captions", "converted_from": f"hub:owner/captions@{commit}"}
    assert Translator.from_hub("owner/captions").about.stated() == stated


def test_a_model_needs_no_card(hub, copy):
    (copy / "README.md").unlink()
    hub.add(NAME, copy)
    assert Translator.from_hub(NAME).about.model_license is None


def test_its_file_states_where_the_model_is_from(commit, tmp_path):
    translator = Translator.from_hub(NAME)
    assert translator.about.converted_from == f"hub:{NAME}@{commit}"
    translator.save(tmp_path / "translator.keras")
    assert Translator.load(tmp_path / "translator.keras").about == translator.about


def without(*names):
    def change(hub, copy, monkeypatch):
        for name in names:
            (copy / name).unlink()
        hub.add(NAME, copy)

    return change


def t5(hub, copy, monkeypatch):
    transformers.T5Config(architectures=["T5ForConditionalGeneration"]).save_pretrained(
        copy
    )
    hub.add(NAME, copy)


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


def links_broken(hub, copy, monkeypatch):
    """A file of the cache is lost, and its link is not."""
    disconnect(monkeypatch)
    cache = Path(huggingface_hub.constants.HF_HUB_CACHE)
    for link in cache.glob("models*/snapshots/*/target.spm"):
        link.resolve().unlink()


REVOKED = {"X-Error-Message": "Invalid credentials in Authorization header"}
NO_ANSWERS = {  # of the hub, and what is said of them
    "unreachable": (unreachable, "refused"),
    "400": (answers(400), "400"),
    "revoked token": (answers(401, b"", REVOKED), "401"),
    "403": (answers(403), "403"),
    "429": (answers(429), "429"),
    "500": (answers(500), "500"),
    "503": (answers(503), "503"),
    "captive portal": (answers(*TO_PORTAL), "Expecting value"),
    "page of another server": (answers(*PORTAL), "Expecting value"),
    "truncated": (answers(200, b'{"id": "a/b", "siblings"'), "Expecting"),
    "another object": (answers(200, b"{}"), "id"),
    "a list": (answers(200, b"[]"), "mapping"),
}


def full_disk(hub, copy, monkeypatch):
    hub.add(NAME, copy)

    def download(*args, **settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)


PROBLEMS = [
    (lambda *_: None, FileNotFoundError, f"hub has no model {NAME}, or it is private"),
    (private, FileNotFoundError, f"{NAME}, or it is private: .*hf auth login"),
    (gated, PermissionError, f"hub:{NAME} is gated: accept .* or set HF_TOKEN"),
    (t5, ValueError, "must be a MarianMTModel.*Received: T5ForConditionalGeneration"),
    (without("config.json"), ValueError, f"{NAME} has no config.json: it is not a"),
    (without("source.spm"), FileNotFoundError, f"{NAME} has no source.spm"),
    (
        without("model.safetensors", "pytorch_model.bin"),
        FileNotFoundError,
        "has no model.safetensors or pytorch_model.bin",
    ),
    (
        unreachable,
        ConnectionError,
        "is not in the cache .*cache.*did not answer .*refused",
    ),
    (offline, ConnectionError, "is not in the cache .*cache.*HF_HUB_OFFLINE is set"),
    (
        answers(*TO_PORTAL),
        ConnectionError,
        "is not in the cache .*, and the hub did not answer with its files: Expecting",
    ),
    (full_disk, OSError, "No space left on device"),
]


@pytest.mark.parametrize(
    "arrange, kind, message",
    PROBLEMS,
    ids=["missing", "private", "gated", "t5", "no config", "no tokenizer"]
    + ["no weights", "unreachable", "offline", "portal", "full disk"],
)
def test_a_problem_is_one_sentence(
    arrange, kind, message, hub, copy, monkeypatch, capfd
):
    arrange(hub, copy, monkeypatch)
    with pytest.raises(kind, match=message) as error:
        Translator.from_hub(NAME)
    assert "\n" not in str(error.value)
    assert not set(hub.fetched()) - {"config.json"}
    assert main(["translate", f"hub:{NAME}", LINES[0]]) == 1
    reason = getattr(error.value, "strerror", None)  # of the system, without its number
    sentence = f"{reason}." if reason else error.value
    assert capfd.readouterr().err.splitlines()[-1] == f"keras-vanilla: {sentence}"


def test_a_revision_that_there_is_not(commit):
    with pytest.raises(FileNotFoundError, match=f"{NAME} has no revision v2"):
        Translator.from_hub(f"{NAME}@v2")


@pytest.mark.parametrize("arrange", [private, gated])
def test_a_token_opens_what_it_may(arrange, hub, copy, monkeypatch):
    arrange(hub, copy, monkeypatch)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert Translator.from_hub(NAME).about.name == "opus-mt-en-nl"


def from_cache(recwarn):
    messages = [str(each.message) for each in recwarn.list]
    return [message for message in messages if "cache" in message]


def test_cached_model_is_used_with_a_warning(
    hub, commit, copy, monkeypatch, recwarn, capfd
):
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
def test_offline_the_cached_model_is_used(revision, hub, commit, monkeypatch, recwarn):
    online = Translator.from_hub(NAME)
    offline(hub, None, monkeypatch)
    cached = Translator.from_hub(NAME + revision.replace("COMMIT", commit))
    assert cached.about == online.about and not from_cache(recwarn)
    assert_same_weights(cached.model, online.model)


def test_lost_file_of_the_cache_is_named_or_fetched_again(
    hub, commit, copy, folder, monkeypatch
):
    Translator.from_hub(NAME)
    with monkeypatch.context() as patch:
        links_broken(hub, copy, patch)
        message = f"Only a part of hub:{NAME} is in .* has no target.spm"
        with pytest.raises(ConnectionError, match=message):
            Translator.from_hub(NAME)
    assert_same_translator(Translator.from_hub(NAME), from_marian(folder))


def test_hub_that_does_not_answer_is_not_waited_for(hub, commit, monkeypatch):
    Translator.from_hub(NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_ETAG_TIMEOUT", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        use(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.warns(UserWarning, match=f"{commit}: .*timed out"):
            Translator.from_hub(NAME)


def test_license_with_a_lone_surrogate_is_left_out(hub, copy):
    (copy / "README.md").write_text('---\nlicense: "\\uD834"\n---\n')
    hub.add(NAME, copy)
    assert Translator.from_hub(NAME).about.model_license is None


@pytest.fixture
def impatient(monkeypatch):
    """`huggingface_hub` waits a second before it tries again."""
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)


def test_a_cut_connection_is_resumed(hub, commit, folder, impatient):
    hub.cuts["model.safetensors"] = [1000, 2500]
    assert_same_translator(Translator.from_hub(NAME), from_marian(folder))
    assert hub.fetched().count("model.safetensors") == 3


def test_after_an_interruption_complete_files_are_kept(
    hub, commit, folder, impatient, monkeypatch
):
    hub.cuts["model.safetensors"] = [1000] * 20
    message = f"download of model.safetensors of {NAME} was interrupted .*: try again"
    with pytest.raises(ConnectionError, match=message):
        Translator.from_hub(NAME)
    with monkeypatch.context() as patch:
        disconnect(patch)
        with pytest.raises(ConnectionError, match="Only a part of .* is in the cache"):
            Translator.from_hub(NAME)
    hub.cuts.clear()
    hub.requests.clear()
    assert_same_translator(Translator.from_hub(NAME), from_marian(folder))
    assert hub.fetched() == ["model.safetensors"]


def test_commands_take_a_model_of_the_hub(commit, folder, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    reference = f"hub:{NAME}"
    expected = from_marian(folder)
    with pytest.warns(UserWarning, match="longest length"):
        text = expected.translate(LINES[:1], max_length=LENGTH)[0]
    options = ["--max-length", str(LENGTH)]
    assert main(["translate", reference, LINES[0], *options]) == 0
    assert capfd.readouterr().out == f"{text}\n"
    assert main(["convert", reference, "translator.keras"]) == 0
    assert main(["convert", reference, "folder", "--format", "marian"]) == 0
    assert_same_translator(read_translator("translator.keras"), from_marian(folder))
    assert_same_translator(read_translator("folder"), from_marian(folder))
    Path("source").write_text(LINES[0])
    Path("target").write_text(dutch(LINES[0]))
    files = ["--source", "source", "--reference", "target"]
    assert main(["evaluate", reference, *files]) == 0


def write_lines(source, target):
    Path(source).write_text("\n".join(LINES))
    Path(target).write_text("\n".join(map(dutch, LINES)))


def test_a_model_that_is_trained_further_states_its_source(
    commit, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_lines("source", "target")
    trained = []

    def stop(run):  # before it trains
        trained.append(run.translator)
        raise ValueError("This is enough.")

    monkeypatch.setattr(TrainingRun, "_compile", stop)
    train = ["train", "--from", f"hub:{NAME}", "--source", "source", "--target"]
    assert main([*train, "target", "--output", "out", "--epochs", "1"]) == 1
    (translator,) = trained
    assert translator.about.converted_from == f"hub:{NAME}@{commit}"
    assert translator.about.model_license == "apache-2.0"


def test_an_exported_file_states_its_source_and_is_verified(
    commit, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    write_lines("source", "target")
    command = ["export", f"hub:{NAME}", "out.tflite", "--check", "structure"]
    assert main([*command, "--max-length", str(LENGTH), "--quantize", "none"]) == 0
    description = export.read_description("out.tflite")
    assert description.converted_from == f"hub:{NAME}@{commit}"
    assert description.model_license == "apache-2.0"
    assert description.source_language == "en"
    assert f"| converted from | hub:{NAME}@{commit} |" in Path("out.md").read_text()
    capfd.readouterr()
    verify = ["verify", f"hub:{NAME}", "out.tflite", "--source", "source", "--json"]
    assert main(verify) == 1  # outputs of random weights never end
    report = json.loads(capfd.readouterr().out)
    assert report["sentences"] == len(LINES)
    assert report["differences"] == report["text_differences"] == []


def test_a_process_heeds_the_variables_of_the_hub(hub, commit, folder, tmp_path):
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


def test_files_are_translated_by_one_commit(hub, commit, copy, tmp_path):
    source, output = tmp_path / "source", tmp_path / "output"
    source.write_text("\n".join(LINES))
    settings = {"max_length": LENGTH}
    translate_shards(f"hub:{NAME}", [source], output, **settings)
    record = read_json(output / ".translating" / "run.json")
    assert record["model"] == f"hub:{NAME}@{commit}"
    translate_shards(f"hub:{NAME}@{commit}", [source], output, **settings)
    (copy / "README.md").write_text("another card")
    hub.add(NAME, copy)
    with pytest.raises(ValueError, match=f"begun with another model: hub:{NAME}"):
        translate_shards(f"hub:{NAME}", [source], output, **settings)

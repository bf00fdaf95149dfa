import http.server
import re
import sys
import threading

import pytest

from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.data import tfds as our_tfds
from keras_vanilla.tokenizer import Tokenizer

pytestmark = pytest.mark.full

tfds = pytest.importorskip("tensorflow_datasets")

SIZES = {"train": 1013, "validation": 7, "test": 5}  # more than one batch of reading


def source_of(number):
    return f"Satz {number}\nüber zwei Zeilen" if number % 3 else f"Satz {number}"


class ToyTranslate(tfds.core.GeneratorBasedBuilder):
    """A translation that needs no network."""

    VERSION = tfds.core.Version("1.2.3")
    BUILDER_CONFIGS = [tfds.core.BuilderConfig(name=name) for name in ("de-en", "x-y")]

    def _info(self):
        languages = self.builder_config.name.split("-")
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.Translation(languages=sorted(languages)[::-1]),
            supervised_keys=tuple(languages),
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {split: self._generate_examples(size) for split, size in SIZES.items()}

    def _generate_examples(self, size):
        source, target = self.builder_config.name.split("-")
        for n in range(size):
            yield n, {source: source_of(n), target: f"sentence {n}"}


class AnyPair(tfds.core.GeneratorBasedBuilder):
    """One split of one example, for what goes wrong."""

    VERSION = tfds.core.Version("1.0.0")
    features = tfds.features.Translation(languages=["a", "b"])
    keys = ("a", "b")
    pairs = [("left", "right")]

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self, features=self.features, supervised_keys=self.keys
        )

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for number, texts in enumerate(self.pairs):
            yield number, dict(zip(self.features, texts, strict=True))


class ManyWays(AnyPair):
    features = tfds.features.Translation(languages=["a", "b", "c"])


class NoKeys(AnyPair):
    keys = None


class NoTranslation(AnyPair):
    features = tfds.features.FeaturesDict(
        {"a": tfds.features.Text(), "b": tfds.features.Text()}
    )


class NotUtf8(AnyPair):
    pairs = [("left", "right"), ("left", b"caf\xe9")]


class EmptySides(AnyPair):
    pairs = [("left", "right"), (" \n", "right"), ("links", "rechts")]


class ByHand(AnyPair):
    MANUAL_DOWNLOAD_INSTRUCTIONS = "Fetch it yourself."

    def _split_generators(self, dl_manager):
        return {"train": [dl_manager.manual_dir]}


class Downloaded(AnyPair):
    url = None

    def _split_generators(self, dl_manager):
        dl_manager.download(self.url)
        return {"train": self._generate_examples()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tfds")
    ParallelCorpus.from_tfds("toy_translate/de-en", data_dir=path)
    return path


@pytest.fixture
def server():
    """An address that answers every request with an error."""
    handler = http.server.BaseHTTPRequestHandler
    with http.server.HTTPServer(("localhost", 0), handler) as found:
        handler.log_message = lambda *_: None
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://localhost:{found.server_port}/corpus.tgz"
        found.shutdown()


@pytest.fixture
def download(tmp_path, monkeypatch):
    """Reads a corpus that is to be downloaded from an address."""
    monkeypatch.setattr(our_tfds, "ATTEMPTS", 1)

    def read(url):
        monkeypatch.setattr(Downloaded, "url", url)
        return ParallelCorpus.from_tfds("downloaded", data_dir=tmp_path)

    return read


@pytest.mark.parametrize("split", SIZES)
def test_a_corpus_by_name_has_the_pairs_of_its_builder_in_their_order(folder, split):
    corpus = ParallelCorpus.from_tfds("toy_translate/de-en", split, data_dir=folder)
    assert list(corpus) == [
        (source_of(n), f"sentence {n}") for n in range(SIZES[split])
    ]
    assert corpus.line_numbers.tolist() == list(range(1, SIZES[split] + 1))
    assert corpus.report == {}


def test_reverse_swaps_source_and_target(folder):
    there, back = (
        ParallelCorpus.from_tfds("toy_translate/de-en", data_dir=folder, reverse=swap)
        for swap in (False, True)
    )
    assert list(back.sources) == list(there.targets)
    assert list(back.targets) == list(there.sources)


@pytest.mark.parametrize(
    "name",
    ["tfds:toy_translate/de-en", "toy_translate/de-en:1.2.3", "ToyTranslate/de-en"],
)
def test_a_prefix_a_version_and_the_class_name_are_the_same_corpus(folder, name):
    corpus = ParallelCorpus.from_tfds(name, "test", data_dir=folder)
    assert list(corpus.targets) == [f"sentence {n}" for n in range(SIZES["test"])]


def test_a_split_may_be_a_slice_or_a_sum(folder):
    read = ParallelCorpus.from_tfds
    part = read("toy_translate/de-en", "train[2:5]", data_dir=folder)
    assert list(part.targets) == ["sentence 2", "sentence 3", "sentence 4"]
    both = read("toy_translate/de-en", "validation+test", data_dir=folder)
    assert len(both) == SIZES["validation"] + SIZES["test"]


def test_what_was_prepared_once_is_read_without_its_builder(folder, monkeypatch):
    from tensorflow_datasets.core import registered

    monkeypatch.delitem(registered._DATASET_REGISTRY, "toy_translate")
    with pytest.raises(tfds.core.registered.DatasetNotFoundError):
        tfds.builder_cls("toy_translate")
    corpus = ParallelCorpus.from_tfds("toy_translate/de-en", "test", data_dir=folder)
    assert list(corpus.sources) == [source_of(n) for n in range(SIZES["test"])]


def test_sentences_of_two_lines_stay_one_pair_on_the_way_to_batches(folder):
    corpus = ParallelCorpus.from_tfds("toy_translate/de-en", data_dir=folder)
    tokenizer = Tokenizer.train_separate(corpus.sources, corpus.targets, 290)
    data = batches(corpus, tokenizer, shuffle=False)
    texts = [text for inputs, labels, _ in data for text in tokenizer.decode(labels)]
    assert sorted(texts) == sorted(corpus.targets)
    assert tokenizer.encode(["a\nb"]) == tokenizer.encode(["a b"])


def test_a_pair_without_text_is_left_out_with_its_number(tmp_path):
    corpus = ParallelCorpus.from_tfds("empty_sides", data_dir=tmp_path)
    (empty,) = corpus.report["empty"]
    assert sorted([empty, *corpus.line_numbers]) == [1, 2, 3]
    assert sorted(corpus) == [("left", "right"), ("links", "rechts")]


def test_split_names_are_known_without_a_download_once_the_corpus_is_here(
    folder, tmp_path
):
    assert set(our_tfds.split_names("tfds:toy_translate/de-en", folder)) == set(SIZES)
    assert our_tfds.split_names("toy_translate/de-en", tmp_path) == ()
    assert our_tfds.split_names("ted_hrlr_translate/pt_to_en", tmp_path) == ()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="no corpus 'nope'"):
        our_tfds.split_names("nope", tmp_path)
    with pytest.raises(ValueError, match="not a translation"):
        our_tfds.split_names("mnist", tmp_path)


def test_every_corpus_we_name_is_a_translation_between_two_languages(tmp_path):
    for name in our_tfds.KNOWN:
        for part in tfds.builder_cls(name).builder_configs:
            assert our_tfds.split_names(f"{name}/{part}", tmp_path) == ()


TOY = "toy_translate/de-en"


@pytest.mark.parametrize(
    "names, message",
    [
        (
            ("nope", "nope/de-en", "", "tfds:", "two words", "hf:books/de-en", "a/b/c"),
            "There is no corpus {bare!r} in tensorflow-datasets; translations are "
            "{known}.",
        ),
        (
            ("toy_translate", "toy_translate/en-de"),
            "This corpus has the configurations de-en, x-y; `reverse` swaps the "
            "languages. Received: {name!r}",
        ),
        (
            ("mnist", "ted_multi_translate", "many_ways", "no_keys", "no_translation"),
            "{name} is not a translation between two languages, as these are: {known}.",
        ),
    ],
)
def test_other_names_are_refused_with_those_there_are(tmp_path, names, message):
    for name in names:
        with pytest.raises(ValueError) as refused:
            ParallelCorpus.from_tfds(name, data_dir=tmp_path)
        bare, known = name.removeprefix("tfds:"), ", ".join(our_tfds.KNOWN)
        assert str(refused.value) == message.format(name=name, bare=bare, known=known)


@pytest.mark.parametrize(
    "split", ["dev", "", "train[", "train[a:]", "train[2000:]", "train[:0]"]
)
def test_an_unknown_or_empty_split_is_refused_with_those_there_are(folder, split):
    with pytest.raises(ValueError) as refused:
        ParallelCorpus.from_tfds(TOY, split, data_dir=folder)
    sizes = ", ".join(f"{known} of {size} examples" for known, size in SIZES.items())
    assert str(refused.value) == f"{TOY} has {sizes}. Received: split={split!r}"


@pytest.mark.parametrize(
    "name, message",
    [
        (
            f"{TOY}:9.9.9",
            f"{TOY}:9.9.9: Dataset toy_translate cannot be .*only: 1.2.3.",
        ),
        ("by_hand", "by_hand cannot be prepared: Manual directory .*"),
        ("not_utf8", "not_utf8 train, b, line [12]: byte 0xe9 at column 4 is not UT.*"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, name, message):
    with pytest.raises(ValueError) as refused:
        ParallelCorpus.from_tfds(name, data_dir=tmp_path)
    assert re.fullmatch(message, str(refused.value))


def test_no_answer_from_the_network_is_one_sentence_with_the_address(
    download, capfd, recwarn
):
    url = "http://localhost:9/corpus.tgz"
    message = f"could not be downloaded: no answer from {url}; is there a network"
    with pytest.raises(ConnectionError, match=rf"^downloaded {message}\?$"):
        download(url)
    out, err = capfd.readouterr()
    assert out == "" and "Retrying" not in err and "%|" not in err
    assert len(recwarn) == 0


def test_a_server_without_the_file_is_one_sentence_with_the_address(download, server):
    with pytest.raises(ConnectionError) as refused:
        download(server)
    message = rf"downloaded could not be downloaded: .*{re.escape(server)}.*"
    assert re.fullmatch(message, str(refused.value))


def test_a_file_with_another_checksum_is_refused(download, tmp_path, monkeypatch):
    from tensorflow_datasets.core.download import checksums

    file = tmp_path / "corpus.txt"
    file.write_text("not what it was")
    expected = checksums.UrlInfo(checksum="0" * 64, size=5, filename="corpus.txt")
    monkeypatch.setattr(Downloaded, "url_infos", {str(file): expected})
    with pytest.raises(ValueError) as refused:
        download(str(file))
    message = f"downloaded: Artifact {file}, downloaded to .*has wrong checksum."
    assert re.fullmatch(message, str(refused.value))


def test_preparing_says_nothing_on_stdout_and_draws_no_bars(tmp_path, capfd):
    from tensorflow_datasets.core.utils import tqdm_utils

    assert tqdm_utils._active, "what tensorflow-datasets does alone"
    ParallelCorpus.from_tfds("any_pair", data_dir=tmp_path)
    out, err = capfd.readouterr()
    assert out == "" and "%|" not in err and "it/s" not in err
    assert tqdm_utils._active, "and goes on doing for others"


@pytest.mark.parametrize("package", ["tensorflow_datasets", "importlib_resources"])
def test_a_missing_package_names_the_extra(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    for ask in (ParallelCorpus.from_tfds, our_tfds.split_names):
        with pytest.raises(ImportError, match=r'pip install "\.\[corpora\]"'):
            ask("ted_hrlr_translate/pt_to_en")

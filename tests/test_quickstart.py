from unittest import mock

import pytest

from keras_vanilla import quickstart
from keras_vanilla._about import About


@pytest.fixture(scope="module")
def corpora():
    return quickstart.corpora("en", "fr")


def test_corpora_are_disjoint(corpora):
    train, validation, tests = corpora
    texts = [list(corpus) for corpus in (validation, *tests.values())]
    unseen = [pair for pairs in texts for pair in pairs]
    assert len(set(unseen)) == len(unseen) == 300 + 10 + 100 + 300 + 300
    for side in (0, 1):
        seen = {pair[side] for pair in train}
        assert not seen & {pair[side] for pair in unseen}


def test_small_numbers_are_frequent(corpora):
    train = list(corpora.train)
    assert train.count(("zero", "zéro")) == train.count(("one", "un")) == 20
    below_100 = sum(" " not in source for source, _ in train)
    assert below_100 == 20 * 90
    dates = sum("day, " in source for source, _ in train)
    assert len(train) / 3 < dates < len(train) / 2


class Fake:
    """A translator that knows all translations but some."""

    about = quickstart.ABOUT

    def __init__(self, corpora, wrong=()):
        pairs = (pair for test in corpora.tests.values() for pair in test)
        self.known = dict(pairs) | dict.fromkeys(wrong, "et onze")
        self.saved = []

    def translate(self, texts):
        return [self.known[text] for text in texts]

    def replace(self, about):
        self.about = about
        return self

    def save(self, path):
        self.saved.append(path)


@pytest.fixture
def run(corpora, monkeypatch, tmp_path):
    """Runs the quickstart with a fake translator, and without exports."""
    export = mock.Mock()

    def run(fake):
        monkeypatch.setattr(quickstart, "train_translator", lambda *_, **__: fake)
        monkeypatch.setattr(quickstart, "corpora", lambda *_: corpora)
        monkeypatch.setattr(quickstart, "export", export)
        return quickstart.run(tmp_path / "out")

    return run


def test_hint_was_just_translated(run, corpora, capsys):
    fake = Fake(corpora, wrong=["six"])
    with pytest.raises(RuntimeError, match="Received: 90.0% of 0 to 99"):
        run(fake)
    assert "six -> et onze  WRONG: six\n" in capsys.readouterr().out
    assert not fake.saved

    longest = max(corpora.tests["1,000 to 9,999"].sources, key=len)
    fake = Fake(corpora, wrong=[longest])
    exact = run(fake)
    assert exact["1,000 to 9,999"] == 299 / 300 and exact["dates"] == 1
    out = capsys.readouterr().out
    assert "1,000 to 9,999: 299 of 300 unseen items are exact" in out
    examples = fake.about.examples
    assert longest not in examples and len(examples) == len(quickstart.KINDS)
    assert f"translator.tflite '{examples[0]}'" in out
    assert fake.saved and fake.about.updated(About(examples=[])) == (
        quickstart.ABOUT.updated(About(examples=[]))
    )

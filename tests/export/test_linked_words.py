"""Words with their sources, and marked text: cases that the web's tests run as well."""

import html.parser
import importlib
import json
import random
import re

import pytest
import word_reversal
from marked_texts import CASES, FOLDER, marked_case, marked_in_python

from keras_vanilla import export

CASES = json.loads(CASES.read_text(encoding="utf-8"))
VOID = {"br", "img"}


@pytest.fixture(autouse=True)
def callers(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


def imported(name):
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def file(trained_translator, tmp_path_factory):
    """A file with all additional outputs, whose translations have no loops."""
    path = tmp_path_factory.mktemp("words") / "translator.tflite"
    settings = {"max_bytes": 80, "max_source_length": 20, "max_length": 24}
    settings |= {"quantize": None, "check": "structure", "no_loops": True}
    outputs = ["alignment", "confidence"]
    export.tflite(trained_translator, path, outputs=outputs, **settings)
    return path


def outputs_of(case):
    """What the signature gives."""
    ends, end = [], 0
    for text, *_ in case["tokens"]:
        ends.append(end := end + len(text.encode()))
    return {
        "text_ends": case.get("bytes", ends),
        "source_spans": [token[1:3] for token in case["tokens"]],
        "confidence": [token[3] for token in case["tokens"]],
    }


@pytest.mark.parametrize("case", CASES["words"], ids=lambda case: case["source"])
def test_words_have_their_sources(case):
    source, text = case["source"], "".join(token[0] for token in case["tokens"])
    words = imported("words").words_of_sentence(source, text, outputs_of(case))
    assert [
        [text[w.begin : w.end], source[w.source_begin : w.source_end], w.confidence]
        for w in words
    ] == case["expected"]


def test_absent_outputs_are_none():
    (case, *_), of = CASES["words"], imported("words").words_of_sentence
    outputs, text = outputs_of(case), "drie twee een"
    probabilities = outputs.pop("confidence")
    (first, *_) = of(case["source"], text, outputs)
    assert first == (0, 4, 8, 13, None)
    outputs["confidence"] = probabilities
    del outputs["source_spans"]
    (first, *_) = of(case["source"], text, outputs)
    assert first == (0, 4, None, None, 0.8)
    assert of(case["source"], text, {"text": text}) == []


@pytest.fixture
def translated(monkeypatch):
    return lambda case: marked_in_python(case, monkeypatch)


@pytest.mark.parametrize("case", CASES["marked"], ids=lambda case: case["text"])
def test_marks_go_with_their_words(case, translated):
    assert translated(case) == case["expected"]


class Parser(html.parser.HTMLParser):
    """The tags of a text; one that is closed by another's end is an error."""

    def __init__(self, text):
        super().__init__()
        self.opened, self.texts = [], []
        self.feed(text)
        self.close()
        assert not self.opened

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_startendtag(self, tag, attrs):
        pass


@pytest.mark.parametrize("seed", range(300))
def test_each_mark_occurs_once_and_balanced(seed, translated):
    case = marked_case(random.Random(seed))
    text = translated(case)
    for tag in case["tags"]:
        assert text.count(tag) == 1, (case, text)
    for kept in case["kept"]:
        assert text.count(kept) == 1, (case, text)
    Parser(case["text"])
    Parser(text)
    words = re.findall(r"w\d*[a-z]+", re.sub(r"<[^>]*>", "", text))
    assert sorted(words) == sorted(case["others"]), (case, text)


def test_pair_marks_same_words(translated):
    """Where no element is inside out: words of an element stay in it."""
    for seed in range(100):
        draw = random.Random(seed)
        count = draw.randint(1, 9)
        begin, end = sorted(draw.sample(range(count + 1), 2))
        words = [f"w{chr(97 + i)}" for i in range(count)]
        order = draw.sample(range(count), count)
        inside = sorted(order.index(i) for i in range(begin, end))
        marked = [*words[:begin], "<b>" + " ".join(words[begin:end]) + "</b>"]
        case = {
            "text": " ".join([*marked, *words[end:]]),
            "translation": " ".join(words[i] for i in order),
            "links": order,
        }
        (within,) = re.findall("<b>(.*)</b>", translated(case))
        hull = order[inside[0] : inside[-1] + 1]
        assert within.split() == [words[i] for i in hull]


def test_file_without_links_is_refused():
    marked, words = imported("marked_text"), imported("words")
    translation = imported("translate").Translation
    unlinked = [words.Word(0, 3, None, None, 0.5)]
    for given in ([], unlinked):
        with pytest.raises(ValueError, match="--outputs alignment"):
            marked.translate_marked(
                lambda text, given=given: translation("een", False, given, []),
                "<b>one</b>",
            )


@pytest.mark.full
@pytest.mark.parametrize("module", ["translate", "translate_compiled"])
def test_file_gives_words_and_carries_marks(module, file):
    """The toy language has its words in reverse order: each one's partner is known."""
    right, total = 0, 0
    text = "\n one two.  three four five\n\nsix. "
    with imported(module).Translator(file) as translate:
        for sentence in word_reversal.english_sentences(40, 4, range(2, 7)):
            result = translate(sentence)
            if result.text == word_reversal.dutch(sentence):
                pairs = [
                    (
                        result.text[w.begin : w.end],
                        sentence[w.source_begin : w.source_end],
                    )
                    for w in result.words
                ]
                expected = zip(
                    result.text.split(), reversed(sentence.split()), strict=True
                )
                right += sum(a == b for a, b in zip(pairs, expected, strict=True))
                total += len(pairs)
                assert all(0 < word.confidence <= 1 for word in result.words)
        assert total > 100 and right / total > 0.9
        result = translate(text)
        said = [result.text[w.begin : w.end] for w in result.words]
        assert said == result.text.split()
        halves = [word.begin < result.text.index("\n") for word in result.words]
        for word, is_first in zip(result.words, halves, strict=True):
            line = text.strip().split("\n\n")[not is_first]
            assert text[word.source_begin : word.source_end] in line.split()
        translate_marked = imported("marked_text").translate_marked
        marked = translate_marked(translate, "<b>one two</b> three")
        assert marked == "drie <b>twee een</b>"


@pytest.mark.parametrize("text", ["a-" * 50_000, "1-" * 50_000 + "a", "3a:" * 50_000])
def test_marks_of_long_text_are_read_once(text):
    """Read again and again from each of its words, this would take minutes."""
    marks = imported("marks").read_marks(f"{text} 3.14")[1]
    assert marks[-1].opening == "3.14"


def test_vowel_signs_belong_to_their_words():
    text = "हिन्दी2 है 3.5 नी@की.भा"
    openings = [mark.opening for mark in imported("marks").read_marks(text)[1]]
    assert openings == ["हिन्दी2", "3.5", "नी@की.भा"]

"""Terms that translations must contain, and what they copy."""

import re
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from pieces_in_text import encoded_pieces
from teacher_forcing import forced_inputs
from tiers import in_full

from keras_vanilla.decoding.attended_source import alignment_layer
from keras_vanilla.translation.required_terms import RequiredTerms, warn_unmet

TERMS = {"two": "groot", "three": "steen rivier", "zero": "klein"}
TEXTS = ["one two three", "", "seven", "two two tree", "tree one zero river"]
ALL_TEXT = 0, 99, 99  # a place
ALL = ("url", "email", "tag", "number")


def has(text, term, times=1):
    return len(re.findall(rf"(?<!\w){re.escape(term)}(?!\w)", text)) >= times


@pytest.fixture(scope="module")
def found(trained_translator):
    """What is found in a text, how often, by terms and kinds of what is copied."""

    def of_text(text, terms=None, copy=()):
        parts = trained_translator.tokenizer, trained_translator.model
        places = RequiredTerms(*parts, terms, copy).of_text(text)
        return {what: len(spans) for what, spans in places.items()}

    return of_text


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Der Hund schläft.", {"dog": 1}),
        ("Hund, Hund und Hunde", {"dog": 2}),
        ("der hund", {}),
        ("DAS HAUS am Hausboot", {"house": 1}),
        ("Das Haus am See", {"lake house": 1}),
        ("Das Haus am Seeufer", {"house": 1}),
        ("Ein Hund (ﬁn)", {"dog": 1, "end": 1}),
        ("我的狗", {"canine": 1}),
        ("rotes Haus rotes Haus", {"red": 2, "house": 2}),
        ("See haus am  see", {"lake house": 1}),
    ],
)
def test_terms_are_found_as_whole_words(found, text, expected):
    terms = {
        "Hund": "dog",
        "haus": "house",
        "haus am see": "lake house",
        "fin": "end",
        "狗": "canine",
        "rotes": "red",
    }
    assert found(text, terms) == expected


@pytest.mark.parametrize(
    "term, text, times",
    [
        ("it's", "It’s here, it's there, ITʼS", 3),
        ("it’s", "it's", 1),
        ("It's", "It’s here, it's there", 1),
        ("straße", "STRASSE und Straße", 2),
        ("strasse", "straße", 1),
        ("Straße", "STRASSE", 0),
        ("well-known", "well‑known", 1),
    ],
)
def test_terms_ignore_the_form_of_apostrophes_and_case(found, term, text, times):
    assert found(text, {term: "x"}) == ({"x": times} if times else {})


def test_term_as_it_is_written_is_found_before_one_of_any_case(found):
    terms = {"reich": "rich", "Reich": "realm"}
    assert found("Reich und reich und REICH", terms) == {"realm": 1, "rich": 2}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("siehe https://a.org/b?c=1, bitte", ["https://a.org/b?c=1"]),
        ("(www.a.de)", ["www.a.de"]),
        ("an eva.m@mail.a.org.", ["eva.m@mail.a.org"]),
        ("<b>fett</b> und {name}, {{x}}", ["<b>", "</b>", "{name}", "{{x}}"]),
        ("%s von %1$s, 5 %sehr", ["%s", "%1$s", "5"]),
        ("am 3.12.2024 um 17:45 Uhr", ["3.12.2024", "17:45"]),
        ("1.000,50 oder -7 oder A4", ["1.000,50", "-7"]),
        ("von 10-12.", ["10-12"]),
        ("nichts", []),
        ("2.5cm, 3,000kg, 2023-11-05T08:30, 1'000'000x, 2 000km, 45°C", []),
        ("£315 a month, 7.5% or $2,345.60", ["£315", "7.5%", "$2,345.60"]),
        ("+5 oder -3, 12 345,60 und 1'000", ["+5", "-3", "12 345,60", "1'000"]),
        ("07 11 22 33 44, +49 30 1234 567", ["07 11 22 33 44", "+49 30 1234 567"]),
        ("+49 30 123456", ["+49 30 123456"]),
        ("Call 030 12345678.", ["030 12345678"]),
        ("(Fax 0171-1234567), 5 men", ["0171-1234567", "5"]),
        ("Is it +44 171 2345678? At 9.", ["+44 171 2345678", "9"]),
        ("+1 202 5550143-12 or 040 98765432", ["+1 202 5550143-12", "040 98765432"]),
        (
            "+0.12345% and +12.34567 km, 0 12345",
            ["+0.12345%", "+12.34567", "0", "12345"],
        ),
        (
            "on 05.12.2024 17:45, for 07.08.2025 90000€",
            [
                "05.12.2024",
                "17:45",
                "07.08.2025",
                "90000€",
            ],
        ),
        ("in 1999 200 men; 5, 6.", ["1999", "200", "5", "6"]),
    ],
)
def test_copied_text_is_found(found, text, expected):
    assert found(text, copy=ALL) == dict.fromkeys(expected, 1)


def test_terms_are_not_looked_for_in_what_is_copied(found):
    terms = {"haus": "house", "3 Haus": "three houses"}
    assert found("haus www.haus.de", terms, ["url"]) == {"house": 1, "www.haus.de": 1}
    assert found("3 Haus", terms, ALL) == {"three houses": 1}


@pytest.mark.parametrize("beam_size", [1, *in_full(3)])
def test_translations_have_their_terms(trained_translator, beam_size):
    plain = trained_translator.translate(TEXTS, beam_size=beam_size)
    bound = trained_translator.translate(TEXTS, beam_size=beam_size, terms=TERMS)
    assert has(bound[0], "groot") and has(bound[0], "steen rivier")
    assert has(bound[3], "groot", times=2) and has(bound[4], "klein")
    assert bound[1:3] == plain[1:3] and bound[0] != plain[0]


def test_own_words_change_nothing(trained_translator):
    """Terms that the model says itself."""
    plain = trained_translator.translate(TEXTS)
    terms = {"one": "een", "three": "drie", "river": "rivier"}
    assert trained_translator.translate(TEXTS, terms=terms) == plain


def test_without_a_term_in_any_text_the_search_is_the_plain_one(
    trained_translator, monkeypatch
):
    given, search = [], type(trained_translator._compiled).__call__

    def watched(self, *arguments, **inputs):
        given.append(set(inputs))
        return search(self, *arguments, **inputs)

    monkeypatch.setattr(type(trained_translator._compiled), "__call__", watched)
    trained_translator.translate(["seven"], terms=TERMS, copy=ALL)
    trained_translator.translate(["two"], terms=TERMS)
    assert "terms" not in given[0] and "terms" in given[1]


def test_term_within_another_is_a_term_of_its_own(trained_translator):
    terms = {"two": "huis", "three": "huis boom"}
    [text] = trained_translator.translate(["two three"], terms=terms)
    assert has(text, "huis", times=2) and has(text, "huis boom")


def test_translations_have_copied_text(trained_translator):
    texts = ["two 4711", "one www.a.org/b three", "mail a.b@c.org <b>tree</b>"]
    found = trained_translator.translate(texts, copy=ALL)
    assert has(found[0], "4711") and "www.a.org/b" in found[1]
    assert all(each in found[2] for each in ("a.b@c.org", "<b>", "</b>"))
    assert "4711" not in trained_translator.translate(texts)[0]


def test_sentences_of_a_text_have_their_own_terms(trained_translator):
    text = "one two. four two. two two two. five zero."
    [split] = trained_translator.translate([text], on_too_long="split", terms=TERMS)
    assert has(split, "groot", times=5) and has(split, "klein")


@pytest.mark.full
def test_terms_go_with_a_prefix_n_best_and_no_loops(trained_translator):
    [found] = trained_translator.stream(
        ["one two three"],
        terms={**TERMS, "one": "een een een een een"},
        target_prefix=["zes zes zes zes zes"],
        beam_size=3,
        n_best=3,
        no_loops=True,
    )
    assert len(found) == 3
    for each in found:
        assert each.text.startswith("zes zes zes zes zes")
        assert has(each.text, "steen rivier") and has(each.text, "een een een een een")
        assert list(each.unmet) == []


def test_terms_that_cannot_be_met_are_reported(trained_translator, recwarn):
    warn_unmet([[], ()])
    assert not recwarn
    terms = {"two": "groot " * 70, "three": "steen"}
    texts = ["seven", "one two three"]
    [_, [found]] = trained_translator.stream(texts, terms=terms)
    assert found.unmet == [terms["two"].strip()] and has(found.text, "steen")
    with pytest.warns(
        UserWarning, match="1 of 2 translations lack a term: texts 2; the first lacks"
    ):
        translations = trained_translator.translate(texts, terms=terms)
    assert translations[1] == found.text


def test_impossible_terms_are_unmet(trained_translator):
    class Forbidding:
        def __init__(self, model, ids):
            self.forbidden_ids = ids
            names = "pad_id", "start_id", "end_id", "max_length"
            vars(self).update({name: getattr(model, name) for name in names})

    tokenizer, model = trained_translator.tokenizer, trained_translator.model
    ids = tokenizer.encode_target(["groot"])[0][:1]
    required = RequiredTerms(tokenizer, Forbidding(model, ids), TERMS)
    row = required.of_text("two three")
    terms = required.batch([row], [[5, 6, 3]], [[]], None, 3)
    assert (terms.needed[0] > 0).sum() == 1  # of "steen rivier" alone
    said = tokenizer.encode_target(["steen rivier"])[0]
    assert required.unmet(row, said, "steen rivier") == ["groot"]
    assert required.unmet(row, said[:1], "groot") == ["steen rivier"]
    assert required.batch([{"groot": [ALL_TEXT]}], [[5, 6, 3]], [[]], None, 3) is None


@pytest.mark.parametrize("text", ["one two €3 tree", "éé two  tree two", "two"])
def test_places_are_the_source_tokens_of_terms(trained_translator, text):
    tokenizer, model = trained_translator.tokenizer, trained_translator.model
    required = RequiredTerms(tokenizer, model, TERMS)
    (source,) = tokenizer.encode([text])
    row = required.of_text(text)
    terms = required.batch([row], [source], [[]], None, len(source) + 2)
    found = set(np.flatnonzero(terms.places[0, 0]).tolist())
    peer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source_model)
    pieces = list(enumerate(encoded_pieces(peer, text.encode())))
    expected = {
        i
        for word in re.finditer(b"two", text.encode())
        for i, piece in pieces
        if piece.begin < word.end() and piece.end > word.start()
    }
    assert expected and found == expected


def test_forms_follow_a_space_and_a_sign(trained_translator):
    tokenizer = trained_translator.tokenizer
    required = RequiredTerms(tokenizer, trained_translator.model, TERMS)
    terms = required.batch([{"groot": [ALL_TEXT]}], [[5, 6, 3]], [[]], None, 3)
    for text, times in (
        ("groot", 1),
        ("een groot.", 1),
        ("een (groot) groot", 2),
        ("groote", 0),
        ("eengroot", 0),
        ("een.groot", 0),
        ("een-groot", 1),
    ):
        ids = tokenizer.encode_target([text])[0]
        lacks = required.unmet({"groot": [ALL_TEXT] * (times + 1)}, ids, text)
        assert lacks == ["groot"]
        row = {"groot": [ALL_TEXT] * times}
        assert not times or required.unmet(row, ids, text) == []
    assert terms.ids.shape[:2] == (1, 1) and terms.ids.shape[3] == 5


def test_example_of_the_guide_runs(trained_translator):
    guide = Path(__file__).parents[2] / "keras_vanilla/export/README.md"
    _, section = guide.read_text(encoding="utf-8").split("### Terms that must be kept")
    example = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    found = eval(example, {"translator": trained_translator})
    assert has(found[0], "canine") and has(found[0], "12")


def test_misplaced_term_is_a_doubt(trained_translator):
    """By the weights of the whole model, in the layer that aligns."""
    tokenizer, model = trained_translator.tokenizer, trained_translator.model
    layer = alignment_layer(model.num_decoder_layers)
    texts = ["one two three", "two one tree", "seven two", "three river two one"]
    terms, kinds = {"two": "steen"}, set()
    stream = trained_translator.stream(texts, terms=terms, beam_size=6, n_best=6)
    (form,) = tokenizer.encode_target(["steen"])
    for text, hypotheses in zip(texts, stream, strict=True):
        (source,) = tokenizer.encode([text])
        pieces = encoded_pieces(tokenizer._source, text.encode())
        begin = text.index("two")
        places = {
            i for i, x in enumerate(pieces) if x.begin < begin + 3 and x.end > begin
        }
        for each in hypotheses:
            weights = model.attention_weights(forced_inputs(model, source, each.ids))
            weights = weights[f"decoder/{layer}/cross"][0].mean(axis=0)  # (T, S)
            size = len(form) - 1
            starts = [
                i for i in range(len(each.ids)) if each.ids[i : i + size] == form[:-1]
            ]
            expected = not any(weights[i, :-1].argmax() in places for i in starts)
            assert ("misplaced" in each.doubts) == expected
            kinds.add(expected)
    assert kinds == {True, False}

import io
import itertools
import random
import re
import unicodedata
from collections import Counter

import numpy as np
import pytest
import sentencepiece

from keras_vanilla._graphemes import words_of_letters
from keras_vanilla.data import ParallelCorpus, TokenCache, batches
from keras_vanilla.data.noise import (
    BESIDE,
    JOINER,
    THINGS,
    as_people_write,
    lines_with_noise,
    random_thing,
    with_thing_to_copy,
)
from keras_vanilla.tokenizer import Tokenizer

NOUNS = "Hund Katze Vogel Mann Frau Kind Baum Haus".split()
SOURCES = [
    f"Der {NOUNS[n % 8]} Nummer {n} läuft, {'sehr ' * (n % 5)}schnell."
    for n in range(400)
]
TARGETS = [f"Number {n} runs, {'very ' * (n % 5)}fast." for n in range(400)]
SETTINGS = {"tokens_per_batch": 600, "noise": True}


@pytest.fixture(scope="module")
def corpus():
    return ParallelCorpus(SOURCES, TARGETS)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([*SOURCES, *TARGETS], vocabulary_size=400)


def texts(tokenizer, batch):
    """The pairs of a batch as text."""
    inputs, labels, _ = batch
    rows = [[*row[row != 0]] for row in inputs["source_ids"]]
    return list(
        zip(tokenizer.decode_source(rows), tokenizer.decode(labels), strict=True)
    )


def same(one, other):
    pairs = zip(one, other, strict=True)
    return all(
        np.array_equal(a["source_ids"], b["source_ids"]) and np.array_equal(x, y)
        for (a, x, _), (b, y, _) in pairs
    )


def test_epochs_have_every_pair_and_new_noise(corpus, tokenizer):
    data = batches(corpus, tokenizer, **SETTINGS)
    stream, steps, epochs, labels = iter(data), data.steps_per_epoch, [], 0
    for first in range(0, 4 * steps, steps):
        found = list(itertools.islice(stream, steps))
        labels += sum(weights.sum() for *_, weights in found)
        epochs.append([pair for batch in found for pair in texts(tokenizer, batch)])
        lines = map(data.line_numbers, range(first, first + steps))
        counts = Counter(itertools.chain(*lines))
        assert set(counts) == set(range(1, 401))
        assert counts.total() == len(epochs[-1])
    assert data.tokens_per_epoch == pytest.approx(labels / 4, rel=0.1)
    known = dict(zip(SOURCES, TARGETS, strict=True))
    changed = [set(epoch) - set(known.items()) for epoch in epochs]
    assert len(changed[0] & changed[1]) < len(changed[0]) / 10

    pairs = list(itertools.chain(*epochs))
    plain = [source for source, target in pairs if known.get(source) == target]
    upper = [s for s, _ in pairs if s.upper() == s and "DER" in s]
    of_others = {text.upper(): text for text in SOURCES}
    assert all(known[of_others[source]] in TARGETS for source in upper)
    copied = [pair for pair in pairs if pair[1] not in TARGETS]
    each = 4 * len(SOURCES)
    assert 0.6 < len(plain) / each < 0.75
    assert 0.07 < len(upper) / each < 0.13
    assert 0.2 < len(copied) / each < 0.3
    assert 0.45 < len(plain) / len(pairs) < 0.55


def test_noise_depends_on_seed_and_step(corpus, tokenizer, tmp_path):
    data = batches(corpus, tokenizer, **SETTINGS)
    steps = data.steps_per_epoch
    found = list(itertools.islice(data, steps + 9))
    again = batches(corpus, tokenizer, **SETTINGS)
    again.start_at(steps - 3)
    assert same(itertools.islice(again, 12), found[steps - 3 :])
    other = batches(corpus, tokenizer, seed=1, **SETTINGS)
    assert not same(itertools.islice(other, 5), found[:5])
    assert len({other.digest, again.digest, batches(corpus, tokenizer).digest}) == 3
    (tmp_path / "a").write_text("\n".join(SOURCES), encoding="utf-8")
    (tmp_path / "b").write_text("\n".join(TARGETS), encoding="utf-8")
    cache = TokenCache.make(tmp_path / "a", tmp_path / "b", tokenizer, tmp_path / "c")
    assert same(itertools.islice(batches(cache, tokenizer, **SETTINGS), 9), found[:9])


@pytest.mark.parametrize("static", [False, True])
def test_batches_keep_token_budget(corpus, tokenizer, static):
    data = batches(
        corpus, tokenizer, static_shapes=static, max_tokens=60, sampling=0.3, **SETTINGS
    )
    found = list(itertools.islice(data, data.steps_per_epoch))
    assert max(labels.size for _, labels, _ in found) <= 600
    assert max(inputs["source_ids"].shape[1] for inputs, *_ in found) <= 60
    shapes = {labels.shape for _, labels, _ in found}
    assert not static or len(shapes) <= 20


def test_one_width_has_one_shape(corpus, tokenizer):
    data = batches(
        corpus, tokenizer, static_shapes=True, widths=[64], max_tokens=64, **SETTINGS
    )
    found = itertools.islice(data, data.steps_per_epoch)
    assert {labels.shape for _, labels, _ in found} == {(600 // 64, 64)}
    assert data.dataset().element_spec[1].shape == (600 // 64, 64)


def test_unknown_text_is_not_changed():
    def no_bytes(lines):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=200,
            hard_vocab_limit=False,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
        )
        return Tokenizer(model.getvalue())

    tokenizer = no_bytes([*SOURCES, *TARGETS])
    odd = [f"{text} 猫" if n % 2 else text for n, text in enumerate(SOURCES)]
    data = batches(ParallelCorpus(odd, TARGETS), tokenizer, **SETTINGS)
    expected = {tuple(ids) for ids in tokenizer.encode(odd[1::2])}
    found = [
        tuple(row[row != 0].tolist())
        for inputs, *_ in itertools.islice(data, data.steps_per_epoch)
        for row in inputs["source_ids"]
    ]
    unknown = [ids for ids in found if 1 in ids]
    assert expected <= set(found)
    # Beside them are only things to copy that this tokenizer does not know.
    assert sum(ids in expected for ids in unknown) > 0.7 * len(unknown)


def test_language_tags_stay_first():
    tagged = [f"<2en> {text}" for text in SOURCES]
    tokenizer = Tokenizer.train(
        [*SOURCES, *TARGETS], 400, user_defined_symbols=["<2en>", "<2fr>"]
    )
    data = batches(ParallelCorpus(tagged, TARGETS), tokenizer, **SETTINGS)
    found = itertools.islice(data, data.steps_per_epoch)
    pairs = [pair for batch in found for pair in texts(tokenizer, batch)]
    assert all(source.startswith("<2en>") for source, _ in pairs)
    assert any(source.startswith("<2en> DER") for source, _ in pairs)
    assert not any("<2en>" in target for _, target in pairs)


def test_people_write_with_slips():
    text, chance = "Er sagt, I (heute) und daß es regnet.", random.Random(3)
    counts = Counter(as_people_write(text, "x", chance, [])[0] for _ in range(5000))
    assert 3200 < counts.pop(text) < 3600
    # The small first letter of this text leaves it in lower case, too.
    assert 600 < counts.pop(text.lower()) < 800
    assert 120 < counts.pop("Er Sagt, I (heute) Und Daß Es Regnet.") < 280
    assert 120 < counts.pop("Er sagt I heute und daß es regnet") < 280
    assert 400 < counts.total() < 600
    assert all(abs(len(typo) - len(text)) <= 2 for typo in counts)
    swapped = [typo for typo in counts if sorted(typo) == sorted(text)]
    assert len(swapped) > 20


def test_marks_become_typographic():
    text, chance = 'Ann\'s "yes" - it\'s "no"', random.Random(0)
    noisy = {as_people_write(text, "y", chance, [])[0] for _ in range(300)}
    assert {f"Ann’s “yes” {dash} it’s “no”" for dash in "–—"} | {text} <= noisy


@pytest.mark.parametrize("text", ["", "x", "5 + 5", "…"])
def test_texts_without_letters(text):
    chance = random.Random(0)
    for _ in range(100):
        assert as_people_write(text, "y", chance, [])[0] in {
            text,
            text.upper(),
            re.sub(r"[+…]", "", text),
        }
        source, target = with_thing_to_copy(text, text, chance, [])
        assert source == target != text
    assert BESIDE[0].change(text, "y", chance, []) == (text.upper(), "y")


def test_same_thing_is_in_both_texts():
    source, target = "Das ist Paris, nicht wahr.", "This is Paris, is it not."
    forms = (
        r"(.*)Das ist (.*),(.*) nicht wahr(.*)",
        r"(.*)This is (.*),(.*) is it not(.*)",
    )
    chance, places = random.Random(1), Counter()
    for _ in range(900):
        noisy = with_thing_to_copy(source, target, chance, ["Wort", "word"])
        if noisy[0] == noisy[1]:
            places["alone"] += 1
            continue
        parts = [
            re.fullmatch(*pair).groups() for pair in zip(forms, noisy, strict=True)
        ]
        assert parts[0] == parts[1] != ("", "Paris", "", ".")
        first, middle, comma, last = parts[0]
        changed = [first != "", middle != "Paris", comma != "", last != "."]
        names = "first", "middle", "comma", "last"
        places.update(itertools.compress(names, changed))
        places["after mark"] += last.startswith(". ")
        places["without mark"] += changed[-1] and "." not in last
        places["several"] += sum(changed) > 1
    assert min(places.values()) > 25 and len(places) == 8, places


def test_currency_stays_at_its_number():
    chance = random.Random(0)
    for _ in range(300):
        for text in as_people_write("It is $15.", "Es sind 15 $", chance, []):
            assert "15" not in text or "$15" in text or "15 $" in text
        source, target = with_thing_to_copy("It is $15.", "Es sind 15 $", chance, [])
        assert source == target or re.search(r"Es sind [\d,.]+ \$", target), target


def test_numbers_become_numbers_of_same_form():
    chance, lengths = random.Random(0), Counter()
    for _ in range(600):
        noisy = with_thing_to_copy(
            "um 85 für 3.14 und 1", "at 85 for 3.14 or 1", chance, []
        )
        numbers = re.search(r"um (\d+) für (\d\.\d\d) und 1", noisy[0])
        if numbers:
            assert "at {} for {} or 1".format(*numbers.groups()) in noisy[1]
            lengths[len(numbers[1])] += 1
    assert set(lengths) == set(range(1, 8))


@pytest.mark.parametrize("source", ["Wir sehen heute Paris.", "Ein Mann geht"])
def test_things_are_not_nested(source, monkeypatch):
    chance, made = random.Random(0), []

    def make(*_):
        made.append(chance.choice(["5 %", "*++]", "(>"]))
        return made[-1]

    monkeypatch.setattr("keras_vanilla.data.noise.random_thing", make)
    for _ in range(300):
        made.clear()
        noisy = with_thing_to_copy(source, "Paris is it!", chance, [])
        for text, thing in itertools.product(noisy, set(made)):
            assert text.count(thing) == made.count(thing)


def test_function_words_are_not_replaced():
    chance = random.Random(0)
    for _ in range(200):
        source, target = with_thing_to_copy("er ist in der", "he is in the", chance, [])
        assert source == target or "er ist in der" in source


# Words whose letters have combining marks, or that have joiners inside.
MARKED = {
    "Hindi": "कुत्ता पार्क में दौड़ रहा है",
    "Tamil": "நாய் பூங்காவில் ஓடுகிறது",
    "Thai": "สุนัขวิ่ง ที่นี่",
    "Hebrew": "שָׁלוֹם עֲלֵיכֶם",
    "Arabic": "مُحَمَّدٌ رَسُولٌ",
    "Persian": "می\u200cخواهم خانه\u200cها",
    "decomposed": unicodedata.normalize("NFD", "élan à l été déjà"),
}


def written(text):
    """The letters of a text, each with the marks and joiners after it."""
    joined = []
    for character in text:
        joins = unicodedata.category(character)[0] == "M" or character == "\u200c"
        if joins and joined:
            joined[-1] += character
        else:
            joined.append(character)
    return joined


@pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
def test_marks_stay_with_letters(text):
    chance, counts = random.Random(0), Counter()
    assert words_of_letters(text) == text.split()
    for _ in range(400):
        noisy, target = as_people_write(f"({text}).", text, chance, [])
        assert target == text
        counts[noisy.casefold()] += 1
        letters = {each.casefold() for each in written(noisy)}
        known = {each.casefold() for each in written(text)}
        assert letters <= {*known, *"().abcdefghijklmnopqrstuvwxyz"}
    assert counts[text.casefold()] > 5  # without punctuation
    for _ in range(100):
        thing, other = with_thing_to_copy(f"{text}.", text, chance, text.split())
        assert thing == other or set(text.split()) <= set(
            thing.replace(".", " ").split()
        )
        assert all(
            len(x) == 1 or x[-1] in "\ufe0f\u20e3" or x.casefold() in known
            for x in written(thing)
        )


@pytest.mark.parametrize(
    "kept", ["www.Example.com/2024", "Max.Muster@Example.com", "12:30", "2024-05-12"]
)
def test_addresses_and_numbers_stay_whole(kept):
    chance = random.Random(0)
    places = Counter()
    for _ in range(300):
        texts = f"Paris hat {kept}.", f"{kept} is of Paris."
        noisy = with_thing_to_copy(*texts, chance, ["word"])
        if noisy[0] != noisy[1]:
            assert all(kept in text for text in noisy)
            places["Paris" in noisy[0]] += 1
    assert min(places[True], places[False]) > 10


@pytest.mark.parametrize("make", THINGS)
def test_things_round_trip(make):
    tokenizer = Tokenizer.train(SOURCES, 400, user_defined_symbols=[JOINER])
    chance = random.Random(5)
    things = [make(chance, ["Straße", "garden"]) for _ in range(300)]
    assert len(set(things)) > 90 and all(text == text.strip() != "" for text in things)
    assert tokenizer.decode(tokenizer.encode_target(things)) == things


def test_things_have_every_form():
    chance = random.Random(0)
    things = [random_thing(chance, []) for _ in range(2000)]
    for form in (
        r"\d+",
        r"\d{4}-\d\d-\d\d",
        r"https?://[\w.]+(/\w+)*(\?\w+=\w+)?",
        r"[\w.]+@\w+\.\w+",
        r"[A-Z]\w+ [A-Z]\w+",
        "[👨👩🧑][🏻🏼🏽🏾🏿]?\u200d.\ufe0f?",
        "[🇦-🇿]{2}",
        "[☀-⭐]\ufe0f",
    ):
        assert any(re.fullmatch(form, text) for text in things), form


def test_noisy_lines_teach_upper_case():
    lines = list(lines_with_noise(SOURCES))
    assert [line for line in lines if line in SOURCES] == SOURCES
    assert len(lines) == 461
    assert "’" in lines[0] and lines[3] == SOURCES[0].lower()
    one, other = Tokenizer.train(SOURCES, 400), Tokenizer.train(lines, 400)
    upper = [text.upper() for text in SOURCES]
    lengths = [sum(map(len, each.encode(upper))) for each in (one, other)]
    assert lengths[1] < 0.9 * lengths[0]

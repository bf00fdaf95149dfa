"""Random marked texts, and translations of them that a fake translator gives."""

import importlib
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "export" / "python"
CASES = Path(__file__).with_name("linked_words.json")  # also those of words
KEPT = [
    "3.14",
    "2026-11-23",
    "https://a.example/x?y=1",
    "me@mail.example",
    "`run it`",
    "A4",
    "&amp;",
    "x86-64",
    "10:30",
]


def marked_case(draw):
    """A text with each tag and kept part once, and a translation of its words.

    Args:
        draw: random.Random.
    """
    kept = draw.sample(KEPT, draw.randint(0, 3))
    others = [f"w{chr(97 + i)}" for i in range(draw.randint(0, 8))]
    parts = [*kept, *others]
    draw.shuffle(parts)
    tags = []
    text = _marked(draw, parts, tags)
    plain_words = [word for part in parts for word in part.split()]
    order = [
        i for i, word in enumerate(plain_words) if draw.random() < 0.9 or word in others
    ]
    draw.shuffle(order)
    numbers = [i if plain_words[i] in others else _wrong(draw, i) for i in order]
    translation = " ".join(
        plain_words[i] if plain_words[i] in others else number
        for i, number in zip(order, numbers, strict=True)
    )
    return {
        "text": text,
        "translation": translation,
        "links": [
            i if draw.random() < 0.95 or plain_words[i] in kept else -1 for i in order
        ],
        "kept": kept,
        "others": others,
        "tags": tags,
    }


def marked_in_python(case, monkeypatch):
    """What `export/python/marked_text.py` gives for a case.

    Args:
        case: dict with `text`, `translation`, and in `links` for each of its words
            the number of the source's word; `plain`, if what is translated matters.
        monkeypatch: pytest's.
    """
    monkeypatch.syspath_prepend(FOLDER)
    marked_text = importlib.import_module("marked_text")
    return marked_text.translate_marked(lambda text: _linked(case, text), case["text"])


def _linked(case, text):
    assert text == case.get("plain", text)
    word = importlib.import_module("words").Word
    sources = [match.span() for match in re.finditer(r"\S+", text)]
    places = [match.span() for match in re.finditer(r"\S+", case["translation"])]
    words = [
        word(*place, *(sources[link] if link >= 0 else (0, 0)), 1.0)
        for place, link in zip(places, case["links"], strict=True)
    ]
    translation = importlib.import_module("translate").Translation
    return translation(case["translation"], False, words, [])


def _wrong(draw, i):
    """How a translator may change what it should copy: nothing that is kept."""
    return draw.choice(["?", "(!)", ".,"])


def _marked(draw, parts, tags):
    """Parts in random elements, nested; every tag has a number of its own."""
    if not parts:
        return _void(draw, tags)
    cut = draw.randint(0, len(parts))
    choice = draw.random()
    if choice < 0.35:
        name = draw.choice(["b", "i", "a"])
        opening, closing = f'<{name} id="{len(tags)}">', f"</{name}>"
        tags.append(opening)
        inner = _marked(draw, parts[:cut], tags)
        return f"{opening}{inner}{closing} {_marked(draw, parts[cut:], tags)}".strip()
    if choice < 0.5:
        return f"{_void(draw, tags)} {_marked(draw, parts, tags)}".strip()
    if len(parts) == 1:
        return parts[0]
    cut = max(1, min(cut, len(parts) - 1))
    left, right = _marked(draw, parts[:cut], tags), _marked(draw, parts[cut:], tags)
    return f"{left} {right}"


def _void(draw, tags):
    if draw.random() < 0.5:
        return ""
    tags.append(f'<br id="{len(tags)}">')
    return tags[-1]

"""Where required terms stand: does a word the model would not write replace its own?

    python tests/benchmarks/term_places.py MODEL --sentences FILE.en

For each noun of `TERMS`, the first sentences of FILE.en with it are translated with the
term on the left. It is in its place if it occurs once, the ordinary French words on the
right do not, and no text follows a final mark.
"""

import argparse
import re
from pathlib import Path

from keras_vanilla import Translator

TERMS = {  # English: (required, the words that it should replace)
    "boat": ("esquif", "bateau"),
    "book": ("bouquin", "livre"),
    "bread": ("miche", "pain"),
    "car": ("bagnole", "voiture"),
    "cats": ("minous", "chat"),
    "child": ("gamin", "enfant"),
    "clothes": ("fringues", "vêtement|habit"),
    "coffee": ("caoua", "café"),
    "country": ("contrée", "pays"),
    "doctor": ("toubib", "médecin|docteur"),
    "dog": ("cabot", "chien"),
    "fish": ("poiscaille", "poisson"),
    "food": ("bouffe", "nourriture"),
    "friend": ("copain", "ami"),
    "hat": ("galurin", "chapeau"),
    "horse": ("canasson", "cheval"),
    "house": ("baraque", "maison"),
    "job": ("gagne-pain", "travail|boulot|emploi"),
    "king": ("souverain", "roi"),
    "money": ("fric", "argent"),
    "police": ("flics", "police"),
    "teacher": ("instituteur", "professeur"),
    "train": ("convoi", "train"),
    "water": ("flotte", "eau"),
    "work": ("turbin", "travail|boulot"),
}
EACH = 8  # sentences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--sentences", required=True)
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--show", action="store_true", help="the others as well")
    options = parser.parse_args()
    translator = Translator.load(options.model)
    lines = Path(options.sentences).read_text(encoding="utf-8").splitlines()
    total = there = placed = 0
    for english, (term, ordinary) in TERMS.items():
        texts = [line for line in lines if occurs(english, line)]
        texts = [text for text in texts if 4 <= len(text.split()) <= 12][:EACH]
        said = translator.translate(
            texts, terms={english: term}, beam_size=options.beam_size
        )
        for text, translation in zip(texts, said, strict=True):
            is_placed = (
                occurs(term, translation) == 1
                and not occurs(f"(?:{ordinary})[sx]?", translation)
                and not re.search(r"[.!?] +\w", translation)
            )
            total, placed = total + 1, placed + is_placed
            there += occurs(term, translation) > 0
            if options.show and not is_placed:
                print(f"{english} -> {term}: {text} | {translation}")
    print(f"{total} sentences: there in {there}, in its place in {placed}")


def occurs(word, text):
    return len(re.findall(rf"(?<!\w){word}(?!\w)", text, re.IGNORECASE))


if __name__ == "__main__":
    main()

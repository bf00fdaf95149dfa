"""Generates English and French sentences whose pronoun refers to one of two nouns.

    python tests/benchmarks/pronoun_pairs.py pronouns.en pronouns.fr

For "it", French has "il" and "elle", which agree with the noun that is meant: "The dog
didn't cross the road because it was too tired" (il) or "... too wide" (elle). Corpora
of short sentences contain few of these, and a small translator learns one pronoun for
all. The sentences are generated from lists of nouns and adjectives. Those with both
nouns of `HELD_OUT` are left out, so that they can be used as a test.

The pretrained translator "en-fr" was trained on 4,000 of them and on Tatoeba.
"""

import argparse
import itertools
import random
from pathlib import Path

HELD_OUT = ("animal", "street")
# English: article and noun in French, gender.
ANIMALS = {
    "animal": ("l'animal", "m"),
    "dog": ("le chien", "m"),
    "cat": ("le chat", "m"),
    "horse": ("le cheval", "m"),
    "sheep": ("le mouton", "m"),
    "donkey": ("l'âne", "m"),
    "rabbit": ("le lapin", "m"),
    "elephant": ("l'éléphant", "m"),
    "fox": ("le renard", "m"),
    "wolf": ("le loup", "m"),
    "bear": ("l'ours", "m"),
    "duck": ("le canard", "m"),
    "cow": ("la vache", "f"),
    "goat": ("la chèvre", "f"),
    "hen": ("la poule", "f"),
    "turtle": ("la tortue", "f"),
    "frog": ("la grenouille", "f"),
    "mouse": ("la souris", "f"),
    "giraffe": ("la girafe", "f"),
    "spider": ("l'araignée", "f"),
    "ant": ("la fourmi", "f"),
}
WAYS = {
    "street": ("la rue", "f"),
    "road": ("la route", "f"),
    "river": ("la rivière", "f"),
    "square": ("la place", "f"),
    "valley": ("la vallée", "f"),
    "avenue": ("l'avenue", "f"),
    "highway": ("l'autoroute", "f"),
    "meadow": ("la prairie", "f"),
    "bridge": ("le pont", "m"),
    "field": ("le champ", "m"),
    "path": ("le chemin", "m"),
    "stream": ("le ruisseau", "m"),
    "canal": ("le canal", "m"),
    "lake": ("le lac", "m"),
    "desert": ("le désert", "m"),
    "garden": ("le jardin", "m"),
}
FOODS = {
    "apple": ("la pomme", "f"),
    "carrot": ("la carotte", "f"),
    "soup": ("la soupe", "f"),
    "meat": ("la viande", "f"),
    "salad": ("la salade", "f"),
    "bread": ("le pain", "m"),
    "cheese": ("le fromage", "m"),
    "cake": ("le gâteau", "m"),
    "fish": ("le poisson", "m"),
    "rice": ("le riz", "m"),
}
THINGS = {
    "trophy": ("le trophée", "m"),
    "book": ("le livre", "m"),
    "ball": ("le ballon", "m"),
    "hat": ("le chapeau", "m"),
    "computer": ("l'ordinateur", "m"),
    "box": ("la boîte", "f"),
    "bottle": ("la bouteille", "f"),
    "guitar": ("la guitare", "f"),
    "lamp": ("la lampe", "f"),
    "chair": ("la chaise", "f"),
}
HOLDERS = {
    "suitcase": ("la valise", "f"),
    "car": ("la voiture", "f"),
    "kitchen": ("la cuisine", "f"),
    "bag": ("le sac", "m"),
    "drawer": ("le tiroir", "m"),
    "cupboard": ("le placard", "m"),
}
# English: masculine and feminine in French.
OF_ANIMALS = {
    "tired": ("fatigué", "fatiguée"),
    "weak": ("faible", "faible"),
    "sick": ("malade", "malade"),
    "old": ("vieux", "vieille"),
    "lazy": ("paresseux", "paresseuse"),
    "slow": ("lent", "lente"),
    "young": ("jeune", "jeune"),
    "shy": ("timide", "timide"),
    "nervous": ("nerveux", "nerveuse"),
}
OF_WAYS = {
    "wide": ("large", "large"),
    "narrow": ("étroit", "étroite"),
    "long": ("long", "longue"),
}
OF_FOODS = {
    "salty": ("salé", "salée"),
    "bitter": ("amer", "amère"),
    "hard": ("dur", "dure"),
    "dry": ("sec", "sèche"),
}
BIG, SMALL = {"big": ("grand", "grande")}, {"small": ("petit", "petite")}
# Verbs in the negative, English and French, between two nouns, their adjectives.
FRAMES = [
    (ANIMALS, "didn't cross", "n'a pas traversé", WAYS, OF_ANIMALS, OF_WAYS),
    (ANIMALS, "did not cross", "n'a pas traversé", WAYS, OF_ANIMALS, OF_WAYS),
    (ANIMALS, "couldn't cross", "n'a pas pu traverser", WAYS, OF_ANIMALS, OF_WAYS),
    (ANIMALS, "didn't eat", "n'a pas mangé", FOODS, OF_ANIMALS, OF_FOODS),
    (THINGS, "didn't fit in", "ne rentrait pas dans", HOLDERS, BIG, SMALL),
    (THINGS, "doesn't fit in", "ne rentre pas dans", HOLDERS, BIG, SMALL),
]


def pairs() -> list[tuple[str, str]]:
    """Returns all sentences and their translations, except those held out."""
    made = []
    for subjects, verb, french_verb, objects, of_subjects, of_objects in FRAMES:
        for subject, thing in itertools.product(subjects, objects):
            if (subject, thing) == HELD_OUT:
                continue
            present = verb.startswith("doesn't")
            for adjective, referent in [
                *((each, subjects[subject]) for each in of_subjects.items()),
                *((each, objects[thing]) for each in of_objects.items()),
            ]:
                english, forms = adjective
                pronoun = "il" if referent[1] == "m" else "elle"
                source = (
                    f"The {subject} {verb} the {thing} because it "
                    f"{'is' if present else 'was'} too {english}."
                )
                noun = subjects[subject][0]
                target = (
                    f"{noun[0].upper()}{noun[1:]} {french_verb} {objects[thing][0]} "
                    f"parce qu'{pronoun} {'est' if present else 'était'} trop "
                    f"{forms[pronoun == 'elle']}."
                )
                made.append((source, target))
    return made


def balanced(made: list, number: int, seed: int = 0) -> list[tuple[str, str]]:
    """Returns a sample with as many sentences with "il" as with "elle"."""
    generator = random.Random(seed)
    sides = [[p for p in made if f"qu'{word} " in p[1]] for word in ("il", "elle")]
    sample = [p for side in sides for p in generator.sample(side, number // 2)]
    generator.shuffle(sample)
    return sample


def files_parser(description: str) -> argparse.ArgumentParser:
    """Returns a parser of the names of the two files that `write_pairs` writes."""
    parser = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    return parser


def write_pairs(pairs: list[tuple[str, str]], source: Path, target: Path) -> None:
    """Writes sentences and their translations into two files, line by line."""
    for path, lines in zip((source, target), zip(*pairs, strict=True), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = files_parser(__doc__)
    parser.add_argument("--number", type=int, default=4000)
    options = parser.parse_args()
    write_pairs(balanced(pairs(), options.number), options.source, options.target)


if __name__ == "__main__":
    main()

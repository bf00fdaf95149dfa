"""Generates English and French greetings, quotations and prices.

    python tests/benchmarks/everyday_pairs.py everyday.en everyday.fr

A newcomer types "Hello." first, a phone writes “these” quotation marks, and prices have
a "€": all of them are rare in collections of sentences for learners of a language. The
last epochs of the pretrained translator "en-fr" were trained on these sentences, too.
"""

import itertools
import random

from pronoun_pairs import files_parser, write_pairs

TIMES = 6  # greetings are few, so each occurs this often
GREETINGS = {
    "Hello": "Bonjour",
    "Hi": "Salut",
    "Hello there": "Bonjour",
    "Good morning": "Bonjour",
    "Good evening": "Bonsoir",
    "Good night": "Bonne nuit",
    "Goodbye": "Au revoir",
    "Bye": "Au revoir",
    "Thank you": "Merci",
    "Thanks": "Merci",
    "Thank you very much": "Merci beaucoup",
    "Welcome": "Bienvenue",
    "Good luck": "Bonne chance",
    "Congratulations": "Félicitations",
    "Happy birthday": "Joyeux anniversaire",
    "Merry Christmas": "Joyeux Noël",
    "Happy New Year": "Bonne année",
    "See you tomorrow": "À demain",
    "See you soon": "À bientôt",
    "See you later": "À plus tard",
    "Have a nice day": "Bonne journée",
    "Excuse me": "Excusez-moi",
    "Of course": "Bien sûr",
}
PHRASES = {
    "Hello, world!": "Bonjour, le monde !",
    "Hello, how are you?": "Bonjour, comment allez-vous ?",
    "Hi, how are you?": "Salut, comment vas-tu ?",
    "Hello, nice to meet you.": "Bonjour, enchanté.",
    "Hello, my name is Anna.": "Bonjour, je m'appelle Anna.",
    "Good morning, everyone.": "Bonjour à tous.",
    "Good evening, ladies and gentlemen.": "Bonsoir, mesdames et messieurs.",
    "I'm fine, thank you.": "Je vais bien, merci.",
    "Fine, thanks. And you?": "Bien, merci. Et vous ?",
    "Thank you for your help.": "Merci pour votre aide.",
    "Thank you so much for everything.": "Merci beaucoup pour tout.",
    "You're welcome.": "De rien.",
    "Yes, please.": "Oui, s'il vous plaît.",
    "No, thank you.": "Non, merci.",
    "Nice to meet you.": "Enchanté.",
    "Have a good evening.": "Bonne soirée.",
    "Have a good trip.": "Bon voyage.",
    "Have a nice weekend.": "Bon week-end.",
    "Enjoy your meal.": "Bon appétit.",
    "Welcome to Paris.": "Bienvenue à Paris.",
    "A coffee, please.": "Un café, s'il vous plaît.",
    "The bill, please.": "L'addition, s'il vous plaît.",
    "Where are the toilets, please?": "Où sont les toilettes, s'il vous plaît ?",
    "How much does it cost?": "Combien ça coûte ?",
    "Yes.": "Oui.",
    "No.": "Non.",
    "Maybe.": "Peut-être.",
    "Help!": "À l'aide !",
}
NAMES = "Tom Anna Paul Maria Emma Leo Sophie David".split()
# Without their full stops: what is said, in quotation marks.
QUOTED = {
    "hello": "bonjour",
    "good morning": "bonjour",
    "thank you": "merci",
    "goodbye": "au revoir",
    "yes": "oui",
    "no": "non",
    "maybe": "peut-être",
    "come in": "entrez",
    "of course": "bien sûr",
    "I am tired": "je suis fatigué",
    "I love you": "je t'aime",
    "it is late": "il est tard",
    "I don't know": "je ne sais pas",
    "see you tomorrow": "à demain",
    "good luck": "bonne chance",
    "the door is open": "la porte est ouverte",
}
FRAMES = {
    "{name} said, {quote}.": "{name} a dit {quote}.",
    "{name} said {quote}.": "{name} a dit {quote}.",
    "He said {quote} and left.": "Il a dit {quote} et est parti.",
    "She said {quote} and left.": "Elle a dit {quote} et est partie.",
    "{name} answered {quote}.": "{name} a répondu {quote}.",
    "How do you say {quote} in French?": "Comment dit-on {quote} en français ?",
    "{name} wrote {quote} on the board.": "{name} a écrit {quote} au tableau.",
    "They always say {quote}.": "Ils disent toujours {quote}.",
    "What does {quote} mean?": "Que veut dire {quote} ?",
}
MARKS = ('"{}"', "“{}”", "“{}”")
ADJECTIVES = {
    "a {} idea": (
        "une {} idée",
        {"good": "bonne", "new": "nouvelle", "bad": "mauvaise"},
    ),
    "a {} friend": ("un {} ami", {"good": "bon", "new": "nouvel", "true": "véritable"}),
    "a {} book": ("un {} livre", {"good": "bon", "big": "gros", "new": "nouveau"}),
}
THINGS = {
    "It": "Ça",
    "The book": "Le livre",
    "The ticket": "Le billet",
    "The bottle": "La bouteille",
    "The lamp": "La lampe",
    "This chair": "Cette chaise",
    "The coffee": "Le café",
    "A room": "Une chambre",
}
# In English the currency comes before the amount, in French after it.
CURRENCIES = "€€€$£"


def pairs(seed: int = 0) -> list[tuple[str, str]]:
    """Returns all sentences and their translations in a random order."""
    draw = random.Random(seed)
    sentences = [*_greetings(), *_quotations(draw), *_prices(draw)]
    draw.shuffle(sentences)
    return sentences


def _greetings():
    for source, target in GREETINGS.items():
        forms = [
            (source, target),
            (f"{source}.", f"{target}."),
            (f"{source}!", f"{target} !"),
        ]
        forms += [(f"{source}, {name}.", f"{target}, {name}.") for name in NAMES[:3]]
        yield from forms * TIMES
    yield from [*PHRASES.items()] * TIMES


def _quotations(draw):
    for (source, target), (english, french) in itertools.product(
        FRAMES.items(), QUOTED.items()
    ):
        for mark in MARKS:
            name = draw.choice(NAMES)
            yield (
                source.format(name=name, quote=mark.format(english)),
                target.format(name=name, quote=f"« {french} »"),
            )
    for english, (french, adjectives) in ADJECTIVES.items():
        for adjective, translation in adjectives.items():
            for mark in MARKS:
                source = english.format(mark.format(adjective))
                target = french.format(f"« {translation} »")
                yield f"It is {source}.", f"C'est {target}."
                yield (
                    f"{source[0].upper()}{source[1:]}.",
                    f"{target[0].upper()}{target[1:]}.",
                )


def _prices(draw):
    for source, target in THINGS.items():
        for _ in range(60):
            currency = draw.choice(CURRENCIES)
            whole = draw.randrange(1, 10 ** draw.randrange(1, 4))
            cents = draw.choice(["", "", f"{draw.randrange(1, 10)}0", "99"])
            english = f"{currency}{whole}{'.' if cents else ''}{cents}"
            french = f"{whole}{',' if cents else ''}{cents} {currency}"
            yield f"{source} costs {english}.", f"{target} coûte {french}."
            yield f"Price: {english}", f"Prix : {french}"


def main() -> None:
    options = files_parser(__doc__).parse_args()
    write_pairs(pairs(), options.source, options.target)


if __name__ == "__main__":
    main()

r"""Makes the English and French text that "en-fr" learns beside Tatoeba.

    pip install babel faker
    python tests/benchmarks/everyday_pairs.py everyday.en everyday.fr --tatoeba \
      train.en train.fr --sentences sentences.tsv --words words.tsv

People type greetings, prices, dates, quotations, names, labels and several sentences at
once, all of which are rare in collections of sentences for learners of a language. Most
of this text consists of Tatoeba's sentences with something added or replaced; the
rest are frames, labels (without the held-out tenth), and other open texts, of whose
technical documentation a third is used. The probe has other frames and values.
"""

import functools
import itertools
import random
import re
import zlib
from collections import Counter
from pathlib import Path

from babel import Locale
from faker import Faker
from pronoun_pairs import files_parser, write_pairs

TIMES = 4  # greetings are few, so each occurs this often
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
ENGLISH, FRENCH = Locale("en"), Locale("fr")
MONTHS = [
    (ENGLISH.months["format"]["wide"][i], FRENCH.months["format"]["wide"][i])
    for i in range(1, 13)
]
DAYS = [
    (ENGLISH.days["format"]["wide"][i], FRENCH.days["format"]["wide"][i])
    for i in range(7)
]
LOCALES = [
    "en_US",
    "en_GB",
    "fr_FR",
    "de_DE",
    "es_ES",
    "it_IT",
    "pl_PL",
    "nl_NL",
    "tr_TR",
]
CITIES = """London=Londres Brussels=Bruxelles Geneva=Genève Vienna=Vienne Rome Milan
Venice=Venise Naples Florence Barcelona=Barcelone Lisbon=Lisbonne Warsaw=Varsovie
Moscow=Moscou Athens=Athènes Copenhagen=Copenhague Hamburg=Hambourg Munich Berlin
Edinburgh=Édimbourg Dublin Montreal=Montréal Seville=Séville Beijing=Pékin Madrid
Cairo=Le_Caire Cologne Marseille Lyon Nice Bordeaux Lille Toulouse Nantes
Strasbourg Rennes Chicago Boston Seattle Houston Dallas Denver Miami Toronto Vancouver
Liverpool Leeds Manchester Bristol Oxford Cambridge Glasgow Belfast Cardiff Zurich
Kyoto Osaka Tokyo Sydney Melbourne Mumbai Lima Bogotá Quito Santiago Nairobi Lagos"""
WORDS = """two=deux three=trois four=quatre five=cinq six seven=sept eight=huit
nine=neuf ten=dix eleven=onze twelve=douze thirteen=treize fourteen=quatorze
fifteen=quinze sixteen=seize seventeen=dix-sept eighteen=dix-huit nineteen=dix-neuf
twenty=vingt thirty=trente forty=quarante fifty=cinquante sixty=soixante"""
UNITS = {
    "distance": "km=km km=km m=m miles=miles kilometers=kilomètres meters=mètres",
    "weight": "kg=kg kg=kg g=g tons=tonnes kilos=kilos pounds=livres grams=grammes",
    "size": "cm=cm cm=cm mm=mm m=m inches=pouces centimeters=centimètres",
    "other": "km/h=km/h °C=°C l=l ml=ml GB=Go MB=Mo m²=m² kWh=kWh W=W degrees=degrés",
}
# What can be said about a value, and what can follow or precede any sentence: after
# " +" in front of its mark, before "+ " in front of the sentence.
FRAMES = """
The rent is {price} a month. = Le loyer est de {price} par mois.
This flat costs {price} per month. = Cet appartement coûte {price} par mois.
It costs {price}. = Ça coûte {price}.
It cost me {price}. = Ça m'a coûté {price}.
I paid {price} for it. = Je l'ai payé {price}.
I paid {price} for my bike. = J'ai payé mon vélo {price}.
He owes me {price}. = Il me doit {price}.
She earns {price} an hour. = Elle gagne {price} de l'heure.
They sold the house for {price}. = Ils ont vendu la maison pour {price}.
We spent {price} on food. = Nous avons dépensé {price} en nourriture.
How can it cost {price}? = Comment cela peut-il coûter {price} ?
It costs {price}, and the bag {price2}. = Ça coûte {price}, et le sac {price2}.
Can you lend me {price}? = Peux-tu me prêter {price} ?
The total is {price}, including tax. = Le total est de {price}, taxes comprises.
Tickets start at {price}. = Les billets sont à partir de {price}.
Price: {price} = Prix : {price}
Total: {price} = Total : {price}
I won {price} yesterday. = J'ai gagné {price} hier.
The price rose from {price} to {price2}. = Le prix est passé de {price} à {price2}.
Less than {price} a year. = Moins de {price} par an.
+ for {price} = pour {price}
+ for only {price} = pour seulement {price}
+ for less than {price} = pour moins de {price}
For {price}, + = Pour {price},
He was born on {date}. = Il est né le {date}.
She was born on {date}. = Elle est née le {date}.
My birthday is on {date}. = Mon anniversaire est le {date}.
The meeting is on {date}. = La réunion a lieu le {date}.
They got married on {date}. = Ils se sont mariés le {date}.
The shop is closed on {date}. = Le magasin est fermé le {date}.
We come on {date} and leave on {date2}. = On vient le {date} et on part le {date2}.
The offer is valid until {date}. = L'offre est valable jusqu'au {date}.
Please answer before {date}. = Veuillez répondre avant le {date}.
Today is {date}. = Nous sommes le {date}.
The war ended in {month}. = La guerre a pris fin en {month}.
I moved here in {month}. = J'ai emménagé ici en {month}.
From {date} to {date2} = Du {date} au {date2}
{Date} = {Date}
+ on {date} = le {date}
+ since {date} = depuis le {date}
+ in {month} = en {month}
On {date}, + = Le {date},
In {month}, + = En {month},
On {day}, + = {Day},
The train leaves at {time}. = Le train part à {time}.
My flight lands at {time}. = Mon vol atterrit à {time}.
It starts at {time} and ends at {time2}. = Ça commence à {time} et finit à {time2}.
We are open from {time} to {time2}. = Nous sommes ouverts de {time} à {time2}.
It is {time}. = Il est {time}.
It's already {time}. = Il est déjà {time}.
Wake me up at {time}. = Réveille-moi à {time}.
I have an appointment at {time} on {day}. = J'ai un rendez-vous {day} à {time}.
Shall we meet at {time}? = On se retrouve à {time} ?
Dinner is at {time}. = Le dîner est à {time}.
+ at {time} = à {time}
+ until {time} = jusqu'à {time}
At {time}, + = À {time},
+ on {date} at {time} = le {date} à {time}
The station is {distance} away. = La gare est à {distance}.
We walked {distance}. = Nous avons marché {distance}.
I ran {distance} this morning. = J'ai couru {distance} ce matin.
The village is {distance} from here. = Le village est à {distance} d'ici.
It is {distance} from {city} to {city2}. = Il y a {distance} de {city} à {city2}.
The bridge is {distance} long. = Le pont fait {distance} de long.
The parcel weighs {weight}. = Le colis pèse {weight}.
I weigh {weight}. = Je pèse {weight}.
She lost {weight} in a year. = Elle a perdu {weight} en un an.
Add {weight} of flour. = Ajoutez {weight} de farine.
I bought {weight} of rice. = J'ai acheté {weight} de riz.
He is {size} tall. = Il mesure {size}.
The table is {size} wide. = La table fait {size} de large.
It is {size} long and {size2} high. = Il fait {size} de long et {size2} de haut.
Maximum: {other} = Maximum : {other}
It was {n} degrees yesterday. = Il faisait {n} degrés hier.
The limit is {other}. = La limite est de {other}.
+ for {distance} = sur {distance}
After {distance}, + = Après {distance},
Prices rose by {percent}. = Les prix ont augmenté de {percent}.
{Percent} of the students passed. = {Percent} des étudiants ont réussi.
Only {percent} of people agree. = Seulement {percent} des gens sont d'accord.
You get a discount of {percent}. = Vous obtenez une remise de {percent}.
The battery is at {percent}. = La batterie est à {percent}.
I am {percent} sure. = Je suis sûr à {percent}.
It fell from {percent} to {percent2}. = C'est passé de {percent} à {percent2}.
We have sold {percent} of the tickets. = Nous avons vendu {percent} des billets.
Call me at {phone}. = Appelez-moi au {phone}.
My number is {phone}. = Mon numéro est le {phone}.
Her phone number is {phone}. = Son numéro de téléphone est le {phone}.
Phone: {phone} = Téléphone : {phone}
For help, call {phone} or {phone2}. = Pour de l'aide, appelez le {phone} ou le {phone2}.
Call {phone} from {time} to {time2}. = Appelez le {phone} de {time} à {time2}.
I have {n} books. = J'ai {n} livres.
There were {n} people in the room. = Il y avait {n} personnes dans la pièce.
He has {n} cousins. = Il a {n} cousins.
The book has {n} pages. = Le livre a {n} pages.
I read {n} pages today. = J'ai lu {n} pages aujourd'hui.
We need {n} chairs and {n2} tables. = Il nous faut {n} chaises et {n2} tables.
She is {n} years old. = Elle a {n} ans.
There are {n} days left. = Il reste {n} jours.
The city has {n} inhabitants. = La ville compte {n} habitants.
Take bus {n} to the station. = Prenez le bus {n} jusqu'à la gare.
Room {n} is on the left. = La chambre {n} est à gauche.
Open the book at page {n}. = Ouvrez le livre à la page {n}.
I waited {n} minutes. = J'ai attendu {n} minutes.
Order number {n} has been sent. = La commande numéro {n} a été expédiée.
We sold {n} cars last year. = Nous avons vendu {n} voitures l'année dernière.
+ for {n} days = pendant {n} jours
+ {n} times = {n} fois
After {n} minutes, + = Après {n} minutes,
I live in {city}. = J'habite à {city}.
I'm from {city}, but live in {city2}. = Je viens de {city}, mais j'habite à {city2}.
The train from {city} is late. = Le train de {city} est en retard.
{name} lives in {city}. = {name} habite à {city}.
My name is {name}. = Je m'appelle {name}.
I met {name} in {city}. = J'ai rencontré {name} à {city}.
Have you seen {name} and {name2}? = As-tu vu {name} et {name2} ?
Mrs. {name} is not here today. = Mme {name} n'est pas là aujourd'hui.
+ with {name} = avec {name}
+ in {city} = à {city}
In {city}, + = À {city},
"""
# What is quoted is a label, in front of " : " the rest of the sentence is.
LABEL_FRAMES = """
Click {q}. = Cliquez sur {q}.
Choose {q} in the menu. = Choisissez {q} dans le menu.
What does {q} mean? = Que veut dire {q} ?
How do you spell {q}? = Comment écrit-on {q} ?
The sign says {q}. = Le panneau indique {q}.
I don't understand the word {q}. = Je ne comprends pas le mot {q}.
The book is called {q}. = Le livre s'appelle {q}.
Look for {q} on the map. = Cherchez {q} sur la carte.
The {q} button does not work. = Le bouton {q} ne fonctionne pas.
"""
SPEAKERS = {  # before the verb; after it, in French
    "He": ("Il a", "a-t-il {}"),
    "She": ("Elle a", "a-t-elle {}"),
    "They": ("Ils ont", "ont-ils {}"),
    "I": ("J'ai", "ai-je {}"),
    "We": ("Nous avons", "avons-nous {}"),
    "My mother": ("Ma mère a", "a {} ma mère"),
    "My brother": ("Mon frère a", "a {} mon frère"),
    "Her father": ("Son père a", "a {} son père"),
    "The teacher": ("Le professeur a", "a {} le professeur"),
    "The old man": ("Le vieil homme a", "a {} le vieil homme"),
    "The woman": ("La femme a", "a {} la femme"),
    "The children": ("Les enfants ont", "ont {} les enfants"),
    "The doctor": ("Le médecin a", "a {} le médecin"),
    "Everyone": ("Tout le monde a", "a {} tout le monde"),
    "Someone": ("Quelqu'un a", "a {} quelqu'un"),
    "NAME": ("NAME a", "a {} NAME"),
}
SPEECH = """said=dit said=dit answered=répondu replied=répondu shouted=crié wrote=écrit
whispered=murmuré added=ajouté explained=expliqué repeated=répété thought=pensé"""
MANNERS = {
    "": "",
    " again": " encore une fois",
    " quietly": " doucement",
    " yesterday": " hier",
    " in French": " en français",
    " with a smile": " en souriant",
    " on the phone": " au téléphone",
}


def pairs(tatoeba, sentences, labels, seed=0):
    """Returns all sentences and their translations in a random order."""
    draw = random.Random(seed)
    Faker.seed(seed)
    values = Values(draw)
    short = [
        pair
        for pair in tatoeba
        if len(pair[0].split()) < 13 and '"' not in "".join(pair)
    ]
    made = [
        *_greetings(),
        *sentences,
        *labels,
        *_frames(draw, values, short, 22_000),
        *_numbers(draw, tatoeba, 6_000),
        *_names(draw, values, tatoeba, 7_000),
        *_quotations(draw, values, short, labels, 9_000),
        *_joined(draw, [*short, *sentences], 9_000),
        *_lists(draw, labels, 1_500),
        *lexicon(tatoeba),
    ]
    made += [
        (a[:-1], b[:-1]) for a, b in draw.sample(short, 6_000) if a[-1] == b[-1] == "."
    ]
    draw.shuffle(made)
    return made


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


class Values:
    """Random values of the frames' fields, in English and in French."""

    def __init__(self, draw):
        self._draw = draw
        self._fakers = [Faker(locale) for locale in LOCALES]

    def __call__(self, field):
        field = field.rstrip("2")
        english, french = getattr(self, field.lower())()
        if field[0].isupper():
            return english[0].upper() + english[1:], french[0].upper() + french[1:]
        return english, french

    def number(self, decimals=(0,), most=7):
        draw = self._draw
        size = min(most, draw.choice([1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7]))
        places = draw.choice(decimals)
        value = draw.randrange(2, 10**size) + draw.randrange(10**places) / 10**places
        grouped = value >= 10_000 or draw.random() < 0.7
        english = f"{value:,.{places}f}" if grouped else f"{value:.{places}f}"
        return english, english.replace(",", " ").replace(".", ",")

    def n(self):
        return self.number()

    def price(self):
        english, french = self.number((0, 0, 2))
        sign = self._draw.choice("€€€$$£")
        word = {"€": "euros", "$": "dollars", "£": "pounds"}[sign]
        form = self._draw.choice(
            ["{1}{0}", "{1}{0}", "{1}{0}", "{0} {1}", "{0}{1}", "{0} {2}"]
        )
        english = form.format(english, sign, word)
        if word in english:
            return english, f"{french} {word.replace('pounds', 'livres')}"
        return english, f"{french} {sign}"

    def percent(self):
        english, french = self.number(
            (0, 0, 1), most=2 if self._draw.random() < 0.8 else 4
        )
        form = self._draw.choice(["{}%", "{}%", "{} %", "{} percent"])
        return form.format(english), french + (" pour cent" if "t" in form else " %")

    def _measure(self, kind):
        english, french = self.number((0, 0, 1, 2))
        unit, name = self._draw.choice(UNITS[kind].split()).split("=")
        gap = self._draw.choice([" ", " ", "" if len(unit) < 4 else " "])
        return f"{english}{gap}{unit}", f"{french} {name}"

    distance = functools.partialmethod(_measure, "distance")
    weight = functools.partialmethod(_measure, "weight")
    size = functools.partialmethod(_measure, "size")
    other = functools.partialmethod(_measure, "other")

    def time(self):
        draw = self._draw
        hour, minute = (
            draw.randrange(24),
            draw.choice([0, 15, 30, 45, draw.randrange(60)]),
        )
        french = f"{hour} h {minute:02}" if minute else f"{hour} h"
        if draw.random() < 0.4:
            return f"{hour}:{minute:02}", french
        half = draw.choice(["a.m. p.m.", "am pm", "AM PM"]).split()[hour > 11]
        twelve = (hour + 11) % 12 + 1
        minutes = f":{minute:02}" if minute or draw.random() < 0.3 else ""
        return f"{twelve}{minutes}{draw.choice([' ', ' ', ''])}{half}", french

    def date(self):
        draw = self._draw
        day, year = draw.randrange(1, 29), draw.randrange(1850, 2050)
        month, mois = draw.choice(MONTHS)
        ending = {1: "st", 2: "nd", 3: "rd"}.get(
            day % 10 if day // 10 != 1 else 0, "th"
        )
        english = draw.choice(
            [
                f"{day} {month} {year}",
                f"{day} {month} {year}",
                f"{month} {day}, {year}",
                f"{month} {day}{ending}, {year}",
                f"the {day}{ending} of {month} {year}",
                f"{day} {month}",
                f"{month} {day}",
                f"{month} {day}{ending}",
                f"the {day}{ending} of {month}",
            ]
        )
        french = f"{'1er' if day == 1 else day} {mois}"
        french += f" {year}" if str(year) in english else ""
        if draw.random() < 0.15 and english[0] != "t":
            weekday, jour = draw.choice(DAYS)
            return f"{weekday}, {english}", f"{jour} {french}"
        return english, french

    def month(self):
        (month, mois), year = (
            self._draw.choice(MONTHS),
            self._draw.randrange(1850, 2050),
        )
        return (f"{month} {year}", f"{mois} {year}") if year % 3 else (month, mois)

    def day(self):
        return self._draw.choice(DAYS)

    def phone(self):
        draw = self._draw
        form = draw.choice(
            [
                "555-####",
                "(###) ###-####",
                "###-###-####",
                "+44 ## #### ####",
                "0# ## ## ## ##",
                "+33 # ## ## ## ##",
                "0### #######",
                "+49 ### ######",
            ]
        )
        text = re.sub("#", lambda _: str(draw.randrange(10)), form)
        return text, text

    def name(self, first=None):
        faker = self._draw.choice(self._fakers)
        name = getattr(
            faker, first or self._draw.choice(["first_name", "first_name_male"])
        )()
        if self._draw.random() < 0.4:
            name += f" {faker.last_name()}"
        return name, name

    def city(self):
        english, _, french = self._draw.choice(CITIES.split()).partition("=")
        return english, (french or english).replace("_", " ")


def _filled(frame, values):
    """Fills the fields of both sides of a frame with the same values."""
    fields = dict.fromkeys(re.findall(r"{(\w+)}", "".join(frame)))
    drawn = {field: values(field) for field in fields}
    english, french = (
        side.format(**{field: value[i] for field, value in drawn.items()})
        for i, side in enumerate(frame)
    )
    return english.replace("..", "."), _elided(french)


def _elided(french):
    """Contracts a preposition before a name that begins with a vowel or article."""
    french = re.sub(r"\b([Dd])e (?=[AEIOUÉÎ])", r"\1'", french)
    return re.sub(r"\bde Le ", "du ", re.sub(r"\bà Le ", "au ", french))


def _frames(draw, values, short, count):
    frames = [tuple(line.split(" = ")) for line in FRAMES.strip().splitlines()]
    for _ in range(count):
        # Those that continue a sentence have the most different sentences.
        frame = draw.choice(frames)
        english, french = (side.replace("+ ", "").replace(" +", "") for side in frame)
        english, french = _filled((english, french), values)
        if "+" in frame[0]:
            yield _continued(draw, frame[0], english, french, draw.choice(short))
        else:
            yield english, french


def _continued(draw, frame, english, french, pair):
    """Adds what a frame says to a sentence and to its translation."""
    if frame.startswith("+"):
        bodies = [re.match(r"(.*?)(\W*)$", side).groups() for side in pair]
        added = zip(bodies, (english, french), strict=True)
        one, other = (f"{body} {text}{mark}" for (body, mark), text in added)
        return one.replace("..", "."), other
    keeps = r"I\b|[A-Z]\w* (?!I\b)[A-Z]|Tom\b|Mary\b|[A-Z]{2}"
    one, other = (
        side if re.match(keeps, side) else side[0].lower() + side[1:] for side in pair
    )
    return f"{english} {one}", f"{french} {other}"


def _numbers(draw, tatoeba, count):
    """Yields sentences with one number on both sides, and another number in it."""
    words = dict(word.partition("=")[::2] for word in WORDS.split())
    names = "|".join(words)
    found = []
    for pair in tatoeba:
        numbers = [re.findall(r"\d+(?:[.,: ]\d+)*", side) for side in pair]
        named = re.findall(rf"\b(?:{names})\b(?![-’'])", pair[0])
        if numbers[0] == numbers[1] and len(numbers[0]) == 1:
            found.append((pair, numbers[0][0], numbers[0][0]))
        elif not any(numbers) and len(named) == 1 and "clock" not in pair[0]:
            french = words.get(named[0]) or named[0]
            if len(re.findall(rf"(?<![\w-]){french}(?![\w-])", pair[1])) == 1:
                found.append((pair, named[0], french))
    for _ in range(count):
        (source, target), english, french = draw.choice(found)
        number = str(draw.randrange(2, 10 ** draw.choice([1, 2, 2, 2, 3, 3, 4])))
        numbers = number, number
        if "$" in source or draw.random() < 0.1:
            numbers = Values(draw).number()
        yield (
            re.sub(rf"(?<!\w){re.escape(english)}(?!\w)", numbers[0], source),
            re.sub(rf"(?<!\w){re.escape(french)}(?!\w)", numbers[1], target),
        )


def _names(draw, values, tatoeba, count):
    """Yields sentences with other names and cities."""
    found = []
    for pair in tatoeba:
        for kind, names in {
            "first_name_male": "Tom John",
            "first_name_female": "Mary Marie",
            "city": "Boston Paris London Londres Tokyo",
        }.items():
            names = [
                re.findall(rf"\b(?:{names.replace(' ', '|')})\b", side) for side in pair
            ]
            if len(names[0]) == len(names[1]) == 1:
                found.append((pair, kind, names))
    for _ in range(count):
        pair, kind, names = draw.choice(found)
        drawn = values.city() if kind == "city" else values.name(kind)
        source, target = (
            side.replace(name[0], new)
            for side, name, new in zip(pair, names, drawn, strict=True)
        )
        if not re.search(r"['’]\w*$", target[: target.find(drawn[1])]):
            yield source, _elided(target)


def _quotations(draw, values, short, labels, count):
    """Yields real sentences and labels in quotation marks."""
    frames = [tuple(line.split(" = ")) for line in LABEL_FRAMES.strip().splitlines()]
    speech = [word.split("=") for word in SPEECH.split()]
    for _ in range(count):
        left, right = draw.choice(['""', "““", "“”", "“”", "‘’"])
        right = "”" if left == "“" else right
        if draw.random() < 0.2:
            english, french = draw.choice(labels)
            quotes = f"{left}{english}{right}", f"« {french} »"
            yield tuple(
                side.format(q=q)
                for side, q in zip(draw.choice(frames), quotes, strict=True)
            )
            continue
        english, french = draw.choice(short)
        speaker, (before, after) = draw.choice(list(SPEAKERS.items()))
        verb, verbe = draw.choice(speech)
        manner, maniere = draw.choice(list(MANNERS.items()) + [("", "")] * 6)
        name = values.name()[0]
        if draw.random() < 0.5:
            comma = draw.choice([",", ":", ","])
            one = f"{speaker} {verb}{manner}{comma} {left}{english}{right}"
            other = f"{before} {verbe}{maniere} : « {french} »"
        else:
            inside = re.sub(r"\.$", ",", english)
            who = (
                speaker
                if speaker in ("I", "NAME")
                else speaker[0].lower() + speaker[1:]
            )
            one = f"{left}{inside}{right} {who} {verb}{manner}."
            other = (
                f"« {re.sub(r'[.]$', '', french)} », {after.format(verbe)}{maniere}."
            )
        yield one.replace("NAME", name), other.replace("NAME", name)


def _joined(draw, sentences, count):
    for _ in range(count):
        some = draw.sample(sentences, draw.choice([2, 2, 2, 3, 3, 4]))
        if sum(len(pair[0]) for pair in some) < 400:
            yield tuple(" ".join(side) for side in zip(*some, strict=True))


def _lists(draw, labels, count):
    short = [pair for pair in labels if len(pair[0].split()) < 4]
    for _ in range(count):
        *some, last = draw.sample(short, draw.choice([2, 3, 3, 4, 5]))
        ends = draw.choice([(" and ", " et "), (" or ", " ou "), (", ", ", ")])
        yield tuple(
            ", ".join(pair[i] for pair in some) + ends[i] + last[i] for i in range(2)
        )


def lexicon(tatoeba, least=7, closeness=0.45):
    """Yields words that occur mostly in the same pairs, each the best of the other."""
    word = re.compile(r"aujourd'hui|[^\W\d_]{3,}(?:-[^\W\d_]{3,})*")
    sides = [
        [set(word.findall(text)) for text in side]
        for side in zip(*tatoeba, strict=True)
    ]
    counts = [Counter(itertools.chain(*side)) for side in sides]
    both = Counter(
        pair
        for words in zip(*sides, strict=True)
        for pair in itertools.product(*words)
        if counts[0][pair[0]] >= least and counts[1][pair[1]] >= least
    )
    dice = {p: 2 * n / (counts[0][p[0]] + counts[1][p[1]]) for p, n in both.items()}
    best = [{}, {}]
    for pair, value in dice.items():
        for side, word in enumerate(pair):
            if value > dice.get(best[side].get(word), closeness):
                best[side][word] = pair
    for english, french in sorted(set(best[0].values()) & set(best[1].values())):
        if english.islower() and french.islower():
            yield english, french
            yield english.capitalize(), french.capitalize()


def is_held_out(label: str) -> bool:
    """Whether a label is in the tenth that no training reads."""
    return zlib.crc32(label.lower().encode()) % 10 == 0


def _table(path, kept):
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [
        (english, french) for english, french, source in rows if kept(english, source)
    ]


def _of_documents(english, source):
    """Whether a sentence is used: of those about programming, one of three."""
    technical = source in ("python-docs", "django-docs")
    return not technical or zlib.crc32(english.encode()) % 3 == 0


def main() -> None:
    parser = files_parser(__doc__)
    parser.add_argument("--tatoeba", type=Path, nargs=2, required=True)
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--words", type=Path, required=True)
    options = parser.parse_args()
    sides = (path.read_text(encoding="utf-8").splitlines() for path in options.tatoeba)
    tatoeba = list(zip(*sides, strict=True))
    sentences = _table(options.sentences, _of_documents)
    labels = _table(options.words, lambda english, _: not is_held_out(english))
    write_pairs(pairs(tatoeba, sentences, labels), options.source, options.target)


if __name__ == "__main__":
    main()

"""Numbers and dates in the words of many languages, for a corpus without files."""

from datetime import date, timedelta

from keras_vanilla._checks import extra_missing

NUMBERS = range(10_000)
FIRST_DATE, LAST_DATE = date(1900, 1, 1), date(2099, 12, 31)


def numbers_and_dates(language: str) -> list[str]:
    """Every number in words, then every full date, in one language.

    Args:
        language: str, such as "en".
    Raises:
        ImportError: if num2words or babel is missing.
        ValueError: if one of them does not support the language.
    """
    try:
        from babel.dates import format_date
        from babel.localedata import locale_identifiers
        from num2words import CONVERTER_CLASSES, num2words
    except ImportError as error:
        raise extra_missing("The numbers", "num2words and babel", "demo") from error
    # num2words 0.5.14 fails in Amharic from 1,100 on.
    known = set(CONVERTER_CLASSES) & set(locale_identifiers()) - {"am"}
    if language not in known:
        raise ValueError(
            f"`numbers` expects languages from {', '.join(sorted(known))}. "
            f"Received: {language!r}"
        )
    words = [num2words(number, lang=language) for number in NUMBERS]
    days = (FIRST_DATE + timedelta(n) for n in range((LAST_DATE - FIRST_DATE).days + 1))
    return words + [format_date(day, format="full", locale=language) for day in days]

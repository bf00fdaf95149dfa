"""The language that an exported file of a multilingual model translates into."""

from keras_vanilla._checks import check_choice
from keras_vanilla.tokenizer import MarianTokenizer
from keras_vanilla.translation import Translator


def in_target_language(translator: Translator, tag: str | None) -> Translator:
    """The translator as the file has it: one language before every source.

    Args:
        translator: Translator. One whose texts have no language codes is returned as it
            is.
        tag: str or None. A language's code as a BCP-47 tag, such as "fra" for ">>fra<<"
            or "zho-Hans" for ">>zho_Hans<<"; None leaves the codes to the texts.
    Raises:
        ValueError: if the vocabulary has codes, and none of the language.
    """
    tokenizer = translator.tokenizer
    languages = getattr(tokenizer, "languages", ())
    if tag is None or not languages or not isinstance(tokenizer, MarianTokenizer):
        return translator
    tags = {language.replace("_", "-"): language for language in languages}
    language = tags[check_choice("target_language", tag, tuple(tags))]
    if tokenizer.target_language == language:
        return translator
    return translator.replace(tokenizer=tokenizer.with_target_language(language))

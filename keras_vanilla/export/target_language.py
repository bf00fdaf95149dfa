"""The target language of an exported multilingual model."""

from keras_vanilla._checks import check_choice
from keras_vanilla.tokenizer import MarianTokenizer
from keras_vanilla.translation import Translator


def in_target_language(translator: Translator, tag: str | None) -> Translator:
    """Returns a translator that adds one language code to every source.

    Args:
        translator: Translator. Returned unchanged if its texts have no language codes.
        tag: str or None. The language as a BCP-47 tag, such as "fra" for ">>fra<<" or
            "zho-Hans" for ">>zho_Hans<<"; None expects the codes in the texts.
    Raises:
        ValueError: if the vocabulary has language codes, but not this one.
    """
    tokenizer = translator.tokenizer
    if tag is None or not isinstance(tokenizer, MarianTokenizer):
        return translator
    tags = {language.replace("_", "-"): language for language in tokenizer.languages}
    if not tags:
        return translator
    language = tags[check_choice("target_language", tag, tuple(tags))]
    if tokenizer.target_language == language:
        return translator
    return translator.replace(tokenizer=tokenizer.with_target_language(language))

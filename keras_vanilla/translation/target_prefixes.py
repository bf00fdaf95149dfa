"""Encodes target prefixes."""

from collections.abc import Sequence

from keras_vanilla._checks import check_line
from keras_vanilla.tokenizer import TokenizerProtocol


def encoded_prefixes(
    prefixes: Sequence[str],
    count: int,
    tokenizer: TokenizerProtocol,
    longest: int,
    first_number: int = 1,
) -> list[list[int]]:
    """Encodes each prefix as target ids, without an end.

    Args:
        prefixes: list of str, one for each text; "" means no prefix.
        count: int. Number of texts.
        tokenizer: TokenizerProtocol.
        longest: int. The longest output in tokens.
        first_number: int. The number of the first text, for errors.
    Raises:
        TypeError: if `prefixes` is one str, or not all items are str.
        ValueError: if the number of prefixes differs from that of texts, or a prefix
            has an unknown character, an incomplete character, or too many tokens.
    """
    if isinstance(prefixes, str):
        raise TypeError(
            "`target_prefix` must be a list with one str for each text. Received: "
            f"{prefixes!r:.60}"
        )
    prefixes = list(prefixes)
    if len(prefixes) != count:
        raise ValueError(
            "`target_prefix` must have one str for each text. Received: "
            f"{len(prefixes)} for {count} texts"
        )
    for number, prefix in enumerate(prefixes, start=first_number):
        check_line(number, prefix, "Target prefix")
    rows = [ids[:-1] for ids in tokenizer.encode_target(prefixes)]
    for number, (prefix, ids) in enumerate(
        zip(prefixes, rows, strict=True), start=first_number
    ):
        if tokenizer.unknown_id in ids:
            raise ValueError(
                f"Target prefix {number} has a character that the tokenizer does not "
                f"know: {prefix!r:.60}"
            )
        if len(ids) > longest:
            raise ValueError(
                f"Target prefix {number} has {len(ids)} tokens, but the longest output "
                f"has {longest}: {prefix!r:.60}"
            )
    return rows

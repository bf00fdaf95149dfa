"""What a loop is, read off from the definition."""

import re


def loops(said):
    """Whether anything of up to 16 tokens is there four times in a row."""
    return any(
        said[i : i + 4 * n] == 4 * said[i : i + n]
        for n in range(1, 17)
        for i in range(len(said) - 4 * n + 1)
    )


def text_loops(source, text):
    """Whether a text, but not its source, repeats 2 to 40 characters four times."""
    repeated = re.compile(r"(\S.{1,39}?)\1{3,}", re.DOTALL)
    has_loop = [
        any(re.search(r"\w", match[1]) for match in repeated.finditer(each + " "))
        for each in (source, text)
    ]
    return has_loop == [False, True]

"""What a loop is, read off from the definition."""

NUMBER = -2  # the text of a target piece that is part of a number


def loops(said):
    """Whether anything of up to 16 tokens is there four times in a row."""
    return any(
        said[i : i + 4 * n] == 4 * said[i : i + n]
        for n in range(1, 17)
        for i in range(len(said) - 4 * n + 1)
    )


def repeated_texts(texts, times):
    """The texts that a source repeats; each piece has its text some times itself."""
    found = set()
    for n in range(1, 17):
        for i in range(len(texts) - 4 * n + 1):
            if texts[i : i + 4 * n] == 4 * texts[i : i + n]:
                found.update(texts[i : i + n])
    for i, text in enumerate(texts):
        total = 0
        for other, count in zip(texts[i:], times[i:], strict=True):
            if other != text:
                break
            total += count
        if total >= 4:
            found.add(text)
    return found


def ends_loop(said, texts=range(99), repeated=frozenset()):
    """Whether the last token repeats something the fourth time that may not repeat."""
    for n in range(1, 17):
        unit = [texts[token] for token in said[-n:]]
        is_loop = len(said) >= 4 * n and list(said[-4 * n :]) == 4 * list(said[-n:])
        if is_loop and NUMBER not in unit and not repeated.issuperset(unit):
            return True
    return False

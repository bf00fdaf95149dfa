"""What a loop is, read off from the definition."""


def loops(said):
    """Whether anything of up to 16 tokens is there four times in a row."""
    return any(
        said[i : i + 4 * n] == 4 * said[i : i + n]
        for n in range(1, 17)
        for i in range(len(said) - 4 * n + 1)
    )

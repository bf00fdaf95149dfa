"""Files whose bytes were changed anywhere, for those who must refuse them well."""

import contextlib
import tracemalloc

from hypothesis import strategies as st

_LARGE = [0xFF, 0x7F, 0x80, 0x00, 0x01]
_EDITS = st.tuples(
    st.sampled_from(["overwrite", "insert", "delete", "cut"]),
    st.floats(0, 1, exclude_max=True),
    st.lists(st.sampled_from(_LARGE) | st.integers(0, 255), min_size=1, max_size=8),
)


def damaged(content):
    """A strategy of versions of some bytes: overwritten, longer, shorter, cut off."""
    return st.lists(_EDITS, min_size=1, max_size=4).map(
        lambda edits: _with_edits(content, edits)
    )


def cuts_and_flips(content, most=1000):
    """Yields some bytes cut at each place, and with one bit changed at each place.

    Args:
        content: bytes.
        most: number of places, which are evenly spaced where there are more.
    """
    step = max(1, len(content) // most)
    for place in range(0, len(content), step):
        yield content[:place]
        flipped = content[place] ^ 1 << (place // step) % 8
        yield content[:place] + bytes([flipped]) + content[place + 1 :]


@contextlib.contextmanager
def at_most_allocated(megabytes):
    """Fails if the block holds more memory than this at any instant."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert peak < megabytes, f"{peak:.1f} MB"


def _with_edits(content, edits):
    for kind, where, new in edits:
        at, new = int(where * len(content)), bytes(new)
        end = {"overwrite": at + len(new), "insert": at, "delete": at + len(new)}
        if kind == "cut":
            content = content[:at]
        else:
            rest = content[end[kind] :]
            content = content[:at] + (b"" if kind == "delete" else new) + rest
    return content

"""From many texts' ids to hypotheses: batches of about equal length, order kept."""

import warnings
from typing import NamedTuple

import numpy as np

from keras_vanilla.decoding import beam_search, greedy_search
from keras_vanilla.decoding.beam import check_beam_search
from keras_vanilla.decoding.limits import output_length
from keras_vanilla.text.lines import some_of
from keras_vanilla.text.sentences import cut_to_fit, sentences

ROWS = 64  # of a batch: enough to fill two cores, few enough to end together
WINDOW = 64 * ROWS  # texts among which those of about equal length are looked for


class Hypothesis(NamedTuple):
    """One translation of a text.

    Fields:
        text: str.
        score: float, the log-probability divided by the length penalty; None from
            greedy search, which does not add it up.
        ended: bool. False if the longest length came before an end.
    """

    text: str
    score: float | None
    ended: bool


NOTHING = Hypothesis("", 0.0, True)  # of a text without a piece


class Search:
    """One way to search with one model: source ids to hypotheses.

    Args:
        model: Transformer.
        tokenizer: Tokenizer.
        compiled: CompiledSearch of the model.
        beam_size: int. 1 is greedy search.
        length_penalty: float, see `beam_search`.
        max_length: int or None. Longest output in tokens, its end included.
        n_best: int or None. Hypotheses of each text, with scores; None means one
            without, which greedy search finds faster.
    Raises:
        ValueError: if a number is out of its range.
    """

    def __init__(
        self,
        model,
        tokenizer,
        compiled,
        beam_size=1,
        length_penalty=0.6,
        max_length=None,
        n_best=None,
    ):
        wanted = 1 if n_best is None else n_best
        check_beam_search(beam_size, wanted, length_penalty)
        output_length(model, 1, max_length)
        self.model, self.tokenizer, self.compiled = model, tokenizer, compiled
        self.max_length = max_length
        self.beams = None
        if beam_size > 1 or n_best is not None:
            self.beams = {
                "beam_size": beam_size,
                "length_penalty": float(length_penalty),
                "n_best": wanted,
            }

    def __call__(self, sources):
        """Yields a list of hypotheses, best first, for each list of source ids."""
        for start in range(0, len(sources), WINDOW):
            yield from self._window(sources[start : start + WINDOW])

    def ids(self, sources):
        """Target ids (B, n, L) and scores (B, n), or None, of one batch."""
        width = min(-(-max(map(len, sources)) // 8) * 8, self.model.max_length)
        # Few shapes to compile: widths in steps, rows filled up to a power of two.
        rows = [*sources, *[sources[-1]] * (_power_of_two(len(sources)) - len(sources))]
        source_ids = padded(rows, width, self.model.pad_id)
        if self.beams is None:
            ids = self.compiled(greedy_search, source_ids, max_length=self.max_length)
            return ids[: len(sources), None], None
        ids, scores = self.compiled(
            beam_search, source_ids, max_length=self.max_length, **self.beams
        )
        return ids[: len(sources)], scores[: len(sources)]

    def _window(self, sources):
        found = [[NOTHING]] * len(sources)
        by_length = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        wanted = [i for i in by_length if len(sources[i]) > 1]  # more than an end
        for start in range(0, len(wanted), ROWS):
            rows = wanted[start : start + ROWS]
            batch = self.ids([sources[i] for i in rows])
            for i, hypotheses in zip(rows, self._hypotheses(*batch), strict=True):
                found[i] = hypotheses
        return found

    def _hypotheses(self, ids, scores):
        rows, n_best, length = ids.shape
        texts = np.reshape(
            self.tokenizer.decode(ids.reshape(-1, length)), (rows, n_best)
        )
        ended = (ids == self.model.end_id).any(axis=2)
        scores = [[None]] * rows if scores is None else scores.tolist()
        for row in zip(texts.tolist(), scores, ended.tolist(), strict=True):
            row = map(Hypothesis, *row)
            yield [each for each in row if each.score != -np.inf]  # fewer than beams


def padded(rows, width, pad_id):
    """An int32 array (len(rows), width) of lists of ids, `pad_id` after each."""
    ids = np.full((len(rows), width), pad_id, dtype="int32")
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    return ids


def _power_of_two(number):
    """The least power of two that is not below."""
    return 1 << (number - 1).bit_length()


def search_sentences(search, texts):
    """One hypothesis for each text, whose sentences are translated one by one.

    The white space between sentences stays. A sentence too long for the model is cut
    further, with a warning.

    Args:
        search: Search.
        texts: list of str.
    Returns:
        Iterator of lists of one Hypothesis, without a score.
    """
    longest, encode = search.model.max_length, search.tokenizer.encode
    encode(texts)  # refuses what is no list of texts

    def fits(part):
        return len(encode([part])[0]) <= longest

    whole = [sentences(text) for text in texts]
    parts = [[p for each in text for p in cut_to_fit(each, fits)] for text in whole]
    cut = [i + 1 for i, text in enumerate(whole) if len(text) < len(parts[i])]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(texts)} texts have a sentence of more than {longest} "
            f"tokens, which is cut: texts {some_of(cut)}",
            stacklevel=3,
        )
    found = search(encode([part for text in parts for part in text]))
    return ([_joined(text, [next(found)[0] for _ in text])] for text in parts)


def warn_unfinished(found):
    """Says how many hypotheses have no end, and of which texts they are.

    Args:
        found: list of Hypothesis, one for each text.
    Warns:
        UserWarning: if there are any.
    """
    cut = [number for number, each in enumerate(found, start=1) if not each.ended]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(found)} translations reached their longest length "
            f"without an end: texts {some_of(cut)}",
            stacklevel=3,
        )


def _joined(parts, found):
    spaces = [part[len(part.rstrip()) :] for part in parts]
    text = "".join(each.text + space for each, space in zip(found, spaces, strict=True))
    return Hypothesis(text.strip(), None, all(each.ended for each in found))

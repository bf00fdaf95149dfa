"""From many texts' ids to hypotheses: batches of about equal length, order kept."""

import warnings
from typing import NamedTuple

import numpy as np

from keras_vanilla._checks import some_of
from keras_vanilla.data.sentences import cut_to_fit, sentences
from keras_vanilla.decoding import DecodingConfig, beam_search, greedy_search
from keras_vanilla.decoding.hypothesis_end import output_length

ROWS = 64  # of a batch at most: enough to fill two cores, few enough to end together
POSITIONS = 32_768  # of a batch at most, all beams counted: a cache of about a gigabyte
WINDOW = 64 * ROWS  # texts among which those of about equal length are looked for


class Hypothesis(NamedTuple):
    """One translation of a text.

    Fields:
        text: str.
        score: float, the log-probability divided by the length penalty; None from
            greedy search, which does not add it up.
        ids: list of int, with the end if there is one.
        ended: bool. False if the longest length came before an end.
    """

    text: str
    score: float | None
    ids: list[int]
    ended: bool


class Search:
    """One way to search with one model: texts to hypotheses.

    Args:
        model: Transformer.
        tokenizer: Tokenizer.
        compiled: CompiledSearch of the model.
        beam_size: int. 1 is greedy search.
        length_penalty: float, see `beam_search`.
        max_length: int or None. Longest output in tokens, its end included.
        n_best: int or None. Hypotheses of each text, with scores; None means one
            without, which greedy search finds faster.
        done: function called with the number of texts of each batch that is done, or
            None.
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
        done=None,
    ):
        wanted = 1 if n_best is None else n_best
        DecodingConfig(
            beam_size=beam_size, n_best=wanted, length_penalty=length_penalty
        )
        output_length(model, 1, max_length)
        self.model, self.tokenizer, self.compiled = model, tokenizer, compiled
        self.max_length, self.beam_size = max_length, beam_size
        self.done = done or (lambda count: None)
        self.beams = None
        if beam_size > 1 or n_best is not None:
            self.beams = {
                "beam_size": beam_size,
                "length_penalty": float(length_penalty),
                "n_best": wanted,
            }

    def __call__(self, texts):
        """Yields a list of hypotheses, best first, for each text.

        Raises:
            ValueError: if what the model computes are no numbers.
        """
        for start in range(0, len(texts), WINDOW):
            sources = self.tokenizer.encode(texts[start : start + WINDOW])
            yield from self._window(sources)

    def ids(self, sources):
        """Target ids (B, n, L) and scores (B, n), or None, of one batch."""
        width = min(rounded_width(sources), self.model.max_length)
        # Few shapes to compile: rows are filled up to a power of two.
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
        nothing = Hypothesis("", 0.0 if self.beams else None, [], True)
        found = [[nothing] for _ in sources]  # of a text without a piece
        wanted = {i: ids for i, ids in enumerate(sources) if len(ids) > 1}
        for rows in neighbours(wanted, self.beam_size):
            batch = self.ids([sources[i] for i in rows])
            for i, hypotheses in zip(rows, self._hypotheses(*batch), strict=True):
                found[i] = hypotheses
            self.done(len(rows))
        self.done(len(sources) - len(wanted))
        return found

    def _hypotheses(self, ids, scores):
        """Yields the hypotheses of each row of a batch, as `ids` gives it."""
        n_best, length = ids.shape[1:]
        texts = iter(self.tokenizer.decode(ids.reshape(-1, length)))
        scores = [[None]] * len(ids) if scores is None else scores.tolist()
        ended = (ids == self.model.end_id).any(axis=2).tolist()
        rows = zip(ids.tolist(), scores, ended, strict=True)
        for row, row_scores, row_ended in rows:
            found = [
                Hypothesis(next(texts), score, until_end(said, self.model), ended)
                for said, score, ended in zip(row, row_scores, row_ended, strict=True)
            ]
            found = [each for each in found if each.score != -np.inf]  # there are fewer
            if not found:
                raise ValueError("The model's logits are not numbers: it is of no use.")
            yield found


def neighbours(sources, beams=1):
    """Yields lists of keys whose sources are of about equal length, a batch each.

    Args:
        sources: dict or list of lists of ids.
        beams: int. How many hypotheses are kept of each.
    """
    keys = sources if isinstance(sources, dict) else range(len(sources))
    keys = sorted(keys, key=lambda key: len(sources[key]))
    start = 0
    while start < len(keys):
        longest = len(sources[keys[start : start + ROWS][-1]])
        rows = max(1, min(ROWS, POSITIONS // (longest * beams)))
        yield keys[start : start + rows]
        start += rows


def padded(rows, width, pad_id):
    """An int32 array (len(rows), width) of lists of ids, `pad_id` after each."""
    ids = np.full((len(rows), width), pad_id, dtype="int32")
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    return ids


def rounded_width(rows):
    """The longest length of lists of ids, in steps of 8: few shapes to compile."""
    return -(-max(map(len, rows)) // 8) * 8


def until_end(ids, model):
    """The ids up to the first end or, without one, without the last pads.

    Args:
        ids: list of int.
        model: has `end_id` and `pad_id`.
    """
    if model.end_id in ids:
        return ids[: ids.index(model.end_id) + 1]
    stop = len(ids)
    while stop and ids[stop - 1] == model.pad_id:
        stop -= 1
    return ids[:stop]


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
    found = search([part for text in parts for part in text])
    return ([_joined(text, [next(found)[0] for _ in text])] for text in parts)


def warn_unfinished(ended):
    """Says how many translations have no end, and of which texts they are.

    Args:
        ended: list of bool, one for each text.
    Warns:
        UserWarning: if one is False.
    """
    cut = [number for number, end in enumerate(ended, start=1) if not end]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(ended)} translations reached their longest length "
            f"without an end: texts {some_of(cut)}",
            stacklevel=3,
        )


def _joined(parts, found):
    spaces = [part[len(part.rstrip()) :] for part in parts]
    texts = [
        each.text + (space or _space_after(each.text))
        for each, space in zip(found, spaces, strict=True)
    ]
    ids = [id_ for each in found for id_ in each.ids]
    ended = all(each.ended for each in found)
    return Hypothesis("".join(texts).strip(), None, ids, ended)


def _space_after(text):
    """Where the source had none, in Chinese or Japanese: none after their letters."""
    return "" if text[-1:] >= "\u3000" else " "

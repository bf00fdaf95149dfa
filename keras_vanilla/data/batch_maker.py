"""The arrays of a batch."""

import numpy as np


class BatchMaker:
    """The padded arrays of a step, or the rows of them that this process feeds.

    Args:
        plan: Plan.
        examples: `EncodedPairs` or the like.
        tokenizer: Tokenizer, for its special ids.
        static_shapes: bool. Pad to a bucket's width and number of rows.
        replicas: Replicas.
    """

    def __init__(self, plan, examples, tokenizer, static_shapes, replicas):
        self.plan, self._examples = plan, examples
        self._static, self._replicas = static_shapes, replicas
        self.pad_id, self._start_id = tokenizer.pad_id, tokenizer.start_id

    def __call__(self, step, seed):
        """Ids (B, S) and (B, T), labels (B, T), and the whole batch's real tokens."""
        pairs, rows, width = self.plan.batch(int(step), seed)
        lengths = self._examples.lengths(pairs)  # (rows, 2)
        source_width, target_width = lengths.max(axis=0)
        if self._static:
            source_width = target_width = width
        mine = self._rows_here(rows if self._static else len(pairs))
        source_flat, target_flat = self._examples.read(pairs[mine])
        sources, targets = lengths[mine].T
        height = mine.stop - mine.start
        source_ids, _ = self._padded(source_flat, sources, height, source_width)
        labels, mask = self._padded(target_flat, targets, height, target_width)
        tokens = np.float32(lengths[:, 1].sum())
        return source_ids, self._shifted(labels, mask), labels, tokens

    @property
    def shape(self):
        """(rows, width) when every batch has the same, else (None, None)."""
        shapes = self.plan.shapes if self._static else ()
        if len(shapes) != 1:
            return None, None
        ((rows, width),) = shapes
        mine = self._rows_here(rows)
        return mine.stop - mine.start, width

    def line_numbers(self, step, seed):
        """Where in the corpus the pairs of a step stand."""
        return self._examples.line_numbers(self.plan.batch(step, seed)[0]).tolist()

    def _rows_here(self, rows):
        """The rows that this process feeds, when every replica takes as many."""
        each = -(-rows // self._replicas.count)
        first = self._replicas.first * each
        return slice(first, first + self._replicas.here * each)

    def _padded(self, flat, lengths, height, width):
        """(height, width) ids and their mask; rows after the pairs' are padding."""
        column = np.zeros((height, 1), dtype=np.int64)
        column[: len(lengths), 0] = lengths
        mask = np.arange(width) < column  # (height, width)
        ids = np.full((height, width), self.pad_id, dtype=np.int32)
        ids[mask] = flat
        return ids, mask

    def _shifted(self, labels, mask):
        """The start and all labels but each row's last: what the decoder is shown."""
        ids = np.full_like(labels, self.pad_id)
        ids[:, 1:][mask[:, 1:]] = labels[:, :-1][mask[:, 1:]]
        ids[mask[:, 0], 0] = self._start_id
        return ids

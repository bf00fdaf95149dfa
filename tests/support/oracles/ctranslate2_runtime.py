"""What CTranslate2 makes of a model folder, beside what we make of it."""

import ctranslate2
import numpy as np
from near_ties import assert_same_but_for_near_ties
from teacher_forcing import log_probabilities

from keras_vanilla.decoding import DecodingConfig


def open_runtime(folder, compute_type="float32", threads=1):
    """The `ctranslate2.Translator` of a folder."""
    return ctranslate2.Translator(
        str(folder), compute_type=compute_type, inter_threads=1, intra_threads=threads
    )


def source_tokens(translator, rows):
    """Ids without their ends as CTranslate2 takes them."""
    return [translator.tokenizer.source_pieces(row[:-1]) for row in rows]


def id_of_piece(tokenizer):
    """The id of each target piece."""
    pieces = tokenizer.target_pieces(range(tokenizer.target_vocabulary_size))
    return {piece: id_ for id_, piece in enumerate(pieces)}


def assert_scores_are_equal(runtime, translator, sources, targets, atol=1e-4):
    """The log-probability of each target token, the end too.

    Args:
        runtime: `ctranslate2.Translator`.
        translator: Translator.
        sources, targets: lists of lists of ids, each with its end.
    """
    pieces = [translator.tokenizer.target_pieces(row[:-1]) for row in targets]
    results = runtime.score_batch(source_tokens(translator, sources), pieces)
    for source, target, result in zip(sources, targets, results, strict=True):
        received = log_probabilities(translator.model, source, target)
        assert len(result.log_probs) == len(target)
        np.testing.assert_allclose(received, result.log_probs, rtol=0, atol=atol)


def assert_greedy_is_equal(runtime, translator, sources, max_length):
    """Greedy searches: the same ids but for near-ties. Returns CTranslate2's."""
    model, tokenizer = translator.model, translator.tokenizer
    expected = translator.search(sources, DecodingConfig(max_length=max_length))
    id_of = id_of_piece(tokenizer)
    results = runtime.translate_batch(
        source_tokens(translator, sources),
        beam_size=1,
        max_decoding_length=max_length,
        return_end_token=True,
    )
    received = [
        [id_of[piece] for piece in result.hypotheses[0]][:max_length]
        for result in results
    ]
    pairs = zip(expected.tolist(), received, strict=True)
    ours = [row[: len(other)] for row, other in pairs]
    assert_same_but_for_near_ties(model, sources, ours, received)
    return received

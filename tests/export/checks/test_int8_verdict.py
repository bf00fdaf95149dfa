"""An int8 file is judged by what its users lose: good files pass, broken ones fail."""

import dataclasses

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from word_reversal import dutch, english_sentences

from keras_vanilla import export
from keras_vanilla.export.checks.report import (
    Difference,
    MetricComparison,
    Report,
    compare_quality,
)
from keras_vanilla.export.metadata.flatbuffer import unpacked, with_description

TEXTS = english_sentences(24, seed=8)
REFERENCES = [dutch(text) for text in TEXTS]


def double_a_scale(tensor, weights):
    tensor.quantization.scale = 2 * tensor.quantization.scale
    return weights


def shift_the_zero(tensor, weights):
    return np.clip(weights.astype("int32") + 30, -127, 127).astype("int8")


def shuffle_rows(tensor, weights):
    return np.random.default_rng(0).permutation(weights)


def zero_them(tensor, weights):
    return np.zeros_like(weights)


def int8_matrices(model):
    """The tensors of the quantised matrices, the largest first."""
    by_buffer = {
        tensor.buffer: tensor
        for graph in model.subgraphs
        for tensor in graph.tensors
        if tensor.type == schema.TensorType.INT8
        and tensor.quantization.scale is not None
        and model.buffers[tensor.buffer].data is not None
    }
    return sorted(by_buffer.values(), key=lambda tensor: -np.prod(tensor.shape))


def write_broken(path, file, which, change):
    """The file with other weights, and with the checksum of these."""
    model = unpacked(file.read_bytes())
    model.metadata = None
    tensor = int8_matrices(model)[which]
    buffer = model.buffers[tensor.buffer]
    weights = np.array(buffer.data, "uint8").view("int8").reshape(tensor.shape)
    buffer.data = change(tensor, weights).reshape(-1).view("uint8")
    path.write_bytes(with_description(model, export.read_description(file)))


def test_good_file_passes_with_references_and_without(trained_translator, text_file):
    report = export.verify(trained_translator, text_file, TEXTS, REFERENCES)
    assert report.passed and report.quantized and len(report.milliseconds) == 24
    assert report.size == text_file.stat().st_size
    shown = str(report)
    for metric in report.metrics:
        assert f"{metric.name} {metric.file:.2f}, in Keras {metric.keras:.2f}" in shown
    assert len(report.metrics) == 2 and "differ by a near-tie at 8 bits" in shown
    assert "ms per sentence for 50/90/99 % of them, one thread" in shown
    assert export.verify(trained_translator, text_file, TEXTS).passed


@pytest.mark.full
@pytest.mark.parametrize(
    "which, change",
    [
        (0, shuffle_rows),
        (0, double_a_scale),
        (0, shift_the_zero),
        (1, zero_them),
        (4, zero_them),
        (-1, zero_them),
    ],
)
def test_broken_weights_do_not_pass(
    trained_translator, text_file, tmp_path, which, change
):
    path = tmp_path / "broken.tflite"
    write_broken(path, text_file, which, change)
    report = export.verify(trained_translator, path, TEXTS, REFERENCES)
    assert report.faults == () and report.differences
    assert not report.passed, report
    assert not dataclasses.replace(report, metrics=()).passed  # without references


@pytest.mark.full
def test_same_weights_packed_again_pass(trained_translator, text_file, tmp_path):
    path = tmp_path / "same.tflite"
    write_broken(path, text_file, 0, lambda _, same: same)
    assert export.verify(trained_translator, path, TEXTS, REFERENCES).passed


def test_loss_by_chance_is_not_significant():
    worse = [text.replace("een", "twee") for text in REFERENCES]
    same, _ = compare_quality(worse, list(worse), REFERENCES)
    assert same.keras == same.file and same.p_value == 1.0
    for metric in compare_quality(REFERENCES, worse, REFERENCES):
        assert metric.keras == pytest.approx(100) and metric.file < 99.7
        assert metric.p_value < 0.05
    by_chance, _ = compare_quality(
        REFERENCES, [*REFERENCES[:-1], "iets anders"], REFERENCES
    )
    assert by_chance.file < 99.7 and by_chance.p_value > 0.05


def metrics(bleu, chrf):
    """Losses with their p-values."""
    names = ("BLEU", *bleu), ("chrF", *chrf)
    return tuple(MetricComparison(n, 40.26, 40.26 - loss, p) for n, loss, p in names)


BETTER = metrics((-0.15, 0.3), (0.3 - 1e-6, 0.001))
SIGNIFICANT = metrics((0.0, 1.0), (0.31, 0.049))
BY_CHANCE = metrics((0.8, 0.06), (0.1, 0.2))


@pytest.mark.parametrize(
    "near, far, sentences, compared, passed",
    [
        (74, 0, 1000, (), True),
        (400, 63, 1000, (), True),
        (0, 64, 1000, (), False),
        (0, 1, 10, (), True),
        (0, 2, 10, (), False),
        (0, 1, 1, (), False),
        (30, 300, 1000, BETTER, True),
        (0, 0, 1000, SIGNIFICANT, False),
        (30, 63, 1000, BY_CHANCE, True),
        (30, 64, 1000, BY_CHANCE, False),
    ],
)
def test_metrics_decide_or_share_of_far_sentences(
    near, far, sentences, compared, passed
):
    gaps = [0.5] * near + [0.51] * far
    differences = [Difference(n, 0, gap, "") for n, gap in enumerate(gaps, 1)]
    report = Report(
        kind="TFLite",
        size=1,
        precision="int8",
        sentences=sentences,
        differences=tuple(differences),
        inputs=sentences,
        outputs=sentences,
        metrics=compared,
    )
    assert (report.near_ties, report.far, report.passed) == (near, far, passed)

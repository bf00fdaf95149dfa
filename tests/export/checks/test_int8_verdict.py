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
def test_file_of_broken_weights_does_not_pass(
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


def test_loss_is_significant_where_it_is_no_chance():
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


def judged(near, far, sentences=1000, metrics=()):
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
        metrics=metrics,
    )
    assert (report.near_ties, report.far) == (near, far)
    return report.passed


def test_without_references_near_ties_at_8_bits_are_no_fault():
    assert judged(near=74, far=0) and judged(near=400, far=63)
    assert not judged(near=0, far=64)
    assert judged(0, 1, sentences=10) and not judged(0, 2, sentences=10)
    assert not judged(0, 1, sentences=1)


def test_with_references_the_metrics_decide():
    def metric(name, loss, p_value):
        return MetricComparison(name, 40.26, 40.26 - loss, p_value)

    better = metric("BLEU", -0.15, 0.3), metric("chrF", 0.3 - 1e-6, 0.001)
    assert judged(near=30, far=300, metrics=better)
    significant = metric("BLEU", 0.0, 1.0), metric("chrF", 0.31, 0.049)
    assert not judged(near=0, far=0, metrics=significant)
    by_chance = metric("BLEU", 0.8, 0.06), metric("chrF", 0.1, 0.2)
    assert judged(near=30, far=63, metrics=by_chance)
    assert not judged(near=30, far=64, metrics=by_chance)

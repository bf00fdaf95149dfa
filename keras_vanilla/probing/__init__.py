"""Tests translators with difficult inputs, and classifies their outputs exactly."""

from keras_vanilla.probing.inputs import Probe, made_probes
from keras_vanilla.probing.judgement import (
    KindResult,
    ProbeResult,
    judged,
    loops,
    probe,
)

__all__ = [
    "KindResult",
    "Probe",
    "ProbeResult",
    "judged",
    "loops",
    "made_probes",
    "probe",
]

import dataclasses

import numpy as np

from keras_vanilla._about import About
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export import ExportConfig


def test_fields_of_search_and_about_are_keywords():
    config = ExportConfig.of(quantize="int4", beam_size=4, no_loops=True, name="A")
    assert config == ExportConfig(
        quantize="int4",
        decoding=DecodingConfig(beam_size=4, no_loops=True),
        about=About(name="A"),
    )
    again = ExportConfig.of(config, length_penalty=1.0, data="B", max_bytes=9)
    assert again.decoding == DecodingConfig(
        beam_size=4, no_loops=True, length_penalty=1.0
    )
    assert again.about == About(name="A", data="B")
    assert dataclasses.replace(again, about=config.about).about == config.about


def test_numbers_of_numpy_become_python_s():
    config = ExportConfig(max_bytes=np.int64(99), max_source_length=np.int32(20))
    assert (config.max_bytes, config.max_source_length) == (99, 20)
    assert type(config.max_bytes) is type(config.max_source_length) is int

import dataclasses

import pytest

from keras_vanilla._about import About
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export import ExportConfig


def test_fields_of_the_search_and_of_what_it_is_are_given_by_name():
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


@pytest.mark.parametrize(
    "settings, error, message",
    [
        ({"beam_sise": 2}, TypeError, "no argument 'beam_sise'.*'beam_size'"),
        ({"config": "int4"}, TypeError, "quantize='int4'. Received: 'int4'"),
        ({"decoding": 4}, TypeError, "of the type DecodingConfig. Received: 4"),
        ({"about": "A"}, TypeError, "of the type About. Received: 'A'"),
        ({"decoding": DecodingConfig(max_length=9)}, ValueError, "file's `max_length`"),
        ({"decoding": DecodingConfig(n_best=1)}, ValueError, "`decoding` may have"),
        ({"form": "steps", "no_loops": True}, ValueError, "leaves the search to the"),
        ({"outputs": "alignment"}, TypeError, "a list of str. Received: 'alignment'"),
        ({"outputs": ["scores"]}, ValueError, "Received: 'scores'"),
        (
            {"form": "steps", "outputs": ["confidence"]},
            ValueError,
            "form 'text'.*confidence.*form='steps'",
        ),
        ({"quantize": "int5"}, ValueError, "'int8'"),
        ({"max_bytes": 0}, ValueError, "Received: 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_what_no_file_can_have_is_refused(settings, error, message):
    with pytest.raises(error, match=message):
        ExportConfig.of(**settings)

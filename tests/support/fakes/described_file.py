"""A `.tflite` file that describes itself as a translator, and holds nothing to run."""

from ai_edge_litert import schema_py_generated as schema

from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.metadata.flatbuffer import with_description

FACTS = {
    "name": "de-en",
    "source_language": "de",
    "target_language": "en-GB",
    "max_bytes": 131,
    "max_source_tokens": 40,
    "max_output_tokens": 43,
    "beam_size": 4,
    "length_penalty": 0.6,
    "quantize": "int8",
    "parameters": 7_654_321,
    "model_license": "Apache-2.0",
    "data": "Grüße | 猫",
    "data_license": "CC-BY-4.0",
}
REQUIRED = "name max_bytes max_source_tokens max_output_tokens parameters".split()
LEAST = {name: FACTS[name] for name in REQUIRED}


def content(**facts):
    """The file's bytes.

    Args:
        facts: arguments of `Description`.
    """
    limits = {"max_bytes": 9, "max_source_tokens": 9, "max_output_tokens": 9}
    empty = schema.ModelT(version=3, buffers=[schema.BufferT()])
    description = Description(name="empty", parameters=0, **limits | facts)
    return with_description(empty, description)


def written(path):
    """The path, of a file with the content."""
    path.write_bytes(content())
    return path

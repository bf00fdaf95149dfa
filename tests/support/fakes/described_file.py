"""A `.tflite` file that describes itself as a translator, and holds nothing to run."""

from ai_edge_litert import schema_py_generated as schema

from keras_vanilla.export.metadata.description import Description, with_description


def content(**facts):
    """The file's bytes.

    Args:
        facts: arguments of `Description`.
    """
    limits = {"max_bytes": 9, "max_source_tokens": 9, "max_output_tokens": 9}
    empty = schema.ModelT(version=3, buffers=[schema.BufferT()])
    description = Description(name="empty", parameters=0, **limits | facts)
    return with_description(empty, description)

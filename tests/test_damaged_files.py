"""Files with bytes overwritten, inserted, deleted or cut off: one sentence each.

A reader returns what it read of a whole file; of a damaged one the same, or it raises a
ValueError or OSError with the name of the file.
"""

from functools import cache

import described_file
import pytest
from damaged_bytes import damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_vanilla.export import read_description

# name of the file -> its bytes, and the function that reads a path
FILES = {
    "described.tflite": (cache(described_file.content), read_description),
}


@pytest.mark.parametrize("name", FILES)
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_file_is_refused_by_name(name, tmp_path, data):
    content, read = FILES[name]
    path = tmp_path / name
    path.write_bytes(content())
    expected = read(path)
    path.write_bytes(data.draw(damaged(content())))
    try:
        assert read(path) == expected
    except (ValueError, OSError) as error:
        assert name in str(error) and "\n" not in str(error)

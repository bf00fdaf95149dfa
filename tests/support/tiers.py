"""Values of a parametrized test that only the full tier takes."""

import pytest


def in_full(*values):
    """Each value, a tuple if there are several arguments, as one of the full tier."""
    return [
        pytest.param(*value, marks=pytest.mark.full)
        if isinstance(value, tuple)
        else pytest.param(value, marks=pytest.mark.full)
        for value in values
    ]

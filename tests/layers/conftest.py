"""What the tests of several layers share."""

import pytest


@pytest.fixture(autouse=True)
def quantises_fast(monkeypatch):
    """Keras collects the garbage of the whole process for each weight it replaces."""
    monkeypatch.setattr("gc.collect", lambda: 0)

"""Tests of resuming do not wait for the disk: no test cuts the power."""

import pytest

from keras_vanilla import _atomic_write


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(_atomic_write.os, "fsync", lambda descriptor: None)

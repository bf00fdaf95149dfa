"""What a person reads who has not installed Ray."""

import sys

import pytest

from keras_vanilla.bulk import translate_shards


def test_how_to_install_it_is_said(sources, out, trained_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install .*\[ray\]"):
        translate_shards(trained_file, sources, out, engine="ray")

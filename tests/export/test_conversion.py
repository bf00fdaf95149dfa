"""TensorFlow's messages about temporary folders are hidden, and others are not."""

import logging

import pytest
import tensorflow as tf

from keras_vanilla.export.tensorflow_graphs import save_graph


class Doubling(tf.Module):
    def signatures(self):
        spec = [tf.TensorSpec([3], tf.float32, name="x")]
        double = tf.function(lambda x: {"y": 2 * x}, spec)
        return {"double": double, "again": double}


def test_graph_is_saved_without_message(tmp_path, monkeypatch):
    logger, messages = tf.get_logger(), []
    monkeypatch.setattr(logger, "level", logging.INFO)  # as in a notebook
    monkeypatch.setattr(logger, "handle", messages.append)
    names = save_graph(Doubling(), tmp_path / "graph")
    loaded = tf.saved_model.load(str(tmp_path / "graph"))
    assert sorted(names) == sorted(loaded.signatures) == ["again", "double"]
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(Exception, match="file"):
        save_graph(Doubling(), tmp_path / "file" / "graph")
    assert messages == [] and logger.level == logging.INFO

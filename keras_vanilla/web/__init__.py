"""The page that translates in a browser; it opens without TensorFlow or Keras."""

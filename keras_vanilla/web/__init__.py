"""A page that translates in a browser; serving it needs no TensorFlow or Keras."""

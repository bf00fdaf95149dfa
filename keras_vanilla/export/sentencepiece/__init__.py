"""SentencePiece as TensorFlow Lite builtin operators."""

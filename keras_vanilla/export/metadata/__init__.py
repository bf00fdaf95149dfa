"""The description inside a `.tflite` file, and the model card beside it."""

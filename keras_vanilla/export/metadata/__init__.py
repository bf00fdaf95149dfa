"""The description inside a `.tflite` file, and its model card."""

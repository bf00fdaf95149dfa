"""Exported files opened again: what they are, and what they say."""

from pathlib import Path

import numpy as np

from keras_vanilla.translator import first_line


def open_exported(path):
    """Opens a SavedModel folder or a `.tflite` file.

    Args:
        path: path of either.
    Returns:
        SavedModelFolder or TfliteFile.
    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if it is neither, is damaged, or has other signatures.
        ImportError: if a `.tflite` file is to be read without ai-edge-litert.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}.")
    return SavedModelFolder(path) if path.is_dir() else TfliteFile(path)


class SavedModelFolder:
    """A SavedModel that `saved_model` wrote, read by TensorFlow alone.

    Args:
        path: Path of the folder.
    Raises:
        ValueError: if it is no SavedModel, is damaged, or has other signatures.
    """

    kind = "SavedModel"
    quantized = False
    custom_operators = ()
    longest_source = None  # the model's own, which the graph checks

    def __init__(self, path):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  registers the operators in the graph

        self.path = path
        self.size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
        if not tf.saved_model.contains_saved_model(str(path)):
            raise ValueError(f"{path} is not a SavedModel folder.")
        try:
            self._loaded = tf.saved_model.load(str(path))
        except Exception as error:  # TensorFlow raises many kinds
            raise _damaged(path, error) from error
        _require(path, self._loaded.signatures, "translate", "translate_ids")

    def translate_ids(self, source_ids):
        """Target ids (B, L) of source ids (B, S): an int32 array."""
        return self._run("translate_ids", source_ids=source_ids)["ids"].numpy()

    def translate(self, texts):
        """The translation of each text: a list of str."""
        translations = self._run("translate", text=texts)["text"].numpy()
        return [text.decode() for text in translations]

    def _run(self, signature, **inputs):
        import tensorflow as tf

        inputs = {name: tf.constant(value) for name, value in inputs.items()}
        try:
            return self._loaded.signatures[signature](**inputs)
        except tf.errors.OpError as error:
            raise _cannot_run(self.path, error) from error


class TfliteFile:
    """A `.tflite` file of the ids form, run by LiteRT.

    Args:
        path: Path of the file.
    Raises:
        ValueError: if it is no `.tflite` file, is damaged, or has other signatures.
        ImportError: if ai-edge-litert is not installed.
    """

    kind = "TFLite"

    def __init__(self, path):
        interpreter = _litert_interpreter()
        self.path = path
        self.size = path.stat().st_size
        try:
            self._interpreter = interpreter(model_path=str(path))
        except (RuntimeError, ValueError) as error:
            raise _damaged(path, error) from error
        _require(path, self._interpreter.get_signature_list(), "translate_ids")
        self.custom_operators, self.quantized = _operators_and_precision(path)
        if not self.custom_operators:  # else LiteRT refuses to prepare it
            self._runner = self._interpreter.get_signature_runner("translate_ids")
            shape = self._runner.get_input_details()["source_ids"]["shape"]
            self.longest_source = int(shape[1])

    def translate_ids(self, source_ids):
        """Target ids (B, L) of source ids (B, S), S the longest: an int32 array."""
        try:
            rows = [self._runner(source_ids=row[None])["ids"] for row in source_ids]
        except RuntimeError as error:
            raise _cannot_run(self.path, error) from error
        return np.concatenate(rows)


def _litert_interpreter():
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ImportError(
            "A .tflite file is run by ai-edge-litert, which is not installed: "
            "pip install ai-edge-litert"
        ) from error
    return Interpreter


def _operators_and_precision(path):
    """The operators that are not builtins, and whether there are int8 weights."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.Model.GetRootAs(path.read_bytes(), 0)
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    custom = {code.CustomCode().decode() for code in codes if code.CustomCode()}
    graphs = [model.Subgraphs(i) for i in range(model.SubgraphsLength())]
    types = {g.Tensors(i).Type() for g in graphs for i in range(g.TensorsLength())}
    return tuple(sorted(custom)), schema.TensorType.INT8 in types


def _require(path, signatures, *names):
    missing = [name for name in names if name not in signatures]
    if missing:
        raise ValueError(
            f"{path} was not exported from a translator: it has no signature "
            f"{', '.join(missing)}."
        )


def _damaged(path, error):
    return ValueError(f"{path} cannot be read, or is cut short: {first_line(error)}")


def _cannot_run(path, error):
    return ValueError(
        f"{path} cannot run on this translator's ids or texts: {first_line(error)}"
    )

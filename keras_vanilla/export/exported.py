"""Exported files as something that can be asked: their facts, and what they say."""

from pathlib import Path

import numpy as np


def open_exported(path, end_id, pad_id):
    """Opens a SavedModel folder or a `.tflite` file.

    Args:
        path: path of either.
        end_id: int. Closes a sequence of target ids.
        pad_id: int. Fills up sequences.
    Returns:
        SavedModelFolder or TfliteFile.
    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if it is neither, is cut short, or was not written by this package.
        ImportError: if a `.tflite` file is to be read without ai-edge-litert.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}.")
    kind = SavedModelFolder if path.is_dir() else TfliteFile
    return kind(path, end_id, pad_id)


class SavedModelFolder:
    """A SavedModel that `saved_model` wrote, loaded with TensorFlow alone."""

    kind = "SavedModel"
    quantized = False
    custom_operators = ()
    longest_source = None  # the model's, which its graph checks

    def __init__(self, path, end_id, pad_id):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  its operators are in the graph

        self.path, self._end_id, self._pad_id = path, end_id, pad_id
        self.size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
        if not tf.saved_model.contains_saved_model(str(path)):
            raise ValueError(f"{path} is not a SavedModel folder.")
        try:
            self._loaded = tf.saved_model.load(str(path))
        except Exception as error:  # TensorFlow raises many kinds
            raise _unreadable(path, error) from error
        _require_signatures(path, self._loaded.signatures, "translate", "translate_ids")

    def translate_ids(self, source_ids):
        """Target ids of each row of source ids (B, S): a list of lists of int."""
        ids = self._run("translate_ids", source_ids=np.asarray(source_ids, "int32"))
        return [cut(row, self._end_id, self._pad_id) for row in ids["ids"].numpy()]

    def translate(self, texts):
        """The translation of each text: a list of str."""
        translations = self._run("translate", text=list(texts))["text"].numpy()
        return [text.decode() for text in translations]

    def _run(self, signature, **inputs):
        import tensorflow as tf

        inputs = {name: tf.constant(value) for name, value in inputs.items()}
        try:
            return self._loaded.signatures[signature](**inputs)
        except tf.errors.OpError as error:
            raise _cannot_run(self.path, error) from error


class TfliteFile:
    """A `.tflite` file of the ids form, run by LiteRT."""

    kind = "TFLite"

    def __init__(self, path, end_id, pad_id):
        interpreter_class = _litert_interpreter()
        self.path, self._end_id, self._pad_id = path, end_id, pad_id
        self.size = path.stat().st_size
        try:
            interpreter = interpreter_class(model_path=str(path))
        except (RuntimeError, ValueError) as error:
            raise _unreadable(path, error) from error
        signatures = interpreter.get_signature_list()
        _require_signatures(path, signatures, "translate_ids")
        self.custom_operators, self.quantized = _operators_and_types(path)
        details = {d["name"].split(":")[0]: d for d in interpreter.get_input_details()}
        name = f"translate_ids_{signatures['translate_ids']['inputs'][0]}"
        self.longest_source = int(details[name]["shape"][1])
        self._interpreter = interpreter

    def translate_ids(self, source_ids):
        """Target ids of each row of source ids (B, S): a list of lists of int."""
        return [self._translate_row(row) for row in source_ids]

    def _translate_row(self, row):
        inputs = np.full((1, self.longest_source), self._pad_id, dtype="int32")
        row = cut(row, self._end_id, self._pad_id)
        inputs[0, : len(row)] = row
        try:
            run = self._interpreter.get_signature_runner("translate_ids")
            ids = run(source_ids=inputs)["ids"]
        except RuntimeError as error:
            raise _cannot_run(self.path, error) from error
        return cut(ids[0], self._end_id, self._pad_id)


def cut(row, end_id, pad_id):
    """The ids of a row up to its first end or, without one, without its last pads."""
    row = np.asarray(row).tolist()
    if end_id in row:
        return row[: row.index(end_id) + 1]
    while row and row[-1] == pad_id:
        row.pop()
    return row


def _litert_interpreter():
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ImportError(
            "A .tflite file is run by ai-edge-litert, which is not installed: "
            "pip install ai-edge-litert"
        ) from error
    return Interpreter


def _operators_and_types(path):
    """The names of operators that are not builtins, and whether weights are int8."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.Model.GetRootAs(path.read_bytes(), 0)
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    custom = sorted(code.CustomCode().decode() for code in codes if code.CustomCode())
    graphs = [model.Subgraphs(i) for i in range(model.SubgraphsLength())]
    types = {g.Tensors(i).Type() for g in graphs for i in range(g.TensorsLength())}
    return tuple(custom), schema.TensorType.INT8 in types


def _require_signatures(path, signatures, *names):
    missing = [name for name in names if name not in signatures]
    if missing:
        raise ValueError(
            f"{path} was not exported from a translator: it has no signature "
            f"{', '.join(missing)}."
        )


def _unreadable(path, error):
    return ValueError(f"{path} cannot be read, or is cut short: {_first_line(error)}")


def _cannot_run(path, error):
    return ValueError(
        f"{path} cannot run on this model's source ids, as if it came from another "
        f"model: {_first_line(error)}"
    )


def _first_line(error):
    return str(error).strip().split("\n")[0] or type(error).__name__

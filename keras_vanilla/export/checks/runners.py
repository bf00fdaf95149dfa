"""Opens exported files and translates with them."""

import contextlib
import threading
import time
from pathlib import Path

import numpy as np

from keras_vanilla._checks import extra_missing, first_line
from keras_vanilla._types import PathLike
from keras_vanilla.decoding.hypothesis_end import longest_output
from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.metadata.flatbuffer import read_description
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.translation.buckets import bucket_width, pad_rows
from keras_vanilla.translation.doubts import doubts_of

ANY_LENGTH = 2**31 - 1


def open_exported(path: PathLike) -> "SavedModelFolder | TfliteFile":
    """Opens a SavedModel folder or a `.tflite` file.

    Args:
        path: path of the folder or file.
    Returns:
        SavedModelFolder or TfliteFile.
    Raises:
        FileNotFoundError: if `path` does not exist.
        ValueError: if it is neither, is damaged, or has other signatures.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}.")
    return SavedModelFolder(path) if path.is_dir() else TfliteFile(path)


class SavedModelFolder:
    """A SavedModel that `saved_model` wrote, loaded with TensorFlow only.

    Args:
        path: path of the folder.
    Raises:
        ValueError: if it is not a SavedModel, is damaged, or has other signatures.
    """

    kind = "SavedModel"
    milliseconds = ()

    def __init__(self, path: PathLike):
        try:
            import tensorflow as tf
        except ModuleNotFoundError as error:
            raise extra_missing("SavedModels", "tensorflow", "tensorflow") from error
        with contextlib.suppress(ModuleNotFoundError):
            import tensorflow_text  # noqa: F401  registers operators of most folders
        self.path = path = Path(path)
        self.size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
        self.description = Description(  # the graph checks the model's limits
            name=path.name,
            max_bytes=ANY_LENGTH,
            max_source_tokens=ANY_LENGTH,
            max_output_tokens=ANY_LENGTH,
            parameters=0,
        )
        if not tf.saved_model.contains_saved_model(str(path)):
            raise ValueError(f"{path} is not a SavedModel folder.")
        try:
            self._loaded = tf.saved_model.load(str(path))
        except Exception as error:  # TensorFlow raises many kinds
            if "Op type not registered 'Sentencepiece" in str(error):
                raise extra_missing(
                    f"The operators of {path}", "tensorflow-text", "text"
                ) from error
            raise _damaged(path, error) from error
        for name in ("translate", "translate_ids"):
            if name not in self._loaded.signatures:
                raise ValueError(
                    f"{path} was not exported from a translator: it has no signature "
                    f"{name}."
                )

    def translate(self, texts: list[str], sources: list, model: Transformer) -> tuple:
        """Returns target ids, int32 array (B, L), and translations, list of str."""
        source_ids = pad_rows(sources, bucket_width(sources), model.pad_id)
        (ids,) = self._run("translate_ids", "ids", source_ids=source_ids)
        (translations,) = self._run("translate", "text", text=texts)
        return ids, [text.decode() for text in translations]

    def translate_texts(self, texts: list[str]) -> list[tuple[str, bool]]:
        """Returns each text's translation, and whether the text has too many tokens."""
        results = self._run("translate", "text", "too_long", text=texts)
        pairs = zip(*results, strict=True)
        return [(text.decode(), bool(too_long)) for text, too_long in pairs]

    def _run(self, signature, *outputs, **inputs):
        import tensorflow as tf

        inputs = {name: tf.constant(value) for name, value in inputs.items()}
        try:
            results = self._loaded.signatures[signature](**inputs)
            return [results[output].numpy() for output in outputs]
        except (tf.errors.OpError, TypeError, ValueError, KeyError) as error:
            raise _cannot_run(self.path, error) from error


class TfliteFile:
    """A `.tflite` file that `tflite` wrote, run by LiteRT.

    Args:
        path: path of the file.
        threads: int.
    Raises:
        ValueError: if it is not a `.tflite` file, is damaged, has no description, or
            needs operators that are not builtin.
    """

    kind = "TFLite"

    def __init__(self, path: PathLike, threads: int = 1):
        from ai_edge_litert.interpreter import Interpreter

        self.path = path = Path(path)
        self.description = read_description(path)  # first, because of the checksum
        self.size = path.stat().st_size
        self.milliseconds = []  # per sentence
        self._lock = threading.Lock()
        try:
            interpreter = Interpreter(model_path=str(path), num_threads=threads)
            self._run = {
                name: interpreter.get_signature_runner(name)
                for name in interpreter.get_signature_list()
            }
        except (RuntimeError, ValueError) as error:
            raise _damaged(path, error) from error

    def translate(self, texts: list[str], sources: list, model: Transformer) -> tuple:
        """Returns target ids and translations.

        The ids are an int32 array (B, L), the translations a sequence of str, or of
        None if the file does not output text.
        """
        results = []
        for text, source in zip(texts, sources, strict=True):
            begin = time.perf_counter()
            try:
                results.append(self._translate(text, source, model))
            except (RuntimeError, ValueError, KeyError) as error:
                raise _cannot_run(self.path, error) from error
            self.milliseconds.append(1e3 * (time.perf_counter() - begin))
        ids, translations = zip(*results, strict=True)
        return np.stack(ids), translations

    def translate_text(self, text: str) -> tuple[np.ndarray, str, float, list[str]]:
        """Returns ids (L,), translation, score and `doubts_of`, for the form "text".

        The score is NaN if the text has more tokens than the file takes. Only one
        thread runs at a time, because LiteRT's interpreter keeps the tensors of a call.
        """
        with self._lock:
            result = self._run["translate"](text=self._padded_bytes(text))
        translation = result["text"].tobytes().rstrip(b"\0").decode()
        judged = (result.get(name) for name in ("probability", "known"))
        doubts = doubts_of(text, translation, *judged) if text.strip() else []
        return result["ids"], translation, float(result["score"]), doubts

    def _padded_bytes(self, text):
        text_bytes = text.encode().ljust(self.description.max_bytes, b"\0")
        return np.frombuffer(text_bytes, "uint8")

    def _translate(self, text, source, model):
        """Returns ids (L,), and the translation in the form "text", otherwise None."""
        if self.description.form == "text":
            ids, translation, *_ = self.translate_text(text)
            return ids, translation
        if self.description.takes_text:
            inputs = {"text": self._padded_bytes(text)}
        else:
            width = self.description.max_source_tokens
            inputs = {"source_ids": pad_rows([source], width, model.pad_id)}
        return self._searched(inputs, len(source), model), None

    def _searched(self, inputs, count, model):
        """Runs a greedy search, as an app does it."""
        encoded, step = self._run["encode"](**inputs), self._run["decode_step"]
        cache = {
            name: encoded.get(name, np.zeros(tensor["shape"], "float32"))
            for name, tensor in step.get_input_details().items()
            if name not in ("ids", "index")
        }
        length = self.description.max_output_tokens
        ids, last = np.full(length, model.pad_id, "int32"), model.start_id
        for index in range(longest_output(count, length)):
            token = np.array([last], "int32")
            changed = step(ids=token, index=np.array(index, "int32"), **cache)
            last = ids[index] = changed.pop("logits").argmax()
            if last == model.end_id:
                break
            cache.update((name, changed[name]) for name in changed if name in cache)
        return ids


def _damaged(path, error):
    return ValueError(f"{path} cannot be read, or is cut short: {first_line(error)}")


def _cannot_run(path, error):
    return ValueError(
        f"{path} cannot run on this translator's ids or texts: {first_line(error)}"
    )

"""The page in a browser: export/web/test drives it, this prepares what it looks at."""

import os
from contextlib import ExitStack

import echo_file
import pytest
import tensorflow as tf
import word_reversal
from web_setting import (
    ECHOED,
    TOO_MANY_TOKENS,
    described,
    described_by_0_5,
    hosted,
    in_python,
    node,
    served,
    with_one_other_byte,
)

from keras_vanilla.export.metadata.description import FORMAT

pytestmark = pytest.mark.full


def foreign():
    """A `.tflite` file that has nothing to do with text."""
    double = tf.function(
        lambda x: 2 * x, input_signature=[tf.TensorSpec([3], tf.float32)]
    ).get_concrete_function()
    return tf.lite.TFLiteConverter.from_concrete_functions([double]).convert()


class Bytes(tf.Module):
    """Maps the bytes of a text to others, as a damaged file may."""

    def __init__(self, change):
        super().__init__()
        self._change = change

    @tf.function(
        input_signature=[tf.TensorSpec([131], tf.uint8, name="text")], autograph=False
    )
    def translate(self, text):
        octets = self._change(tf.cast(text, tf.int32))
        score = -1.5 + 0 * tf.cast(octets[0], tf.float32)
        return {"text": tf.cast(octets, tf.uint8), "ids": octets, "score": score}


def changing(change, folder):
    """A file of version 0.5.0 that maps each text's bytes to `change(bytes)`."""
    module = Bytes(change)
    tf.saved_model.save(module, folder, signatures={"translate": module.translate})
    converter = tf.lite.TFLiteConverter.from_saved_model(
        str(folder), signature_keys=["translate"]
    )
    return described_by_0_5(converter.convert())


NO_TEXT = {
    "not-utf-8": lambda octets: tf.where(octets > 0, 255, 0),
    "nul": lambda octets: tf.where(octets == ord("u"), 0, octets),
}


def refused(folder, runtime):
    """Files that the page refuses: name -> (path, runtime, code, message)."""
    whole = described(echo_file.content(), "refused")
    contents = {
        "cut": (whole[: len(whole) // 2], "damaged", "damaged, or cut off after"),
        "cut-at-its-end": (whole[:-9], "damaged", "damaged, or cut off after"),
        "noise": (whole[:8] + os.urandom(9999), "damaged", "damaged, or cut off after"),
        "one-other-byte": (with_one_other_byte(whole), "damaged", "the checksum at"),
        "not-empty": (
            changing(lambda octets: octets + 65, folder / "not-empty"),
            "damaged",
            "empty text",
        ),
        "no-model": (whole[:4] + b"TFL3" + bytes(99), "not-ours", "not a translator"),
        "foreign": (foreign(), "not-ours", "not a translator"),
        "steps": (
            described(echo_file.content(), "steps", form="steps"),
            "not-ours",
            "form “steps”",
        ),
        "other-format": (
            whole.replace(FORMAT.encode(), b"keras_vanilla translator 9"),
            "other-format",
            "translator 9",
        ),
        "empty": (b"", "not-tflite", "not a .tflite file"),
        "missing": (None, "missing", "There is no model at .*404"),
        "no-runtime": (whole, "runtime", "LiteRT.js did not load from"),
    }
    for name, (content, code, message) in contents.items():
        path = folder / f"{name}.tflite"
        if content is not None:
            path.write_bytes(content)
        yield name, path, folder if code == "runtime" else runtime, code, message


def test_page_equals_python(
    setting, runtime, echo, translator, short, unseen_sentences, tmp_path
):
    texts = {
        "short": in_python(short, unseen_sentences),
        "translator": in_python(translator, unseen_sentences),
        "echo": in_python(echo, [*ECHOED, *echo_file.LINES[:100]]),
    }
    assert TOO_MANY_TOKENS in dict(texts["echo"]).values()
    files = {"translator": translator, "short": short, "echo": echo}
    with ExitStack() as stack:
        setting["urls"] = {
            name: stack.enter_context(served(path, runtime))
            for name, path in files.items()
        }
        setting["texts"] = texts
        setting["limits"] = {
            "bytes": echo_file.MAX_BYTES,
            "tokens": echo_file.MAX_TOKENS,
        }
        setting["facts"] = ["An echo", "German to Brazilian Portuguese", "12,345"]
        setting["facts"] += ["131 bytes", "40 tokens", "not stated", "CC0"]
        node("translates", setting, tmp_path)


def test_words_show_their_sources(setting, runtime, echo, linked, tmp_path):
    with served(echo, runtime) as plain, served(linked, runtime) as url:
        setting["urls"] = {"echo": plain, "linked": url}
        names = zip(word_reversal.DUTCH, word_reversal.ENGLISH, strict=True)
        setting["partners"] = {dutch: name for dutch, name in names if dutch == "een"}
        node("links", setting, tmp_path)


def test_wrong_models_are_explained(setting, runtime, echo, tmp_path):
    with ExitStack() as stack:
        setting["urls"] = {"echo": stack.enter_context(served(echo, runtime))}
        setting["noText"] = []
        for name, change in NO_TEXT.items():
            path = tmp_path / f"{name}.tflite"
            path.write_bytes(changing(change, tmp_path / name))
            url = stack.enter_context(served(path, runtime))
            setting["noText"].append({"name": name, "url": url})
        setting["refused"] = {
            name: {
                "url": stack.enter_context(served(path, folder)),
                "code": code,
                "message": message,
            }
            for name, path, folder, code, message in refused(tmp_path, runtime)
        }
        setting["refused"]["no-worker"] = {
            "url": stack.enter_context(served(echo, runtime, missing="/worker.js")),
            "code": "runtime",
            "message": "The worker did not start: its file is missing",
        }
        node("refuses", setting, tmp_path)


def test_page_is_accessible(setting, runtime, echo, tmp_path):
    with served(echo, runtime) as url:
        setting["urls"] = {"echo": url}
        node("readable", setting, tmp_path)


def test_page_works_offline(setting, runtime, translator, unseen_sentences, tmp_path):
    paths = [tmp_path / f"{name}.tflite" for name in ("first", "second")]
    for path in paths:
        path.write_bytes(described(echo_file.content(), path.stem))
    with (
        hosted(tmp_path / "host", translator, runtime) as port,
        served(paths[0], runtime) as exchanged,
    ):
        setting["host"] = f"http://translator.example:{port}/"
        setting["arguments"] = [
            "--host-resolver-rules=MAP translator.example 127.0.0.1",
            # Service workers need https, except where the browser is told otherwise.
            f"--unsafely-treat-insecure-origin-as-secure={setting['host'][:-1]}",
        ]
        setting["texts"] = {"translator": in_python(translator, unseen_sentences[:2])}
        setting["exchanged"] = {
            "url": exchanged,
            "file": str(paths[0]),
            "second": str(paths[1]),
        }
        node("offline", setting, tmp_path)

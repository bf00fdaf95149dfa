"""The two ways from text to text that `phone_speed.py` compares, as a phone has them.

    python tests/benchmarks/phone_peers.py PEER FOLDER BEAM_SIZE < TEXTS

prints by how many MiB a fresh process grows, and how many of them are a file's pages,
which a phone can drop: peer opened, after a first call, after a call for each text.
"""

import json
import sys
from pathlib import Path

import numpy as np

TEXT_FILE = "beam-{}.tflite"
PEER_FOLDER, TOKENIZER = "ctranslate2", "tokenizer.model"


class LiteRT:
    """One file.

    Args:
        folder: Path of the folder that `phone_files.py` made.
        beam_size: int.
        threads: int.
    Call arguments:
        text: str.
    Returns:
        The translation, and how many tokens it took.
    """

    name = "LiteRT"

    def __init__(self, folder, beam_size, threads=1):
        from ai_edge_litert.interpreter import Interpreter

        path = str(folder / TEXT_FILE.format(beam_size))
        self._interpreter = Interpreter(model_path=path, num_threads=threads)
        self._run = self._interpreter.get_signature_runner("translate")
        (self._bytes,) = self._run.get_input_details()["text"]["shape"]

    def __call__(self, text):
        octets = text.encode().ljust(self._bytes, b"\0")
        outputs = self._run(text=np.frombuffer(octets, "uint8"))
        translation = outputs["text"].tobytes().rstrip(b"\0").decode()
        ids = outputs["ids"]
        return translation, int(np.count_nonzero(ids != ids[-1]))  # the last is a pad

    @staticmethod
    def size(folder, beam_size):
        """Bytes on disk."""
        return (folder / TEXT_FILE.format(beam_size)).stat().st_size


class CTranslate2:
    """SentencePiece, CTranslate2, SentencePiece; arguments as of `LiteRT`."""

    name = "CTranslate2"

    def __init__(self, folder, beam_size, threads=1):
        import ctranslate2
        import sentencepiece

        tokenizer = str(folder.parent / TOKENIZER)
        self._tokenizer = sentencepiece.SentencePieceProcessor(tokenizer)
        self._translator = ctranslate2.Translator(
            str(folder / PEER_FOLDER), inter_threads=1, intra_threads=threads
        )
        self._beam_size = beam_size

    def __call__(self, text):
        pieces = self._tokenizer.encode(text, out_type=str)
        length = len(pieces) + 1  # the end's
        (result,) = self._translator.translate_batch(
            [pieces],
            beam_size=self._beam_size,
            min_decoding_length=length,
            max_decoding_length=length,
        )
        (translation,) = result.hypotheses
        return self._tokenizer.decode(translation), len(translation)

    @staticmethod
    def size(folder, beam_size):
        """Bytes on disk."""
        files = [folder.parent / TOKENIZER, *(folder / PEER_FOLDER).iterdir()]
        return sum(file.stat().st_size for file in files)


PEERS = {peer.name: peer for peer in (LiteRT, CTranslate2)}


def growth(make, texts):
    """Pairs of MiB: what this process grows by, and how much of it is a file's pages.

    Args:
        make: function that opens a peer.
        texts: list of str.
    """
    before = _resident()
    peer = make()
    after = [_resident()]
    for batch in (texts[:1], texts):
        for text in batch:
            peer(text)
        after.append(_resident())
    return (np.array(after) - before).tolist()


def _resident():
    """MiB in memory, and of files in it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = dict(
        line.split(":") for line in lines if line.startswith(("VmRSS", "RssFile"))
    )
    return [int(sizes[name].split()[0]) / 1024 for name in ("VmRSS", "RssFile")]


def main():
    name, folder, beam_size = sys.argv[1:]
    texts = json.load(sys.stdin)
    # What both have anyway is loaded before: the runtimes' libraries, and Python's.
    import ai_edge_litert.interpreter  # noqa: F401
    import ctranslate2  # noqa: F401
    import sentencepiece  # noqa: F401

    opened = growth(lambda: PEERS[name](Path(folder), int(beam_size)), texts)
    print(json.dumps(opened))


if __name__ == "__main__":
    main()

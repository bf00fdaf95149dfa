"""What of one call of a `.tflite` file is the tokenizer, and what a step of the search.

    python tests/benchmarks/phone_phases.py MODEL.keras --source test.de

Times, on one thread and in processor time, the graphs that make ids of a text and a
text of ids, each alone, and the whole int8 file, greedy and with four beams, for one
source of 5 tokens, one of 20 and one of 100. Caches that have room for 120 positions
from the start, instead of for 24, say what a position costs.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.extend(map(str, Path(__file__).resolve().parents[1].glob("support/**/")))

import model_and_lines
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from tokenizer_files import convert_decoder, convert_encoder

from keras_vanilla import Translator, export
from keras_vanilla.export import search_graph
from keras_vanilla.export.sentencepiece.tokenizer_graph import TokenizerGraph

BYTES, IDS, SEGMENTS = 512, 128, (12, 120)
CALLS = 100


def main():
    args = model_and_lines.parser(__doc__, lines=1000).parse_args()
    translator = Translator.load(args.model)
    lines = model_and_lines.first_lines(args.source, args.lines)
    texts = {n: text_of(translator.tokenizer, lines, n) for n in (5, 20, 100)}
    graph = TokenizerGraph(translator.tokenizer, BYTES, IDS, IDS)
    parts = {
        "text to ids": (convert_encoder(graph.encode), as_bytes),
        "ids to text": (
            convert_decoder(graph.decode),
            lambda text: as_ids(translator.tokenizer, text),
        ),
    }
    for beam_size in (1, 4):
        for segment in SEGMENTS:
            name = f"int8, beam {beam_size}, caches grow by {segment}"
            parts[name] = exported(translator, beam_size, segment), as_bytes
    print(f"{'milliseconds':34}" + "".join(f"{n:>10}" for n in texts))
    for name, (content, given) in parts.items():
        times = [fastest(content, given(text)) for text in texts.values()]
        print(f"{name:34}" + "".join(f"{each:10.3f}" for each in times), flush=True)


def text_of(tokenizer, lines, length):
    """Words of the lines that are so many tokens, or one or two fewer."""
    words, text = " ".join(lines).split(), ""
    for word in words:
        longer = f"{text} {word}".strip()
        if len(tokenizer.encode([longer])[0]) > length:
            return text
        text = longer
    raise ValueError(f"The lines have fewer than {length} tokens.")


def as_bytes(text):
    return np.frombuffer(text.encode().ljust(BYTES, b"\0"), "uint8")


def as_ids(tokenizer, text):
    """The ids of a text stand for those of its translation: as many, as long."""
    ids = [*tokenizer.encode([text])[0], *IDS * [tokenizer.pad_id]]
    return np.array(ids[:IDS], "int32")


def exported(translator, beam_size, segment):
    """A file's content, whose caches grow by so many positions."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(search_graph, "_SEGMENT", segment),
    ):
        path = Path(folder, "translator.tflite")
        export.tflite(translator, path, beam_size=beam_size, check="structure")
        return path.read_bytes()


def fastest(content, given):
    """Milliseconds that one call in ten stays below."""
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], given)
    times = []
    for _ in range(CALLS):
        began = time.thread_time()
        interpreter.invoke()
        times.append(1e3 * (time.thread_time() - began))
    return np.percentile(times, 10)


if __name__ == "__main__":
    main()

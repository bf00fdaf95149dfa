"""Files that choose among few pieces, against Keras with the same candidates."""

import numpy as np
import pytest
import word_reversal
from ai_edge_litert.interpreter import Interpreter
from models import make_model
from text_form import TextForm

from keras_vanilla import export
from keras_vanilla.cli import main
from keras_vanilla.export.metadata.description import read_description
from keras_vanilla.translation import Shortlist, Translator

SMALL = {"max_bytes": 160, "max_source_length": 40, "max_length": 59}
ENGLISH = word_reversal.english_sentences(300, seed=5, lengths=range(2, 8))
DUTCH = [word_reversal.dutch(line) for line in ENGLISH]
SIZE = 30


@pytest.fixture(scope="module")
def shortlist(trained_translator):
    return Shortlist.learn(trained_translator.tokenizer, ENGLISH, DUTCH, size=SIZE)


@pytest.fixture(scope="module")
def path(trained_translator, shortlist, tmp_path_factory):
    """In int8, with all additional outputs."""
    path = tmp_path_factory.mktemp("shortlist") / "translator.tflite"
    outputs = ["alignment", "confidence"]
    settings = {**SMALL, "sample": ENGLISH[:20], "outputs": outputs}
    export.tflite(trained_translator, path, shortlist=shortlist, **settings)
    return path


def shapes(path):
    """Of all tensors of the file."""
    interpreter = Interpreter(str(path))
    return [
        tuple(tensor["shape"])
        for number in range(interpreter.num_subgraphs())
        for tensor in interpreter.get_tensor_details(number)
    ]


@pytest.mark.full
def test_the_file_says_what_keras_says_among_the_candidates(
    path, trained_translator, shortlist, unseen_sentences
):
    report = export.verify(
        trained_translator, path, unseen_sentences[:40], shortlist=shortlist
    )
    assert report.passed and report.shortlist is None, report
    assert report.equal >= 39


@pytest.mark.full
def test_nothing_in_it_is_as_wide_as_the_vocabulary_but_tables(
    path, trained_translator
):
    """No logits of all pieces are computed: only tables have as many rows."""
    model = trained_translator.model
    wide = {shape for shape in shapes(path) if model.target_vocabulary_size in shape}
    assert (1, SIZE) in set(shapes(path))
    assert {shape for shape in wide if len(shape) > 1 and shape[0] == 1} <= {
        (1, model.target_vocabulary_size)  # how promising each piece is
    }


@pytest.mark.full
def test_it_is_judged_as_an_approximation_of_the_whole_vocabulary(
    path, trained_translator, unseen_sentences
):
    assert read_description(path).shortlist == SIZE
    assert read_description(path).oldest_runtime == "2.17"
    assert "among 30 pieces" in read_description(path).rows()["search"]
    report = export.verify(trained_translator, path, unseen_sentences[:40])
    assert report.shortlist == SIZE
    assert f", {SIZE} candidates, " in str(report)
    assert report.passed, report


@pytest.mark.full
@pytest.mark.parametrize(
    "quantize, settings",
    [
        (None, {"forbidden_ids": [0]}),
        ("int8", {"tie_output": False, "output_bias": True}),
        ("int4", {"normalize_first": True}),
    ],
    ids=str,
)
def test_other_models_and_beams(
    trained_translator, shortlist, quantize, settings, tmp_path
):
    tokenizer = trained_translator.tokenizer
    size = tokenizer.vocabulary_size
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1, "max_length": 24}
    sizes = {"source_vocabulary_size": size, "d_model": 60, "d_ff": 40, **layers}
    model = make_model(**sizes, **settings)
    translator, path = Translator(tokenizer, model), tmp_path / "x.tflite"
    settings = {"form": "ids", "beam_size": 3, "quantize": quantize}
    settings |= {"shortlist": shortlist, "check": "structure"}
    export.tflite(translator, path, **settings)
    report = export.verify(translator, path, ENGLISH[:20], shortlist=shortlist)
    assert not report.faults
    assert report.equal + report.near_ties >= (20 if quantize is None else 15), report


@pytest.mark.full
def test_it_says_what_each_token_comes_from(path, trained_translator):
    result = TextForm(path)("one two")
    count = np.count_nonzero(result["ids"] != trained_translator.model.pad_id)
    begins = {int(begin) for begin, _ in result["source_spans"][: count - 1]}
    assert result["text"] == "twee een" and len(begins) > 1
    assert (result["confidence"][:count] > 0.5).all()


@pytest.mark.full
def test_on_the_command_line(trained_file, tmp_path, capfd):
    path = tmp_path / "x.tflite"
    texts = [tmp_path / "en", tmp_path / "nl"]
    for text, lines in zip(texts, (ENGLISH, DUTCH), strict=True):
        text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "sample").write_text("\n".join(ENGLISH[:9]))
    command = ["export", trained_file, path, "--form", "ids", "--no-loops"]
    command += ["--shortlist", *texts, "--shortlist-size", 40]
    command += ["--max-length", 59, "--sample", tmp_path / "sample"]
    assert main(list(map(str, command))) in (0, None)
    assert read_description(path).shortlist == 40 and read_description(path).no_loops
    capfd.readouterr()
    assert main(["export", str(trained_file), "y.tflite", "--shortlist-size", "9"]) == 1
    assert "--shortlist-size is for --shortlist" in capfd.readouterr().err

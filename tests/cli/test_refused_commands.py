"""One wrong value per command: exit status 1, one sentence, and nothing is written."""

import re
import shlex

import pytest
from word_reversal import dutch, english_sentences

from keras_vanilla import Translator
from keras_vanilla.cli import main

TRAIN = "train --source a.en --target a.nl --output out"
TRANSLATE = "translate model.keras one"
LINES = "translate file.tflite one"  # with a model that is not a .keras file
FILES = "translate model.keras --input 'a.*' --output-dir out"
EVALUATE = "evaluate model.keras --source a.en --reference a.nl"
PRETRAINED = "is 'en-fr' .*, and .* named hub:OWNER/NAME"
REFUSED = {  # command -> pattern of the sentence
    # outputs
    "quickstart --output exists": "exists exists already",
    "export model.keras exists": "exists exists already",
    "convert model.keras exists": "exists exists already",
    "translate model.keras text --output exists": "exists exists already",
    "translate model.keras one --output exists/x": "exists is not a folder.",
    "caller python exists/out": "exists is not a folder.",
    "plot positions no.keras one -o picture.gif": "must end with .png, .svg or .pdf",
    "export model.keras x.tflit": "ends with .tflite",
    # models
    "translate cut.keras text": "cut.keras is not a Keras archive, or is damaged",
    "serve-web text.keras": "text.keras is not a .tflite file",
    "describe text.keras": "text.keras is not a .tflite file",
    "convert model.keras x.tflite": "`keras-vanilla export` writes .tflite",
    "translate en-de --input a.en --output-dir out": PRETRAINED,
    "translate hub:model x": "OWNER/NAME@REVISION, .* Received: hub:model",
    # corpora
    "evaluate model.keras --source a.en --reference one.nl": "60 source .* 1 target",
    "verify model.keras a.nl --source a.en --reference a.en": "must be a text and its",
    "train --source latin1 --target a.nl --output out": "latin1, line 3: byte 0xe9",
    # settings of a training
    f"{TRAIN} --from out/last.keras": "would be overwritten",
    f"{TRAIN} --preset huge": "one of 'tiny', 'small', .*. Received: 'huge'",
    f"{TRAIN} --from model.keras --max-tokens 60 --preset tiny": "has its own",
    f"{TRAIN} --from model.keras --max-tokens 61": "`max_length`, 60. Received: 61",
    "distil model.keras --source a.en --output out --source-language German": "BCP-47",
    # texts and searches
    "translate model.keras x --input a.en": "not both",
    "translate model.keras --input nowhere": "nowhere: No such file",
    "translate model.keras --input long": "Text 1 has .* at most 60",
    f"{TRANSLATE} --beam-size 0": "`beam_size` .* from 1 to 1000. Received: 0",
    f"{TRANSLATE} --alignments --on-too-long split": "cannot be combined",
    f"{TRANSLATE} --length-penalty 1": "--length-penalty is for --beam-size above 1",
    f"{TRANSLATE} --terms half": "half, line 2: a term, a tab and its translation",
    f"{TRANSLATE} --terms three": "three, line 1: a term, a tab and its translation",
    f"{TRANSLATE} --terms none": "none, line 1: a term, a tab and its translation",
    f"{TRANSLATE} --terms twice": "twice, line 3: 'a' has another",
    # scores
    f"{EVALUATE} --language nl": "--language is for --tokenized",
    f"{EVALUATE} --tokenized": "--tokenized needs the target language",
    f"{EVALUATE} --sentences -1": "--sentences must be at least 0. Received: -1",
    "evaluate file.tflite --source a.en --reference a.nl --on-too-long split": (
        "split is for .keras files. Received: file.tflite"
    ),
    # options that only .keras files, only lines or only folders take
    **{
        f"{LINES} {option}": f"{option.split()[0]} is for .keras files. Received: file"
        for option in (
            "--n-best 0",
            "--target-prefix ''",
            "--alignments",
            "--terms half",
            "--copy url",
            "--no-repeat-ngram-size 3",
            "--on-too-long split",
        )
    },
    f"{FILES} --output one.txt --json": "only for files. Received: --output, --json",
    f"{FILES} 'a text'": "only for files. Received: a text",
    f"{TRANSLATE} --engine ray --keep-going": "--engine, --keep-going is for",
    "translate model.keras --input - --output-dir out": "--output-dir needs --input",
    "translate model.keras --input 'b.*' --output-dir out": "There is no file b..",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, trained_translator):
    """The current folder, and a model that is loaded already."""
    sentences = english_sentences(60, seed=4)
    for name, content in {
        "a.en": "".join(f"{line}\n" for line in sentences),
        "a.nl": "".join(f"{dutch(line)}\n" for line in sentences),
        "one.nl": "een\n",
        "long": "zero " * 100 + "\n",
        "half": "a\tb\nc",
        "three": "a\tb\tc",
        "none": "\tb",
        "twice": "a\tb\n\na\tc",
        "exists": "mine",
        "model.keras": "",  # stands for the translator that `load` returns
        "file.tflite": "",
        "text.keras": "not a model",
        "cut.keras": "PK\x03\x04 cut",
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin1").write_bytes(b"one\ntwo\ncaf\xe9\n")
    monkeypatch.chdir(tmp_path)
    load = Translator.load
    monkeypatch.setattr(
        Translator,
        "load",
        lambda path: trained_translator if path == "model.keras" else load(path),
    )
    return tmp_path


@pytest.mark.parametrize("command", REFUSED)
def test_refused_in_one_sentence(command, folder, capfd):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(shlex.split(command)) == 1
    out, err = capfd.readouterr()
    lines = err.strip().splitlines()
    ours = ("keras-vanilla: ", "Translating: ")  # no traceback
    assert out == "" and all(line.startswith(ours) for line in lines)
    assert re.search(REFUSED[command], lines[-1]), lines[-1]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

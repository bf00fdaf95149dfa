"""One wrong value per command: exit status 1, one sentence, and nothing is written."""

import re
import shlex

import pytest
from word_reversal import dutch, english_sentences

from keras_vanilla import Translator
from keras_vanilla.cli import main

TRAIN = "train --source a.en --target a.nl --output out"
FROM = f"{TRAIN} --from model.keras --max-tokens"
TRANSLATE = "translate model.keras one"
LINES = "translate file.tflite one"  # with a model that is not a .keras file
FILES = "translate model.keras --input 'a.*' --output-dir out"
EVALUATE = "evaluate model.keras --source a.en --reference a.nl"
PRESETS = "'tiny', 'small', 'base', 'big', 'phone', 'phone-small', 'phone-tiny'"
REFUSED = {  # command -> pattern of the sentence
    # outputs
    "train --source x --target x --output exists": "exists exists already",
    "quickstart --output exists": "exists exists already",
    "export model.keras exists": "exists exists already",
    "translate model.keras text --output exists": "exists exists already",
    "convert model.keras exists": "exists exists already",
    "translate no.keras one --output exists/x": "exists is not a folder.",
    "translate no.keras one --output new": "There is no file or folder no.keras",
    "translate model.keras one --output exists/x": "exists is not a folder.",
    "export model.keras exists/out.keras": "exists is not a folder.",
    "convert model.keras exists/out.keras": "exists is not a folder.",
    "caller python exists/out": "exists is not a folder.",
    "caller ios exists": "exists exists already",
    "export model.keras folder --quantize int8": "ends with .tflite",
    "export model.keras x.tflit": "ends with .tflite",
    # models
    "translate cut.keras text": "cut.keras is not a Keras archive, or is damaged",
    "translate text.keras text": "text.keras is not a Keras archive, or is damaged",
    "translate empty.keras text": "empty.keras is not a Keras archive, or is damaged",
    "serve-web text.keras": "text.keras is not a .tflite file",
    "describe text.keras": "text.keras is not a .tflite file",
    "convert model.keras x.tflite": "`keras-vanilla export` writes .tflite",
    **dict.fromkeys(
        ["translate en-de hello", "convert en-de x.keras", "serve-web en-de"]
        + ["translate en-de --input a.en --output-dir out"],
        "is 'en-fr' .*, and .* named hub:OWNER/NAME",
    ),
    "translate hub:model x": "OWNER/NAME@REVISION, .* Received: hub:model",
    "translate hub:a/b/file x": "OWNER/NAME@REVISION, .* Received: hub:a/b/file",
    "translate hub: x": "OWNER/NAME@REVISION, .* Received: hub:",
    # corpora
    f"{TRAIN} --target one.nl": "60 .* 1 ",
    "evaluate model.keras --source a.en --reference one.nl": "60 source .* 1 target",
    "train --source latin1 --target a.nl --output out": "latin1, line 3: byte 0xe9",
    "train --source empty --target empty.keras --output out": "empty",
    "train --source a.en --target nowhere.nl --output out": "nowhere.nl",
    "train --output out": "either --source with its translation, or --pairs",
    "train --output out --source x": "--source needs the file of its translation",
    "train --output out --pairs x --target y": "give no file",
    **dict.fromkeys(
        [
            "evaluate model.keras --source a.en --reference a.en",
            "verify model.keras a.nl --source a.en --reference a.en",
            "train --source a.en --target a.en --output out",
        ],
        "must be a text and its translation",
    ),
    # settings of a training
    f"{TRAIN} --from out/last.keras": "would be overwritten",
    f"{TRAIN} --preset huge": f"one of {PRESETS}. Received: 'huge'",
    f"{TRAIN} --recipe best": "one of 'auto', 'paper'. Received: 'best'",
    f"{TRAIN} --epochs 0": "`epochs` .* Received: 0",
    f"{TRAIN} --tokens-per-batch 0": "`tokens_per_batch` .* Received: 0",
    f"{TRAIN} --warmup-steps 0": "`warmup_steps` .* Received: 0",
    f"{TRAIN} --vocabulary-size 0": "`vocabulary_size` .* Received: 0",
    f"{TRAIN} --validation-source x": "must be given together",
    f"{FROM} 60 --preset tiny": "has its own",
    f"{FROM} 60 --vocabulary-size 300": "has its own",
    f"{FROM} 61": "at most the model's `max_length`, 60. Received: 61",
    f"{FROM} 60 --validation-source long --validation-target one.nl": (
        "one.nl: no pair is left of 1: 1 too long."
    ),
    # texts and searches
    "translate model.keras x --input a.en": "not both",
    "translate model.keras --input latin1": "latin1, line 3",
    "translate model.keras --input nowhere": "nowhere: No such file",
    "translate model.keras short --input long": "not both",
    "translate model.keras --input long": "Text 1 has .* at most 60",
    f"{TRANSLATE} --beam-size 0": "`beam_size` .* from 1 to 1000. Received: 0",
    f"{TRANSLATE} --max-length 0": "`max_length` .* Received: 0",
    f"{TRANSLATE} --beam-size 2 --length-penalty nan": "`length_penalty`",
    f"{TRANSLATE} --beam-size 2 --n-best 3": "at most `beam_size`, 2. Received: 3",
    f"{TRANSLATE} --n-best 0": "`n_best` .* Received: 0",
    f"{TRANSLATE} --alignments --on-too-long split": "cannot be combined",
    f"{TRANSLATE} --target-prefix a --on-too-long split": "cannot be combined",
    f"{TRANSLATE} --target-prefix 'a b c' --max-length 1": "Target prefix 1 has",
    f"{TRANSLATE} --no-repeat-ngram-size 0": "`no_repeat_ngram_size` .* Received: 0",
    f"{TRANSLATE} --length-penalty 1": "--length-penalty is for --beam-size above 1",
    f"{TRANSLATE} --terms half": "half, line 2: a term, a tab and its translation",
    f"{TRANSLATE} --terms three": "three, line 1: a term, a tab and its translation",
    f"{TRANSLATE} --terms none": "none, line 1: a term, a tab and its translation",
    f"{TRANSLATE} --terms twice": "twice, line 3: 'a' has another .* in line 1.",
    # scores
    f"{EVALUATE} --language nl": "--language is for --tokenized",
    f"{EVALUATE} --tokenized": "--tokenized needs the target language",
    f"{EVALUATE} --length-penalty 1": "--length-penalty is for --beam-size above 1",
    f"{EVALUATE} --sentences -1": "--sentences must be at least 0. Received: -1",
    "evaluate file.tflite --source a.en --reference a.nl --on-too-long split": (
        "split is for .keras files. Received: file.tflite"
    ),
    # what only .keras files, only lines or only folders take
    **{
        f"{LINES} {option}": f"{option.split()[0]} is for .keras files. Received: file"
        for option in (
            "--n-best 2",
            "--n-best 0",
            "--target-prefix ''",
            "--alignments",
            "--terms half",
            "--copy url",
            "--no-repeat-ngram-size 3",
            "--on-too-long split",
        )
    },
    **{
        f"{FILES} {option}": f"--output-dir is only for files. Received: {received}"
        for option, received in {
            "--output one.txt": "--output",
            "--n-best 2": "--n-best",
            "--alignments": "--alignments",
            "--target-prefix a": "--target-prefix",
            "--terms half --copy url": "--terms, --copy",
            "--no-repeat-ngram-size 3": "--no-repeat-ngram-size",
            "--on-too-long split": "--on-too-long",
            "--json": "--json",
            "'a text'": "a text",
        }.items()
    },
    **{
        f"{TRANSLATE} {option}": f"{option.split()[0]} is for --output-dir."
        for option in ("--engine ray", "--workers 2", "--threads 2", "--keep-going")
    },
    "translate model.keras --output-dir out": "--output-dir needs --input",
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
        "empty": "",
        "half": "a\tb\nc",
        "three": "a\tb\tc",
        "none": "\tb",
        "twice": "a\tb\n\na\tc",
        "exists": "mine",
        "model.keras": "",  # stands for the translator that `load` returns
        "file.tflite": "",
        "empty.keras": "",
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

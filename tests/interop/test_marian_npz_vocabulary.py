"""Marian's vocabulary files, in each of their forms."""

import json

import pytest
from marian_folder import learn_models

from keras_vanilla.interop.marian_npz import read_vocabulary, with_pad

TOKENS = [
    "</s>",
    "<unk>",
    "\u2581the",
    ":",
    "'",
    '"',
    "\\",
    "#",
    "- ",
    "\u3000",
    "\xa0",
]


def test_yaml_json_and_lines_are_one_vocabulary(tmp_path):
    ids = {token: id_ for id_, token in enumerate(TOKENS)}
    quoted = [f"{json.dumps(token)}: {id_}" for token, id_ in ids.items()]
    (tmp_path / "a.yml").write_text("\n".join(reversed(quoted)))
    (tmp_path / "a.json").write_text(json.dumps(ids))
    (tmp_path / "a.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    for name in ("a.yml", "a.json", "a.txt"):
        assert read_vocabulary(tmp_path / name) == TOKENS


def test_pieces_are_the_vocabulary_of_a_sentencepiece_model(tmp_path):
    (tmp_path / "a.spm").write_bytes(learn_models()[0])
    tokens = read_vocabulary(tmp_path / "a.spm")
    assert tokens[:2] == ["</s>", "<unk>"]
    assert len(tokens) == 38


def test_the_pad_has_one_id_in_vocabularies_of_two_sizes():
    source, target = with_pad([TOKENS, TOKENS[:3]])
    assert source == [*TOKENS, "<pad>"]
    assert target[:3] == TOKENS[:3]
    assert source.index("<pad>") == target.index("<pad>")
    assert len(set(target)) == len(target)
    assert with_pad([source, source]) == [source, source]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yml", "</s>: 0\na: 2\n", "tokens to the ids 0 to 1. Received: 'a': 2"),
        (
            "a.yml",
            "</s>: 0\na: 0\n",
            "each id once. Received: 0 a second time",
        ),
        ("a.yml", "</s>: 0\n</s>: 1\n", "line 2 has a name for the second time"),
        ("a.yml", "</s>: zero\n", "Received: '</s>': 'zero'"),
        ("a.yml", "</s>:\n  - 0\n", r"Received: '</s>': \['0'\]"),
        ("a.txt", "a\nb\na\n", "must have each token once"),
        ("a.txt", "a\n\n", "Received: '': 1"),
        ("a.json", "[]", "must hold a JSON object"),
        ("a.spm", "text", "must be a SentencePiece model"),
    ],
)
def test_other_files_are_refused(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_vocabulary(tmp_path / name)


def test_other_encodings_are_refused(tmp_path):
    (tmp_path / "a.yml").write_bytes(b"\xe4: 0")
    with pytest.raises(ValueError, match="a.yml is not UTF-8"):
        read_vocabulary(tmp_path / "a.yml")

"""Marian's own models, in: the logits of its formulas, its ids and its refusals."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from checks import array
from marian_folder import learn_models
from marian_npz_folder import FAMILIES, OPTIONS, write_folder, write_npz
from near_ties import assert_same_but_for_near_ties
from word_reversal import english_sentences

from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.interop import (
    from_marian_npz,
    read_translator,
    tokenizer_from_marian,
)
from keras_vanilla.interop.files.npz_file import NpzArrays
from keras_vanilla.interop.marian_npz import read_options, read_vocabulary, with_pad
from keras_vanilla.interop.marian_tokenizer import tokenizer_of_tokens
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator

from .marian_reference import logits, sinusoids
from .same_translators import assert_same_translator

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "opus-mt-en-mg"
LINES = english_sentences(5, seed=5)
ROUNDING = 5e-5  # of logits of about 4
LENGTH = 11  # of the longest outputs
OTHERS = [name for name in FAMILIES if name != "two vocabularies"]


@pytest.fixture(scope="module")
def models():
    return learn_models()


@pytest.fixture(scope="module")
def folder(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian") / "model"
    write_folder(folder, models)
    return folder


@pytest.fixture
def copy(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(
    scope="module",
    params=[
        "two vocabularies",
        *(pytest.param(name, marks=pytest.mark.full) for name in OTHERS),
    ],
)
def family(request, models, tmp_path_factory):
    """A folder, its options, arrays and vocabularies, and our Translator of it."""
    folder = tmp_path_factory.mktemp("marian") / "model"
    parts = write_folder(folder, models, **FAMILIES[request.param])
    return folder, *parts, from_marian_npz(folder)


def our_logits(model, sources, targets):
    """Logits of rows of one length, without the start's and the pad's own."""
    longest = max(map(len, sources))
    rows = [[*ids, *[model.pad_id] * (longest - len(ids))] for ids in sources]
    starts = np.full((len(targets), 1), model.start_id)
    target_ids = np.concatenate([starts, targets], axis=1)
    return array(model({"source_ids": np.array(rows), "target_ids": target_ids}))


def drawn_targets(vocabularies):
    return np.random.default_rng(0).integers(2, len(vocabularies[1]), (len(LINES), 7))


def test_logits_are_those_of_marians_formulas(family):
    _, options, arrays, vocabularies, ours = family
    sources, targets = ours.encode(LINES), drawn_targets(vocabularies)
    received = our_logits(ours.model, sources, targets)
    for source, target, row in zip(sources, targets, received, strict=True):
        expected = logits(arrays, options, source, target)
        assert np.abs(expected).max() > 1
        np.testing.assert_allclose(row[:, : expected.shape[1]], expected, atol=1e-4)


@pytest.mark.full
def test_in_float64_the_epsilon_is_marians(family):
    """Only the rounding of the logits to float32 is left, with this one alone."""
    _, options, arrays, vocabularies, ours = family
    sources, targets = ours.encode(LINES), drawn_targets(vocabularies)
    received = our_logits(ours.model.copy(dtype="float64"), sources, targets)

    def error(epsilon):
        pairs = zip(sources, targets, received, strict=True)
        expected = [logits(arrays, options, *pair, epsilon) for *pair, _ in pairs]
        return np.abs(np.array(expected) - received[..., : len(vocabularies[1])]).max()

    assert error(1e-6) < 5e-7 < error(1e-9) < error(1e-5)


def test_ids_are_places_in_the_vocabulary(family):
    _, _, _, vocabularies, ours = family
    source, target = vocabularies
    ids = ours.encode(LINES)[0]
    assert ours.tokenizer.source_pieces(ids) == [source[id_] for id_ in ids]
    assert ids[-1] == source.index("</s>") == ours.model.end_id
    shown = ours.tokenizer.target_pieces(range(len(target)))
    assert shown == target
    no_words = range(len(target), ours.model.target_vocabulary_size)  # the pad is last
    assert ours.model.forbidden_ids == [target.index("<unk>"), *no_words]


@pytest.mark.full
@pytest.mark.parametrize("family", ["two vocabularies"], indirect=True)
def test_searches_give_words_of_marian_alone(family):
    _, _, _, vocabularies, ours = family
    ids = ours.search(
        ours.encode(LINES), DecodingConfig(max_length=LENGTH, beam_size=3)
    )
    words = ids[ids != ours.model.pad_id]
    assert words.max() < len(vocabularies[1])
    assert vocabularies[1].index("<unk>") not in words


@pytest.mark.full
def test_paths_of_single_files_give_the_same(folder, tmp_path):
    model, vocabulary, source, target = (
        shutil.copy(folder / name, tmp_path / f"my-{name}")
        for name in ("model.npz", "vocab.yml", "source.spm", "target.spm")
    )
    ours = from_marian_npz(folder)
    assert_same_translator(from_marian_npz(model, vocabulary, source, target), ours)
    assert_same_translator(read_translator(folder), ours)


@pytest.mark.full
def test_positions_are_marians_and_those_of_others_drift_away(models, tmp_path):
    small = {"dim-emb": 64, "transformer-heads": 4, "enc-depth": 1, "dec-depth": 1}
    options, arrays, _ = write_folder(tmp_path / "model", models, **small)
    ours = from_marian_npz(tmp_path / "model").model
    config = ours.get_config() | {"position_layout": "concatenated"}
    theirs = Transformer.from_config(config)
    theirs.set_weights(ours.get_weights())
    random = np.random.default_rng(0)
    drifts = []
    for length in (5, 200):
        source = [*random.integers(2, 50, length), 0]
        target = random.integers(2, 50, length)
        expected = logits(arrays, options, source, target)
        errors = [
            np.abs(our_logits(model, [source], target[None])[0, :, :-1] - expected)
            for model in (ours, theirs)
        ]
        np.testing.assert_array_less(errors[0], ROUNDING)
        drifts.append(errors[1].mean())
    assert drifts[1] > 2 * drifts[0] > 100 * ROUNDING


@pytest.mark.full
@pytest.mark.parametrize("name", ["one table", "two vocabularies", "pre-norm"])
def test_greedy_search_is_that_of_ctranslate2(name, models, tmp_path):
    """CTranslate2's own sinusoids are not Marian's, so it is given Marian's."""
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    import ctranslate2
    from ctranslate2.converters import MarianConverter

    folder = tmp_path / "model"
    options, arrays, vocabularies = write_folder(folder, models, **FAMILIES[name])
    ours = from_marian_npz(folder)
    positions = sinusoids(50, options["dim-emb"]).astype("float32")
    write_npz(tmp_path / "theirs.npz", options, {**arrays, "Wpos": positions})
    paths = sorted(map(str, folder.glob("*vocab.yml")))
    MarianConverter(str(tmp_path / "theirs.npz"), paths).convert(tmp_path / "theirs")
    runtime = ctranslate2.Translator(str(tmp_path / "theirs"), compute_type="float32")
    sources = ours.encode(LINES)
    results = runtime.translate_batch(
        [[vocabularies[0][id_] for id_ in source[:-1]] for source in sources],
        beam_size=1,
        max_decoding_length=LENGTH,
        disable_unk=True,
        return_end_token=True,
    )
    theirs = [
        [vocabularies[1].index(token) for token in result.hypotheses[0]]
        for result in results
    ]
    assert len({id_ for row in theirs for id_ in row}) > 1
    ids = ours.search(sources, DecodingConfig(max_length=LENGTH))
    assert_same_but_for_near_ties(ours.model, sources, ids, theirs)


@pytest.mark.full
def test_it_is_saved_and_loaded(folder, tmp_path):
    ours = from_marian_npz(folder)
    ours.save(tmp_path / "translator.keras")
    assert_same_translator(Translator.load(tmp_path / "translator.keras"), ours)


@pytest.mark.full
@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published files are not here")
def test_the_vocabulary_of_a_published_model_gives_its_ids(tmp_path):
    """Its vocab.json as the vocab.yml that it was made of, which has no pad."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    ids = json.loads((PUBLISHED / "vocab.json").read_text("utf-8"))
    words = {token: id_ for token, id_ in ids.items() if token != "<pad>"}
    path = tmp_path / "vocab.yml"
    dumper = getattr(yaml, "CDumper", yaml.Dumper)  # of C, if PyYAML has it
    text = yaml.dump(words, width=10**9, allow_unicode=True, Dumper=dumper)
    path.write_text(text, "utf-8")
    tokens = with_pad([read_vocabulary(path)] * 2)
    assert {token: id_ for id_, token in enumerate(tokens[0])} == ids
    models = [PUBLISHED / "source.spm", PUBLISHED / "target.spm"]
    ours = tokenizer_of_tokens(models, [path] * 2, tokens)
    assert ours.digest == tokenizer_from_marian(PUBLISHED).digest


# What is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "s2s"}, "type: 'transformer'. Received: 's2s'"),
        ({"transformer-decoder-autoreg": "rnn"}, "self-attention'. Received: 'rnn'"),
        ({"transformer-tied-layers": [1, 1, 1]}, r"tied-layers: \[\]. Received: \['1"),
        ({"transformer-train-position-embeddings": True}, "Received: 'true'"),
        ({"transformer-ffn-activation": "gelu"}, "'relu' or 'swish'. Received: 'gelu'"),
        ({"transformer-rotary": True}, "the unknown option transformer-rotary: 'true'"),
        ({"lemma-dim-emb": 8}, "lemma-dim-emb: '0'. Received: '8'"),
        ({"transformer-postprocess": "dar"}, "post-norm or pre-norm .* 'dar'"),
        ({"transformer-postprocess-emb": "nd"}, "postprocess-emb: 'nd'"),
        (
            {**FAMILIES["pre-norm"], "version": "v1.10.25 9f7f9ec"},
            "Marian 1.11 or later.* Received: 'v1.10.25 9f7f9ec'",
        ),
        ({"enc-depth": "two"}, "a number as enc-depth. Received: 'two'"),
        ({"dim-vocabs": [56]}, "two dim-vocabs. Received: "),
        ({"tied-embeddings-all": "yes"}, "true or false. Received: 'yes'"),
        ({"enc-depth": 3}, "no weights 'encoder_l3_self_Wq'"),
        ({"enc-depth": 1}, "weights 'encoder_l2_.* has no place"),
        ({"dim-emb": 24}, r"shape \(56, 24\) as 'Wemb'.*shape \(56, 12\)"),
        ({"dim-vocabs": [55, 55]}, "55 words of the source .* has 56 tokens"),
        ({"tied-embeddings-all": False}, "no weights 'encoder_Wemb'"),
    ],
)
def test_models_of_another_architecture_are_refused(
    changes, message, copy, models, tmp_path
):
    options, arrays, vocabularies = write_folder(tmp_path / "other", models)
    write_npz(copy / "model.npz", options | changes, arrays)
    with pytest.raises(ValueError, match=message):
        from_marian_npz(copy)


@pytest.mark.parametrize("zeros", [1, 300])
def test_options_are_read_whatever_number_of_zeros_follows(zeros, tmp_path):
    path = tmp_path / "model.npz"
    write_npz(path, OPTIONS | {"dim-vocabs": [56, 56]}, {}, zeros)
    options = read_options(NpzArrays(path), path)
    assert options["dim-vocabs"] == ["56", "56"]
    assert options["version"] == OPTIONS["version"]


@pytest.mark.parametrize("name", ["dim-emb", "type", "transformer-ffn-activation"])
def test_a_missing_option_is_named(name, copy):
    options = {key: value for key, value in OPTIONS.items() if key != name}
    write_npz(copy / "model.npz", options | {"dim-vocabs": [56, 56]}, {})
    with pytest.raises(ValueError, match=f"has no option {name}"):
        from_marian_npz(copy)


def test_files_without_options_are_refused(copy):
    np.savez(copy / "model.npz", Wemb=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="special:model.yml.* the arrays 'Wemb'"):
        from_marian_npz(copy)


def test_weights_that_are_not_floats_are_refused(copy, models, tmp_path):
    options, arrays, _ = write_folder(tmp_path / "other", models)
    arrays["Wemb"] = arrays["Wemb"].astype("int8")
    write_npz(copy / "model.npz", options, arrays)
    with pytest.raises(ValueError, match="floats .* as 'Wemb'.* Received: int8"):
        from_marian_npz(copy)


@pytest.mark.parametrize(
    "name", ["decoder.yml", "model.npz", "vocab.yml", "source.spm", "target.spm"]
)
def test_a_missing_file_is_named(name, copy):
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        from_marian_npz(copy)


def test_a_model_alone_needs_vocabularies(copy):
    with pytest.raises(ValueError, match="`vocabularies` must be .* Received: None"):
        from_marian_npz(copy / "model.npz")


def test_ensembles_are_refused(copy):
    text = "models:\n  - a.npz\n  - b.npz\nvocabs:\n  - vocab.yml\n"
    (copy / "decoder.yml").write_text(text)
    with pytest.raises(ValueError, match=r"one model .*\['a.npz', 'b.npz'\]"):
        from_marian_npz(copy)

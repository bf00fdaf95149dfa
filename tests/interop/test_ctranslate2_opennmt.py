"""Models of OpenNMT-py in CTranslate2's form, and Argos's packages of them."""

import json
import shutil
import zipfile

import numpy as np
import pytest
import sentencepiece
from word_reversal import dutch, english_sentences

from keras_vanilla import export
from keras_vanilla.interop import from_ctranslate2, read_translator, to_ctranslate2
from keras_vanilla.interop.files.ctranslate2_file import (
    read_ctranslate2,
    write_ctranslate2,
)

pytestmark = pytest.mark.full
pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
import opennmt_folder as peer  # noqa: E402  after the skip
from ctranslate2.specs import common_spec  # noqa: E402
from ctranslate2_runtime import (  # noqa: E402
    assert_greedy_is_equal,
    assert_scores_are_equal,
    open_runtime,
    source_tokens,
)

from .same_translators import assert_same_translator  # noqa: E402

LINES = [*english_sentences(9, seed=5), ">>two<< red \u00e9 \u6c34 trees", "extra"]


@pytest.fixture(scope="module")
def model():
    return peer.learn_model()


@pytest.fixture(scope="module")
def package(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("argos") / "translate-en_nl-1_0"
    peer.write_package(folder, peer.make_spec(peer.tokens_of(model)), model)
    return folder


@pytest.fixture(scope="module")
def translator(package):
    return from_ctranslate2(package)


@pytest.fixture
def copy(package, tmp_path):
    return shutil.copytree(package, tmp_path / "x")


def assert_same_scores(folder, translator, lines=LINES[:4]):
    """Compares scores with those of CTranslate2 in float32."""
    sources = translator.encode(lines)
    targets = translator.tokenizer.encode_target(list(map(dutch, lines)))
    runtime = open_runtime(folder / "model")
    assert_scores_are_equal(runtime, translator, sources, targets)


def test_tokens_and_scores_are_those_of_ctranslate2(package, translator, model):
    splitter = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocabulary = peer.tokens_of(model)
    sources = translator.encode(LINES)
    for line, row in zip(LINES, sources, strict=True):
        pieces = splitter.encode(line, out_type=str)
        known = [piece if piece in vocabulary else "<unk>" for piece in pieces]
        assert row == [*map(vocabulary.index, known), vocabulary.index("</s>")]
    assert_same_scores(package, translator, LINES[:9])
    config = translator.model.get_config()
    assert not config["source_end"] and config["normalize_first"]
    assert config["position_layout"] == "interleaved" and config["output_bias"]
    assert config["pad_id"] == 1 and config["start_id"] == 2  # <blank> and <s>


@pytest.mark.filterwarnings("ignore:.* reached their longest length")
def test_greedy_search_and_texts_are_those_of_ctranslate2(package, translator):
    runtime = open_runtime(package / "model")
    sources = translator.encode(LINES[:9])
    assert_greedy_is_equal(runtime, translator, sources, max_length=13)
    results = runtime.translate_batch(
        source_tokens(translator, sources), beam_size=1, max_decoding_length=13
    )
    texts = ["".join(r.hypotheses[0]).replace("\u2581", " ").strip() for r in results]
    assert translator.translate(LINES[:9], max_length=13) == [
        text.replace("<unk>", "").strip() for text in texts
    ]


@pytest.mark.parametrize("source_end", [False, True])
def test_source_end_is_read_if_ctranslate2_adds_it(source_end, model, tmp_path):
    spec = peer.make_spec(peer.tokens_of(model), activation=common_spec.Activation.GELU)
    spec.config.add_source_eos = source_end
    peer.write_package(tmp_path / "x", spec, model)
    translator = from_ctranslate2(tmp_path / "x")
    assert translator.model.source_end is source_end
    assert_same_scores(tmp_path / "x", translator)


def test_zip_equals_its_folder(package, translator, tmp_path):
    path = peer.zipped(package, tmp_path / "en_nl.argosmodel")
    assert_same_translator(read_translator(path), translator)
    assert list(tmp_path.iterdir()) == [path]


def test_out_and_in_again_is_exact(translator, tmp_path):
    to_ctranslate2(translator, tmp_path / "again")
    assert_same_translator(from_ctranslate2(tmp_path / "again"), translator)


def test_missing_pad_is_added(model, tmp_path):
    tokens = [token for token in peer.tokens_of(model) if token != "<blank>"]
    peer.write_package(tmp_path / "x", peer.make_spec(tokens), model)
    translator = from_ctranslate2(tmp_path / "x")
    pad = len(tokens)
    assert translator.model.pad_id == pad and translator.model.forbidden_ids == [pad]
    assert_same_scores(tmp_path / "x", translator)
    to_ctranslate2(translator, tmp_path / "again")
    assert_same_translator(from_ctranslate2(tmp_path / "again"), translator)


def test_exported_file_has_no_source_end(translator, tmp_path):
    path = tmp_path / "translator.tflite"
    limits = {"max_bytes": 120, "max_source_length": 40, "max_length": 9}
    export.tflite(translator, path, quantize=None, check="structure", **limits)
    lines = [line for line in LINES if len(line) < 60]
    ids = translator.tokenizer.source_graph(lines)
    assert ids.to_list() == translator.encode(lines)
    report = export.verify(translator, path, lines)
    assert not report.differences and not report.text_differences


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"with_relative_position": True}, "relative_position_keys"),
        ({"ffn_glu": True}, "linear_0_noact"),
        ({"layernorm_embedding": True}, "layernorm_embedding"),
        ({"activation": common_spec.Activation.GELUTanh}, "activation GELU by tanh"),
    ],
)
def test_other_architectures_are_refused_by_name(options, name, model, tmp_path):
    spec = peer.make_spec(peer.tokens_of(model), **options)
    peer.write_package(tmp_path / "x", spec, model)
    with pytest.raises(ValueError, match=name):
        from_ctranslate2(tmp_path / "x")


def changed(package, folder, variables=None, config=None, without=()):
    """Writes the model of a package with another content."""
    content = read_ctranslate2(package / "model")
    arrays = {name: content.variables[name] for name in content.variables}
    arrays = {name: array for name, array in arrays.items() if name not in without}
    arrays |= variables or {}
    aliases = {alias: name for alias, name in content.aliases.items() if name in arrays}
    content = type(content)(
        arrays,
        aliases,
        {**content.config, **(config or {})},
        content.source_vocabulary,
        content.target_vocabulary,
    )
    files = {"sentencepiece.model": (package / "sentencepiece.model").read_bytes()}
    write_ctranslate2(folder, content, files)
    return folder


TABLE = "decoder/position_encodings/encodings"
FIRST = "encoder/layer_0/self_attention/linear_0"
VARIABLES = {  # -> the error, if one has another value
    "decoder/alibi": (np.array(1, "int8"), "it has ALiBi"),
    TABLE: (np.ones((9, 24), "float32"), "must be sinusoids"),
    "decoder/scale_outputs": (np.array(2, "float32"), "'decoder/scale_outputs'"),
    "encoder/num_heads": (np.array(3, "int16"), "num_heads .*Received: 3 and 4"),
    "decoder/scale_embeddings": (np.array(3, "float32"), "4.899 or 1. Received: 3.0"),
    "decoder/projection/bias": (np.zeros(7, "float32"), "projection/bias.*: 7 rows"),
    f"{FIRST}/weight": (np.zeros((40, 24), "float32"), "rows of 3 equal.*: 40 rows"),
}
CONFIGS = {
    "add_source_bos": (True, "a start before each source"),
    "decoder_start_token": (None, "no decoder_start_token"),
    "eos_token": ("<end>", "the token '<end>' with one id"),
}
WITHOUT = {
    f"{FIRST}/bias": "no weights '.*linear_0/bias'",
    TABLE: "begin with 1, as in OpenNMT-tf",
    "encoder/layer_norm/gamma": "no weights 'encoder/layer_norm/gamma'",
}
CHANGES = [
    *(({"variables": {k: v}}, pattern) for k, (v, pattern) in VARIABLES.items()),
    *(({"config": {k: v}}, pattern) for k, (v, pattern) in CONFIGS.items()),
    *(({"without": [k]}, pattern) for k, pattern in WITHOUT.items()),
]


@pytest.mark.parametrize(
    ("changes", "message"), CHANGES, ids=[*VARIABLES, *CONFIGS, *WITHOUT]
)
def test_other_settings_and_weights_are_refused(changes, message, package, tmp_path):
    folder = changed(package, tmp_path / "x", **changes)
    with pytest.raises(ValueError, match=message):
        from_ctranslate2(folder)


def test_factor_of_embeddings_may_be_number(package, tmp_path):
    for number, (factor, scales) in enumerate(((24**0.5, True), (1.0, False))):
        values = {
            f"{side}/scale_embeddings": np.array(factor, "float32")
            for side in ("encoder", "decoder")
        }
        folder = changed(package, tmp_path / str(number), values)
        assert from_ctranslate2(folder).model.scale_embeddings is scales


def test_folder_without_sentencepiece_is_refused(package, tmp_path):
    folder = shutil.copytree(package / "model", tmp_path / "x")
    with pytest.raises(FileNotFoundError, match="must have SentencePiece models"):
        from_ctranslate2(folder)
    with pytest.raises(FileNotFoundError, match="There is no file or folder .*none"):
        from_ctranslate2(tmp_path / "none")


def test_sentencepiece_model_of_another_vocabulary_is_refused(copy):
    tokens = json.loads((copy / "model/shared_vocabulary.json").read_text())
    others = [*tokens[:4], *(f"other{i}" for i in range(len(tokens) - 4))]
    (copy / "model/shared_vocabulary.json").write_text(json.dumps(others))
    with pytest.raises(ValueError, match="are of different models"):
        from_ctranslate2(copy)
    others[5] = others[6]
    (copy / "model/shared_vocabulary.json").write_text(json.dumps(others))
    with pytest.raises(ValueError, match="each token once, .* Received: 'other2'"):
        from_ctranslate2(copy)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"type": "sbd"}, "does not describe a translation package"),
        ({"target_prefix": "__nl__"}, "the target_prefix '__nl__'"),
    ],
)
def test_other_packages_are_refused(metadata, message, copy):
    (copy / "metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(ValueError, match=message):
        from_ctranslate2(copy)


def test_package_with_another_tokenizer_is_refused(copy):
    (copy / "sentencepiece.model").rename(copy / "bpe.model")
    with pytest.raises(FileNotFoundError, match="no sentencepiece.model"):
        from_ctranslate2(copy)


def test_zip_writes_nothing_outside(tmp_path):
    path = tmp_path / "bad.argosmodel"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/metadata.json", "{}")
        for name in (
            "x/model/..",
            "x/../model/a",
            "../model/b",
            "/model/c",
            "x/m/../d",
        ):
            archive.writestr(name, "outside")
    with pytest.raises((ValueError, FileNotFoundError), match="bad.argosmodel"):
        from_ctranslate2(path)
    assert list(tmp_path.iterdir()) == [path]


def test_zip_bomb_is_refused(tmp_path):
    bomb = tmp_path / "bomb.argosmodel"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/metadata.json", "{}")
        archive.writestr("x/model/model.bin", bytes(2**25))
    with pytest.raises(ValueError, match="would unpack to 33,554,4"):
        from_ctranslate2(bomb)

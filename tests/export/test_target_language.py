"""A multilingual model's file translates into one language, or by the texts' codes."""

from types import SimpleNamespace

import pytest
import sentencepiece
from marian_texts import SOURCE, learn_models, write_files
from models import make_model
from pieces_in_text import encoded_pieces
from text_form import TextForm

from keras_vanilla import export
from keras_vanilla.export.checks.runners import open_exported
from keras_vanilla.export.conversion import in_target_language
from keras_vanilla.interop.marian_tokenizer import tokenizer_from_marian
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation import Translator

LIMITS = {"max_bytes": 131, "max_source_length": 67, "max_length": 11}


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("marian") / "x", learn_models())
    tokenizer = tokenizer_from_marian(folder)
    model = make_model(
        source_vocabulary_size=tokenizer.vocabulary_size,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_length=67,
        pad_id=tokenizer.pad_id,
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
        forbidden_ids=[tokenizer.pad_id],
    )
    return Translator(tokenizer, model)


def test_translator_of_one_language_has_its_code_in_front(translator):
    (ids,) = translator.encode([">>zho_Hans<< the cat"])
    chinese = in_target_language(translator, "zho-Hans")
    assert chinese.encode(["the cat"]) == [ids]
    assert in_target_language(translator, None) is translator
    with pytest.raises(ValueError, match="`target_language` must be .*'fra'.*'fr'"):
        in_target_language(translator, "fr")


def test_code_alone_is_not_translated(translator):
    """Nor is it in files: the reports below compare them with the translator."""
    chinese = in_target_language(translator, "zho-Hans")
    assert chinese.translate(["", " ", "the cat"])[:2] == ["", ""]
    assert chinese.translate_n_best([""]) == [[("", 0.0)]]
    without_codes = SimpleNamespace(tokenizer=Tokenizer.train(SOURCE, 290))
    assert in_target_language(without_codes, "fr") is without_codes


def assert_spans_are_of_the_text(path, translator, code):
    """What the file says is attended to is a piece; not a code that is not there."""
    translate = TextForm(path)
    peer = sentencepiece.SentencePieceProcessor(
        model_proto=translator.tokenizer.source_model
    )
    for line in SOURCE[:5]:
        result = translate(code + line)
        assert result["known"] == 1.0  # a language code is no part of the text
        model, ids = translator.model, result["ids"]
        has_text = (ids != model.pad_id) & (ids != model.end_id)
        spans = {tuple(span) for span in result["source_spans"][has_text].tolist()}
        pieces = encoded_pieces(peer, line.encode())
        allowed = {(len(code) + x.begin, len(code) + x.end) for x in pieces}
        assert spans and spans <= allowed | ({(0, len(code))} if code else set())


@pytest.mark.full
@pytest.mark.parametrize("language", ["zho-Hans", None])
def test_file_translates_as_keras(translator, tmp_path, language):
    path = tmp_path / "x.tflite"
    about = {} if language is None else {"target_language": language}
    settings = {"quantize": None, "check": "structure", "outputs": ["alignment"]}
    export.tflite(translator, path, **settings, **LIMITS, **about)
    assert_spans_are_of_the_text(path, translator, "" if language else ">>deu<<")
    lines = [*SOURCE[:11], "é ¢ дом 🙂🙂", "", ">>fra<<", ">> a << b"]
    if language is None:
        lines += [f">>deu<< {line}" for line in SOURCE[:5]]
    report = export.verify(translator, path, lines)
    assert report.sentences == len(lines) and not report.faults
    assert report.equal + report.near_ties == len(lines)
    assert not report.text_differences
    if language is not None:
        named = [f">>{language.replace('-', '_')}<< {line}" for line in SOURCE[:5]]
        sources = translator.encode(named)
        ids, _ = open_exported(path).translate(SOURCE[:5], sources, translator.model)
        expected = translator.search(sources)[:, :11]
        assert ids.tolist() == expected.tolist()
        assert export.read_description(path).target_language == language


@pytest.mark.full
@pytest.mark.parametrize("language", ["fra", None])
def test_saved_model_translates_as_keras(translator, tmp_path, language):
    translator = in_target_language(translator, language)
    path = tmp_path / "saved"
    export.saved_model(translator, path)
    lines = [*SOURCE[:5], *(f">>deu<< {line}" for line in SOURCE[:5]), "é ¢ дом", ""]
    report = export.verify(translator, path, lines)
    assert report.sentences == report.equal == len(lines)
    assert not report.text_differences


@pytest.mark.full
def test_language_without_a_code_is_refused_before_anything_is_written(
    translator, tmp_path
):
    with pytest.raises(ValueError, match="`target_language` must be one of 'fra', "):
        export.tflite(translator, tmp_path / "x.tflite", target_language="fr")
    assert not list(tmp_path.iterdir())

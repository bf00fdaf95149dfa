"""CTranslate2's model folders, made by hand, and against CTranslate2 itself."""

import numpy as np
import pytest
from ctranslate2_bytes import (
    ALIASES,
    CONFIG,
    TOKENS,
    VARIABLES,
    binary,
    variable,
    write,
)
from damaged_bytes import at_most_allocated

from keras_vanilla.interop.files.ctranslate2_file import (
    CTranslate2Model,
    dequantize,
    quantize_int8,
    read_ctranslate2,
    write_ctranslate2,
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "model"


def test_a_folder_is_read(folder):
    model = read_ctranslate2(write(folder))
    assert model.variables.keys() == VARIABLES.keys() and model.aliases == ALIASES
    for name, array in VARIABLES.items():
        assert model.variables[name].dtype == array.dtype
        np.testing.assert_array_equal(model.variables[name], array)
    assert model.names() == sorted([*VARIABLES, *ALIASES])
    assert model.config == CONFIG
    assert model.source_vocabularies == [TOKENS] and model.target_vocabulary == TOKENS


def test_weights_are_dequantised_and_found_by_their_aliases(folder):
    model = read_ctranslate2(write(folder))
    weights = model.weights("encoder/layer_0/weight")
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights, [[-63.5, 1.5], [0, 5 / 7]], rtol=2e-7)
    table = VARIABLES["decoder/projection/weight"]
    np.testing.assert_array_equal(model.weights("encoder/embeddings_0/weight"), table)
    with pytest.raises(KeyError, match="encoder/no"):
        model.weights("encoder/no")


def test_attributes_are_single_numbers(folder):
    model = read_ctranslate2(write(folder))
    assert model.attribute("encoder/num_heads", 8) == 4
    assert model.attribute("decoder/num_heads", 8) == 8
    with pytest.raises(ValueError, match=r"one number; its shape is \(2, 3\)"):
        model.attribute("encoder/embeddings_0/weight", None)


def test_a_variable_is_read_when_asked_for(folder):
    large = {"weight": np.zeros((500, 1000), "float32")}
    write(folder, binary(large, {}))
    with at_most_allocated(0.3):
        model = read_ctranslate2(folder)
    with at_most_allocated(2.2):
        for _ in range(3):
            model.weights("weight")


def test_bfloat16_becomes_float32(folder):
    stored = variable("weight", np.array([0xC000], "<u2"), number=5)
    model = read_ctranslate2(write(folder, binary([stored], {})))
    assert model.weights("weight").tolist() == [-2]


def test_what_is_written_is_read(folder):
    model = CTranslate2Model(VARIABLES, ALIASES, CONFIG, [TOKENS], TOKENS[::-1])
    write_ctranslate2(folder, model, {"source.spm": b"pieces"})
    assert (folder / "model.bin").read_bytes() == binary()
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.bin",
        "source.spm",
        "source_vocabulary.json",
        "target_vocabulary.json",
    ]
    assert (folder / "source.spm").read_bytes() == b"pieces"
    again = read_ctranslate2(folder)
    assert (again.source_vocabularies, again.target_vocabulary) == (
        [TOKENS],
        TOKENS[::-1],
    )
    assert again.config == CONFIG and again.aliases == ALIASES


def test_vocabularies_of_several_features(folder, tmp_path):
    sources = [TOKENS, TOKENS[:4]]
    model = CTranslate2Model(VARIABLES, ALIASES, CONFIG, sources, TOKENS)
    write_ctranslate2(folder, model)
    again = read_ctranslate2(folder)
    assert again.source_vocabularies == sources and again.target_vocabulary == TOKENS


def test_what_is_there_is_not_replaced(folder):
    model = read_ctranslate2(write(folder))
    with pytest.raises(FileExistsError, match="exists already; nothing was written"):
        write_ctranslate2(folder, model)
    assert (folder / "model.bin").read_bytes() == binary()


@pytest.mark.parametrize("name", ["model.bin", "config.json"])
def test_more_files_do_not_replace_those_of_the_model(folder, name):
    model = CTranslate2Model(VARIABLES, ALIASES, CONFIG, [TOKENS], TOKENS)
    with pytest.raises(FileExistsError, match=name):
        write_ctranslate2(folder, model, {name: b""})
    assert list(folder.parent.iterdir()) == []


def test_a_type_that_ctranslate2_lacks_is_not_written(folder):
    wrong = {"a": np.zeros(3, "float64")}
    model = CTranslate2Model(wrong, {}, CONFIG, [TOKENS], TOKENS)
    with pytest.raises(ValueError, match="no variables of type float64"):
        write_ctranslate2(folder, model)
    assert list(folder.parent.iterdir()) == []


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_vocabularies_as_lines(folder, ending):
    write(folder, source=TOKENS)
    (folder / "source_vocabulary.json").unlink()
    content = "".join(f"{token}{ending}" for token in TOKENS)
    (folder / "source_vocabulary.txt").write_bytes(content.encode())
    (folder / "target_vocabulary.txt").write_bytes(b"a\r\nb\n")
    model = read_ctranslate2(folder)
    assert model.source_vocabularies == [TOKENS]
    assert model.target_vocabulary == ["a\r", "b", "<unk>"]  # the last as CTranslate2


@pytest.mark.parametrize("version", [4, 5])
def test_older_configurations_are_among_the_variables(folder, version):
    of_model = {
        "eos_token": np.frombuffer("\u2581".encode(), np.int8),
        "with_source_eos": np.array(1, "int8"),
        "with_target_bos": np.array(0, "int8"),
    }
    content = binary(VARIABLES | of_model, ALIASES, version, revision=4)
    config = read_ctranslate2(write(folder, content, config=None)).config
    assert config == {
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "\u2581",
        "add_source_bos": False,
        "add_source_eos": True,
        "decoder_start_token": "\u2581",
    }
    content = binary({"user_decoder_start_tokens": np.array(1, "int8")}, {}, version)
    config = read_ctranslate2(write(folder, content, config=None)).config
    assert config["decoder_start_token"] is None
    config = read_ctranslate2(
        write(folder, binary(version=version), config=None)
    ).config
    assert config["decoder_start_token"] == "<s>"


@pytest.mark.parametrize(
    "token", [np.array([-1], "int8"), np.array([np.nan], "float32")], ids=str
)
def test_an_older_token_that_is_not_a_text_is_refused(folder, token):
    write(folder, binary({"eos_token": token}, {}, version=5), config=None)
    with pytest.raises(ValueError, match="variable eos_token is not a text"):
        read_ctranslate2(folder)


def test_an_empty_vocabulary_has_the_unknown_token_alone(folder):
    (write(folder) / "shared_vocabulary.json").unlink()
    (folder / "shared_vocabulary.txt").write_bytes(b"")
    assert read_ctranslate2(folder).target_vocabulary == ["<unk>"]


def test_older_names_have_those_of_today(folder):
    variables = {
        "num_heads": np.array(4, "int8"),
        "encoder/embeddings/weight": np.zeros((2, 3), "int8"),
        "encoder/embeddings/weight_scale": np.ones(2, "float32"),
        "encoder/embeddings/multiply_by_sqrt_depth": np.array(1, "int8"),
    }
    aliases = {"pre_norm": "num_heads"}
    model = read_ctranslate2(write(folder, binary(variables, aliases, 4, revision=3)))
    assert model.attribute("encoder/num_heads", 8) == 4
    assert model.attribute("decoder/pre_norm", 1) == 4
    assert model.attribute("encoder/scale_embeddings", 0) == 1
    assert model.weights("encoder/embeddings_0/weight").shape == (2, 3)


def test_int16_weights_without_a_scale_have_that_of_older_models():
    values = np.array([[-500, 1000]], "int16")
    np.testing.assert_allclose(dequantize(values, None), [[-0.5, 1]], rtol=2e-7)


def test_int8_weights_are_within_half_a_step(rows=7, columns=11):
    weights = np.random.default_rng(1).normal(size=(rows, columns)).astype("float32")
    weights[3] = 0
    weights[5] *= 1e-30
    values, scales = quantize_int8(weights)
    assert values.dtype == np.int8 and scales.dtype == np.float32
    errors = np.abs(dequantize(values, scales) - weights)
    assert (errors <= np.abs(weights).max(1, keepdims=True) / 254 * (1 + 1e-5)).all()


def test_a_row_of_zeros_of_older_models_stays_zero():
    values = np.array([[0, 0], [127, 1]], "int8")
    weights = dequantize(values, np.array([np.inf, 127], "float32"))
    np.testing.assert_allclose(weights, [[0, 0], [1, 1 / 127]], rtol=2e-7)


def random_spec(quantize, seed=1, size=12, feed_forward=20):
    """A pre-norm TransformerSpec of CTranslate2 with random weights, tied."""
    specs = pytest.importorskip("ctranslate2.specs")
    normal = np.random.default_rng(seed).normal
    spec = specs.TransformerSpec.from_config((2, 1), num_heads=3, pre_norm=True)

    def fill_dense(dense, outputs, inputs):
        dense.weight = normal(size=(outputs, inputs), scale=0.3).astype("float32")
        dense.bias = normal(size=outputs).astype("float32")

    def fill_norm(norm):
        norm.gamma, norm.beta = normal(size=(2, size)).astype("float32")

    for stack in (spec.encoder, spec.decoder):
        fill_norm(stack.layer_norm)
        for layer in stack.layer:
            fill_dense(layer.ffn.linear_0, feed_forward, size)
            fill_dense(layer.ffn.linear_1, size, feed_forward)
            sizes = {"self_attention": (3, 1), "attention": (1, 2, 1)}
            for name in sizes.keys() & vars(layer).keys():
                attention = getattr(layer, name)
                fill_norm(attention.layer_norm)
                for dense, outputs in zip(attention.linear, sizes[name], strict=True):
                    fill_dense(dense, outputs * size, size)
            fill_norm(layer.ffn.layer_norm)
    fill_dense(spec.decoder.projection, len(TOKENS), size)
    spec.encoder.embeddings[0].weight = spec.decoder.projection.weight
    spec.decoder.embeddings.weight = spec.decoder.projection.weight
    spec.register_source_vocabulary(TOKENS)
    spec.register_target_vocabulary(TOKENS)
    spec.validate()
    spec.optimize(quantize)
    return spec


def scores_of(folder):
    """What CTranslate2 makes of sources and targets, in float32."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    runtime = ctranslate2.Translator(str(folder), compute_type="float32")
    sources, targets = [TOKENS[2:], TOKENS[3:4]], [TOKENS[3:], TOKENS[4:]]
    results = runtime.score_batch(sources, targets)
    return [result.log_probs for result in results]


QUANTIZATIONS = ["float32", "float16", "int16", "int8", "int8_float16"]


@pytest.mark.full
@pytest.mark.parametrize("quantize", [*QUANTIZATIONS, "bfloat16"])
def test_what_ctranslate2_has_written_is_read(folder, quantize):
    spec = random_spec(quantize)
    folder.mkdir()
    spec.save(str(folder))
    model = read_ctranslate2(folder)
    assert model.names() == sorted(spec.variables())
    for name, value in spec.variables().items():
        if isinstance(value, str):
            assert model.aliases[name] == value
        elif value.dtype == "bfloat16":
            expected = value.tensor.float().numpy()
            np.testing.assert_array_equal(model.variables[name], expected)
        else:
            assert model.variables[name].dtype == value.dtype
            np.testing.assert_array_equal(model.variables[name], value.numpy())


@pytest.mark.full
@pytest.mark.parametrize("quantize", QUANTIZATIONS)
def test_the_same_bytes_are_written(folder, tmp_path, quantize):
    folder.mkdir()
    random_spec(quantize).save(str(folder))
    again = tmp_path / "again"
    write_ctranslate2(again, read_ctranslate2(folder))
    names = sorted(path.name for path in folder.iterdir())
    assert sorted(path.name for path in again.iterdir()) == names
    for name in names:
        assert (again / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.full
@pytest.mark.parametrize("quantize", QUANTIZATIONS)
def test_dequantised_weights_are_those_of_ctranslate2(folder, tmp_path, quantize):
    folder.mkdir()
    random_spec(quantize).save(str(folder))
    model = read_ctranslate2(folder)
    variables = {
        name: model.weights(name) if name.endswith("weight") else array
        for name, array in model.variables.items()
        if not name.endswith("weight_scale")
    }
    dequantised = CTranslate2Model(
        variables, model.aliases, model.config, [TOKENS], TOKENS
    )
    write_ctranslate2(tmp_path / "float32", dequantised)
    assert scores_of(tmp_path / "float32") == scores_of(folder)


@pytest.mark.full
def test_int8_weights_are_those_of_ctranslate2_s_converters():
    exact, quantised = (
        random_spec(quantize).encoder.layer[0].ffn.linear_0
        for quantize in ("float32", "int8")
    )
    values, scales = quantize_int8(exact.weight.numpy())
    np.testing.assert_array_equal(values, quantised.weight.numpy())
    np.testing.assert_array_equal(scales, quantised.weight_scale.numpy())


@pytest.mark.full
@pytest.mark.parametrize("version, revision", [(4, 3), (4, 4), (5, 5)])
def test_older_folders_are_what_ctranslate2_takes_them_for(
    folder, tmp_path, version, revision
):
    """CTranslate2 scores the old folder as that which is written of it here."""
    spec = random_spec("int8")
    values = {name: value for name, value in spec.variables().items()}
    aliases = {name: value for name, value in values.items() if isinstance(value, str)}
    variables = {name: values[name].numpy() for name in values.keys() - aliases.keys()}
    if revision < 5:
        for name in ("num_heads", "pre_norm", "activation"):
            variables[name] = variables.pop(f"encoder/{name}")
            del variables[f"decoder/{name}"]
    if revision < 4:
        names = ["encoder/embeddings_0/weight", "encoder/embeddings_0/weight_scale"]
        for name in names:
            for each in (variables, aliases):
                if name in each:
                    each[name.replace("_0", "")] = each.pop(name)
        aliases = {
            a: name.replace("embeddings_0", "embeddings") for a, name in aliases.items()
        }
    variables |= {"with_source_eos": np.array(1, "int8")}
    old = binary(dict(sorted(variables.items())), aliases, version, revision=revision)
    write(folder, old, config=None)
    model = read_ctranslate2(folder)
    assert (
        model.config["add_source_eos"] and model.attribute("decoder/num_heads", 8) == 3
    )
    write_ctranslate2(tmp_path / "new", model)
    assert scores_of(tmp_path / "new") == scores_of(folder)
    folder = tmp_path / "of today"
    folder.mkdir()
    spec.config.add_source_eos = True
    spec.save(str(folder))
    assert scores_of(folder) == scores_of(tmp_path / "new")

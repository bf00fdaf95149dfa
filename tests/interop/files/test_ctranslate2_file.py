"""CTranslate2's model folders, made by hand, and against CTranslate2 itself."""

import numpy as np
import pytest
from ctranslate2_bytes import (
    ALIASES,
    CONFIG,
    TOKENS,
    VARIABLES,
    binary,
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


def test_folder_is_read(folder):
    model = read_ctranslate2(write(folder))
    assert model.variables.keys() == VARIABLES.keys() and model.aliases == ALIASES
    for name, array in VARIABLES.items():
        assert model.variables[name].dtype == array.dtype
        np.testing.assert_array_equal(model.variables[name], array)
    assert model.names() == sorted([*VARIABLES, *ALIASES])
    assert model.config == CONFIG
    assert model.source_vocabulary == model.target_vocabulary == TOKENS


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


def test_variables_are_read_on_demand(folder):
    large = {"weight": np.zeros((500, 1000), "float32")}
    write(folder, binary(large, {}))
    with at_most_allocated(0.3):
        model = read_ctranslate2(folder)
    with at_most_allocated(2.2):
        for _ in range(3):
            model.weights("weight")


def test_written_folder_is_read(folder):
    model = CTranslate2Model(VARIABLES, ALIASES, CONFIG, TOKENS, TOKENS[::-1])
    write_ctranslate2(folder, model, {"source.spm": b"pieces"})
    assert (folder / "model.bin").read_bytes() == binary()
    assert (folder / "source.spm").read_bytes() == b"pieces"
    assert not (folder / "shared_vocabulary.json").exists()
    again = read_ctranslate2(folder)
    assert again.source_vocabulary == again.target_vocabulary[::-1] == TOKENS
    assert again.config == CONFIG and again.aliases == ALIASES


def test_vocabularies_as_lines(folder):
    write(folder, source=TOKENS)
    (folder / "source_vocabulary.json").unlink()
    (folder / "source_vocabulary.txt").write_text("\n".join([*TOKENS, ""]), "utf-8")
    (folder / "target_vocabulary.txt").write_bytes(b"a\nb\n")
    model = read_ctranslate2(folder)
    assert model.source_vocabulary == TOKENS
    assert model.target_vocabulary == ["a", "b", "<unk>"]  # the last as CTranslate2


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


def test_older_names_have_aliases(folder):
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


def test_row_of_zeros_of_older_models_stays_zero():
    values = np.array([[0, 0], [127, 1]], "int8")
    weights = dequantize(values, np.array([np.inf, 127], "float32"))
    np.testing.assert_allclose(weights, [[0, 0], [1, 1 / 127]], rtol=2e-7)


def random_spec(quantize):
    """A TransformerSpec of CTranslate2 with random weights, as it is saved."""
    pytest.importorskip("ctranslate2")
    from opennmt_folder import make_spec

    spec = make_spec(TOKENS)
    spec.validate()
    spec.optimize(quantize)
    return spec


def scores_of(folder):
    """The scores of CTranslate2 in float32."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    runtime = ctranslate2.Translator(str(folder), compute_type="float32")
    sources, targets = [TOKENS[2:], TOKENS[3:4]], [TOKENS[3:], TOKENS[4:]]
    results = runtime.score_batch(sources, targets)
    return [result.log_probs for result in results]


QUANTIZATIONS = ["float32", "float16", "int16", "int8", "int8_float16"]


@pytest.mark.full
@pytest.mark.parametrize("quantize", [*QUANTIZATIONS, "bfloat16"])
def test_folder_of_ctranslate2_is_read(folder, quantize):
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
def test_same_bytes_are_written(folder, tmp_path, quantize):
    folder.mkdir()
    random_spec(quantize).save(str(folder))
    again = tmp_path / "again"
    write_ctranslate2(again, read_ctranslate2(folder), {})
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
        variables, model.aliases, model.config, TOKENS, TOKENS
    )
    write_ctranslate2(tmp_path / "float32", dequantised, {})
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
def test_older_folders_score_as_in_ctranslate2(folder, tmp_path, version, revision):
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
        model.config["add_source_eos"] and model.attribute("decoder/num_heads", 8) == 4
    )
    write_ctranslate2(tmp_path / "new", model, {})
    assert scores_of(tmp_path / "new") == scores_of(folder)
    folder = tmp_path / "of today"
    folder.mkdir()
    spec.config.add_source_eos = True
    spec.save(str(folder))
    assert scores_of(folder) == scores_of(tmp_path / "new")

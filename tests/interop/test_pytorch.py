"""Models around `torch.nn.Transformer`, in and out: the same logits."""

import math

import numpy as np
import pytest
from checks import array, randomize
from models import ids

from keras_vanilla.interop import from_pytorch, to_pytorch
from keras_vanilla.models import Transformer

from .same_translators import assert_same_weights

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

SIZES = {
    "d_model": 12,
    "nhead": 3,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
    "dim_feedforward": 17,
}
IDS = {"pad_id": 1, "start_id": 2, "end_id": 3}
SOURCE, TARGET, LENGTH = 19, 23, 29
VARIANTS = [
    ({}, {}),
    (
        {"norm_first": True, "activation": "gelu"},
        {"normalize_first": True, "activation": "gelu"},
    ),
]


class Embedded(torch.nn.Module):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary_size, SIZES["d_model"])

    def forward(self, ids):
        return self.embedding(ids) * math.sqrt(SIZES["d_model"])


class Positions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        d_model = SIZES["d_model"]
        steps = torch.arange(LENGTH).float().unsqueeze(1)
        rates = torch.exp(-torch.arange(0, d_model, 2) * math.log(10_000) / d_model)
        table = torch.zeros(LENGTH, d_model)
        table[:, 0::2] = torch.sin(steps * rates)
        table[:, 1::2] = torch.cos(steps * rates)
        self.register_buffer("pos_embedding", table.unsqueeze(1))

    def forward(self, x):
        return x + self.pos_embedding[: x.size(0)]


class TutorialModel(torch.nn.Module):
    """The model of PyTorch's tutorial: ids (S, B) and (T, B) to logits (T, B, V)."""

    def __init__(self, target_size=TARGET, **settings):
        super().__init__()
        self.transformer = torch.nn.Transformer(**SIZES, **settings)
        self.generator = torch.nn.Linear(SIZES["d_model"], target_size)
        self.src_tok_emb = Embedded(SOURCE)
        self.tgt_tok_emb = Embedded(target_size)
        self.positional_encoding = Positions()

    def forward(self, source, target):
        causal = torch.ones(len(target), len(target), dtype=torch.bool).triu(1)
        source_pads, target_pads = ((x == IDS["pad_id"]).T for x in (source, target))
        return self.generator(
            self.transformer(
                self.positional_encoding(self.src_tok_emb(source)),
                self.positional_encoding(self.tgt_tok_emb(target)),
                tgt_mask=causal,
                src_key_padding_mask=source_pads,
                tgt_key_padding_mask=target_pads,
                memory_key_padding_mask=source_pads,
            )
        )


def tutorial_model(**settings):
    torch.manual_seed(0)
    model = TutorialModel(**settings).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return model


def feed():
    target = ids([6, 4, 3], 6, size=TARGET, pad_id=1, seed=1)
    target[:, 0] = IDS["start_id"]
    source = ids([3, 5, 7], 7, size=SOURCE, pad_id=1)
    return {"source_ids": source, "target_ids": target}


def their_logits(model, source_ids, target_ids):
    with torch.no_grad():
        source, target = (torch.tensor(x.T).long() for x in (source_ids, target_ids))
        return model(source, target).numpy().transpose(1, 0, 2)


@pytest.mark.parametrize(("settings", "ours"), VARIANTS)
@pytest.mark.parametrize("as_file", [False, True])
def test_logits_are_those_of_pytorch(settings, ours, as_file, tmp_path):
    theirs = tutorial_model(**settings)
    state = theirs.state_dict()
    if as_file:
        torch.save(state, tmp_path / "model.pt")
        state = tmp_path / "model.pt"
    model = from_pytorch(state, num_heads=3, **IDS, **ours)
    assert model.max_length == LENGTH and model.position_layout == "interleaved"
    inputs = feed()
    expected = their_logits(theirs, **inputs)
    assert np.abs(expected).max() > 1
    real = inputs["target_ids"] != IDS["pad_id"]
    received = array(model(inputs))
    np.testing.assert_allclose(received[real], expected[real], atol=2e-5)


def test_tables_of_any_name_and_one_for_all():
    theirs = tutorial_model()
    state = {
        name.removeprefix("transformer."): value
        for name, value in theirs.state_dict().items()
        if name.startswith("transformer.")
    }
    state["words"] = theirs.state_dict()["tgt_tok_emb.embedding.weight"]
    model = from_pytorch(
        state,
        num_heads=3,
        **IDS,
        source_embedding="words",
        target_embedding="words",
        output="words",
        positions=None,
    )
    assert model.share_embeddings and model.tie_output and not model.output_bias
    np.testing.assert_array_equal(model.source_embedding.embeddings, state["words"])


@pytest.mark.parametrize(("settings", "ours"), VARIANTS)
def test_out_and_in_again(settings, ours):
    theirs = tutorial_model(**settings)
    model = from_pytorch(theirs.state_dict(), num_heads=3, **IDS, **ours)
    state = {name: torch.tensor(each) for name, each in to_pytorch(model).items()}
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(state[name], value, atol=1e-6 * ("pos" in name))
    other = tutorial_model(**settings)
    other.load_state_dict(state)
    again = from_pytorch(state, num_heads=3, **IDS, **ours)
    assert_same_weights(again, model)


def test_our_own_model_computes_the_same_in_pytorch():
    model = randomize(
        Transformer(
            SOURCE,
            d_model=12,
            num_heads=3,
            d_ff=17,
            num_encoder_layers=2,
            num_decoder_layers=3,
            final_norm=True,
            pad_id=1,
            start_id=2,
            end_id=3,
            max_length=LENGTH,
        )
    )
    state = {name: torch.tensor(each) for name, each in to_pytorch(model).items()}
    theirs = TutorialModel(SOURCE).eval()
    theirs.load_state_dict(state)
    inputs = {name: np.where(x >= SOURCE, 4, x) for name, x in feed().items()}
    real = inputs["target_ids"] != 1
    expected = their_logits(theirs, **inputs)
    np.testing.assert_allclose(array(model(inputs))[real], expected[real], atol=5e-5)


def changed(change):
    state = dict(tutorial_model().state_dict())
    change(state)
    return state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.clear(), "one torch.nn.Transformer.* Received: {}"),
        (lambda s: s.pop("generator.weight"), "no 'generator.weight': give .*`output`"),
        (lambda s: s.update(more=torch.ones(3)), "weights 'more', which have no place"),
        (
            lambda s: (
                s.pop("transformer.decoder.norm.weight")
                is s.pop("transformer.decoder.norm.bias")
            ),
            "no 'decoder_norm/gamma'",
        ),
        (
            lambda s: s["positional_encoding.pos_embedding"].add_(0.5),
            "positions must be sinusoids.* a table",
        ),
        (
            lambda s: [s.pop(n) for n in list(s) if "layers" in n and "bias" in n],
            "no 'encoder/0/self_attention/query/bias'",
        ),
        (
            lambda s: s.update({"transformer.encoder.layers.1.gate": torch.ones(3)}),
            "no place for the weights of 'encoder/1/gate",
        ),
    ],
)
def test_other_states_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        from_pytorch(changed(change), num_heads=3, **IDS)


def test_settings_that_do_not_exist_are_refused():
    with pytest.raises(TypeError, match="norm_first.*normalize_first"):
        from_pytorch(tutorial_model().state_dict(), num_heads=3, **IDS, norm_first=True)

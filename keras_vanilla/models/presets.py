"""Named model sizes, without trained weights."""

from keras_vanilla._checks import check_choice

SIZES = "d_model", "num_heads", "d_ff", "num_encoder_layers", "num_decoder_layers"
PRE_NORM = {"normalize_first": True}
PRESETS = {
    name: {**dict(zip(SIZES, sizes, strict=True)), "dropout": dropout, **more}
    for name, sizes, dropout, more in (
        ("tiny", (64, 4, 256, 2, 2), 0.1, {}),
        ("small", (256, 8, 1024, 3, 3), 0.1, {}),
        ("base", (512, 8, 2048, 6, 6), 0.1, {}),  # table 3 of the paper
        ("big", (1024, 16, 4096, 6, 6), 0.3, {}),
        # The decoder runs once per token and takes most of the time of a translation,
        # so students for phones have few decoder layers and many encoder layers (Kim et
        # al. 2019). With so few, a post-norm decoder learns to use its source late or
        # never.
        ("phone", (256, 8, 1536, 6, 2), 0.1, PRE_NORM),
        ("phone-small", (192, 6, 768, 6, 2), 0.1, PRE_NORM),
        ("phone-tiny", (128, 4, 512, 6, 2), 0.1, PRE_NORM),
    )
}


def preset_sizes(name: str) -> dict:
    """The `Transformer` arguments of a preset.

    Raises:
        ValueError: if the preset does not exist.
    """
    return dict(PRESETS[check_choice("preset", name, list(PRESETS))])

"""What searches refuse."""

from refusal import Refusal

from keras_vanilla.decoding import DecodingConfig

ROWS = [
    Refusal("no beams", lambda: DecodingConfig(beam_size=0), "`beam_size`.*0"),
]

"""A text's ids, and the names of its pieces."""

START, END, PAD = "<s>", "</s>", "<pad>"


def source_of(translator, text):
    """Source ids of a text, a list of int.

    Raises:
        ValueError: if it has no piece or more than the model takes.
    """
    ids = translator.encode([text])[0]
    if len(ids) == 1:  # the end
        raise ValueError(f"There is no piece to draw in the text {text!r}.")
    return ids


def source_names(tokenizer):
    """A function from a source id to the piece's name."""
    return _names(tokenizer, tokenizer.source_pieces)


def target_names(tokenizer):
    """A function from a target id to the piece's name."""
    return _names(tokenizer, tokenizer.target_pieces)


def _names(tokenizer, pieces_of):
    # A tokenizer may have special ids that its SentencePiece model does not know.
    special = {
        tokenizer.pad_id: PAD,
        tokenizer.start_id: START,
        tokenizer.end_id: END,
    }

    def name(id_):
        try:
            return special.get(id_) or pieces_of([int(id_)])[0]
        except IndexError:
            return f"<{id_}>"  # an id that stands for nothing

    return name

"""A translation model around `torch.nn.Transformer`, with the names of the tutorial."""

import math

import torch
from torch import nn


class Embedded(nn.Module):
    """A table whose rows are scaled by the root of their width."""

    def __init__(self, vocabulary_size, d_model):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, d_model)

    def forward(self, ids):
        return self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)


class Positions(nn.Module):
    def __init__(self, d_model, length):
        super().__init__()
        steps = torch.arange(length).float().unsqueeze(1)
        rates = torch.exp(-torch.arange(0, d_model, 2) * math.log(10_000) / d_model)
        table = torch.zeros(length, d_model)
        table[:, 0::2] = torch.sin(steps * rates)
        table[:, 1::2] = torch.cos(steps * rates)
        self.register_buffer("pos_embedding", table.unsqueeze(1))

    def forward(self, x):
        return x + self.pos_embedding[: x.size(0)]


class TutorialModel(nn.Module):
    """Sequences first: ids (S, B) and (T, B) to logits (T, B, V)."""

    def __init__(self, sizes, source_size, target_size, length, pad_id, **settings):
        super().__init__()
        width = sizes["d_model"]
        self.transformer = nn.Transformer(**sizes, **settings)
        self.generator = nn.Linear(width, target_size)
        self.src_tok_emb = Embedded(source_size, width)
        self.tgt_tok_emb = Embedded(target_size, width)
        self.positional_encoding = Positions(width, length)
        self.pad_id = pad_id

    def forward(self, source, target):
        causal = torch.ones(len(target), len(target), dtype=torch.bool).triu(1)
        source_pads, target_pads = (source == self.pad_id).T, (target == self.pad_id).T
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

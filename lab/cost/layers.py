"""A small layer of each kind of Table 1, all from (1, n, d) to (1, n, d)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lab.cost.table import BLOCK, KERNEL, WRITTEN
from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.masks import AttentionMask
from transformer.model.scores import attention_scores, attention_weights
from transformer.model.sites import AttentionKind

HEADS = 4


class Lstm(nn.Module):
    """An LSTM of d units."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(d_model, d_model, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """(1, n, d) → (1, n, d)."""
        return self.lstm(x)[0]


class Convolutional(nn.Module):
    """A convolution over ``KERNEL`` positions."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(d_model, d_model, KERNEL, padding=KERNEL // 2)

    def forward(self, x: Tensor) -> Tensor:
        """(1, n, d) → (1, n, d)."""
        return self.convolution(x.transpose(1, 2)).transpose(1, 2)


class Restricted(nn.Module):
    """Self-attention of each block of ``BLOCK`` tokens to itself and to the blocks before and after it."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.attention = multi_head(d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(1, n, d) → (1, n, d)."""
        length = x.shape[1]
        rows = F.pad(x[0], (0, 0, BLOCK, BLOCK + -length % BLOCK))  # an empty block at either end
        blocks = rows.view(-1, BLOCK, x.shape[2])
        near = torch.cat([blocks[:-2], blocks[1:-1], blocks[2:]], dim=1)  # (blocks, 3 BLOCK, d)
        places = torch.arange(-BLOCK, len(rows) - BLOCK).view(-1, BLOCK)
        known = torch.cat([places[:-2], places[1:-1], places[2:]], dim=1)
        mask = AttentionMask((known >= 0) & (known < length))
        return self.attention(blocks[1:-1], near, mask=mask).flatten(0, 1)[None, :length]


class TextbookAttention(nn.Module):
    """Self-attention as the textbook writes it: the n × n weights of every head are in memory."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.attention = multi_head(d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(1, n, d) → (1, n, d)."""
        own = self.attention
        query, key, value = (
            each(x).view(*x.shape[:2], HEADS, -1).transpose(1, 2)
            for each in (own.q_proj, own.k_proj, own.v_proj)
        )
        output = attention_weights(attention_scores(query, key)) @ value
        return own.out_proj(output.transpose(1, 2).flatten(2))


def multi_head(d_model: int) -> MultiHeadAttention:
    """Self-attention of this package, which runs fused."""
    sizes = {"vocab_size": 8, "d_model": d_model, "d_ff": d_model, "n_heads": HEADS}
    config = TransformerConfig.from_dict({**sizes, "n_encoder_layers": 1, "n_decoder_layers": 1})
    return MultiHeadAttention(config, AttentionKind.ENCODER, 0)


def layers(d_model: int) -> dict[str, nn.Module]:
    """A layer of each kind, by the names of ``table``, in evaluation mode."""
    made: dict[str, nn.Module] = {
        "attention": multi_head(d_model),
        WRITTEN: TextbookAttention(d_model),
        "recurrent": Lstm(d_model),
        "convolutional": Convolutional(d_model),
        "restricted": Restricted(d_model),
    }
    return {name: layer.eval().requires_grad_(False) for name, layer in made.items()}

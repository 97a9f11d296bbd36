"""Small models with random weights, large enough that attention is far from uniform."""

from __future__ import annotations

import torch

from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer

WIDTHS = {"vocab_size": 40, "d_model": 32, "d_ff": 48, "n_heads": 4}
SIZES = {**WIDTHS, "n_encoder_layers": 2, "n_decoder_layers": 3}


def random_config(**changes: object) -> TransformerConfig:
    """A small config; any field can be given."""
    return TransformerConfig.from_dict({**SIZES, **changes})


def random_model(seed: int = 0, scale: float = 0.3, **changes: object) -> Transformer:
    """A model in ``eval()`` whose every parameter, LayerNorms included, is random."""
    model = Transformer(random_config(**changes)).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        parameter.normal_(std=scale if parameter.dim() > 1 else 0.05, generator=generator)
        if name.endswith("norm.weight"):
            parameter.add_(1.0)
    return model


def random_ids(batch: int, length: int, seed: int = 0, vocab_size: int = 40) -> torch.Tensor:
    """(batch, length) ids of ordinary pieces, none of them special."""
    return torch.randint(4, vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))

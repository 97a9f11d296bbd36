"""Small models with random weights, large enough that attention is far from uniform."""

from typing import TypeVar

import torch
from torch import nn

from transformer.config import (
    EncoderConfig,
    LanguageModelConfig,
    RecurrentConfig,
    TransformerConfig,
)
from transformer.model import EncoderModel, LanguageModel, Transformer
from transformer.recurrent import Recurrent
from transformer.text.tokenizer import Vocabulary
from transformer.translator import Translator

Model = TypeVar("Model", bound=nn.Module)

WIDTHS = {"vocab_size": 40, "d_model": 32, "d_ff": 48, "n_heads": 4}
SIZES = {**WIDTHS, "n_encoder_layers": 2, "n_decoder_layers": 3}


def random_config(**changes: object) -> TransformerConfig:
    """A small config; any field can be given."""
    return TransformerConfig(**{**SIZES, **changes})


def random_model(seed: int = 0, scale: float = 0.3, **changes: object) -> Transformer:
    """A model in ``eval()`` whose every parameter, LayerNorms included, is random."""
    return randomised(Transformer(random_config(**changes)), seed, scale)


def random_translator(
    tokenizer: Vocabulary, norm: str = "pre", positions: str = "sinusoidal"
) -> Translator:
    """A random model far from its start: its biases and LayerNorms too, and a bias of the
    output."""
    sizes = {"vocab_size": tokenizer.vocab_size, "norm": norm, "positions": positions}
    network = random_model(scale=0.6, output_bias=True, **sizes)
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter.normal_(0.4, 0.5)
    return Translator(network.eval(), tokenizer, name="random")


def random_ids(batch: int, length: int, seed: int = 0, vocab_size: int = 40) -> torch.Tensor:
    """(batch, length) ids of ordinary pieces, none of them special."""
    return torch.randint(
        4, vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed)
    )


def random_language_model(seed: int = 0, scale: float = 0.3, **changes: object) -> LanguageModel:
    """A language model in ``eval()`` whose every parameter is random; as ``random_model``."""
    config = LanguageModelConfig(**{**WIDTHS, "n_layers": 2, **changes})
    return randomised(LanguageModel(config), seed, scale)


def random_encoder(seed: int = 0, scale: float = 0.3, **changes: object) -> EncoderModel:
    """An encoder alone in ``eval()`` whose every parameter is random; as ``random_model``."""
    config = EncoderConfig(**{**WIDTHS, "n_layers": 2, "max_positions": 64, **changes})
    return randomised(EncoderModel(config), seed, scale)


def random_recurrent(score: str, seed: int = 0, scale: float = 0.3, **changes: object) -> Recurrent:
    """A recurrent model in ``eval()`` whose every parameter is random; as ``random_model``."""
    sizes = {"vocab_size": 40, "d_model": 32, "reach": 2, **changes}
    return randomised(Recurrent(RecurrentConfig(**sizes, score=score)), seed, scale)


def randomised(model: Model, seed: int = 0, scale: float = 0.3) -> Model:
    """The model in ``eval()`` with random parameters, LayerNorms included."""
    model.eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        parameter.normal_(std=scale if parameter.dim() > 1 else 0.05, generator=generator)
        if name.endswith("norm.weight"):
            parameter.add_(1.0)
    return model

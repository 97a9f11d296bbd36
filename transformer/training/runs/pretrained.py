"""An encoder that begins as a language model: pretraining on text, then training on pairs.

Dai and Le (2015) began sequence models with the weights of a language model; Ramachandran et al. (2017) did
so with both sides of a translator. Here a causal model becomes an encoder that sees both ways, so it must
also learn to use what follows: a confound of every comparison with an encoder from scratch.
"""

from __future__ import annotations

from torch import Tensor

from transformer.model.language_model import LanguageModel
from transformer.model.transformer import Transformer

STACK = "decoder."
"""Beginning of the names of a language model's stack."""


def take_encoder(model: Transformer, source: LanguageModel) -> None:
    """Puts the stack and the embeddings of a language model into the encoder of a translator, in place.

    With shared embeddings the target reads the same table, so its embeddings begin there too. ValueError if
    the two do not have the same sizes and encoding.
    """
    own, taken = model.config, source.config
    for name in (
        "vocab_size",
        "d_model",
        "d_ff",
        "n_heads",
        "norm",
        "norm_by",
        "norm_epsilon",
        "gated",
        "biases",
        "scaled_scores",
        "head_width",
        "activation",
        "positions",
    ):
        here, there = getattr(own, name), getattr(taken, name)
        if here != there:
            raise ValueError(f"The language model has {name} {there}, but the encoder has {here}.")
    if taken.n_layers != own.n_encoder_layers:
        raise ValueError(
            f"The language model has {taken.n_layers} layers, but the encoder has {own.n_encoder_layers}."
        )
    weights: dict[str, Tensor] = source.state_dict()
    stack = {name.removeprefix(STACK): value for name, value in weights.items() if name.startswith(STACK)}
    model.encoder.load_state_dict(stack)
    model.embedding.load_state_dict({"weight": weights["embedding.weight"]})

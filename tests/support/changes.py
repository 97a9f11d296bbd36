"""One intervention of every sort for the small random models, and what each may be used with."""

import torch
from random_models import random_model

from transformer import interventions as do
from transformer.interventions import HeadMeans
from transformer.text.tokenizer import Tokenizer
from transformer.translator import Translator

OTHER = do.run("five six eight nine", [40, 41, 42, 43, 44, 45], [do.scale("encoder", 0, 1, 0.5)])
"""As many source tokens as ``TEXT`` has, and six output tokens."""
TEXT = "one two three four"

TOKENS = {
    "choose": do.choose(2, 50),
    "forbid": do.forbid(7),
    "prefix": do.prefix([60, 61]),
    "edit": do.edit_source(1, 70),
    "drop": do.drop_source(2),
}
INSIDE = {
    "ablate by zero": do.ablate("cross", 1, 2),
    "ablate by mean": do.ablate("decoder", 0, [0, 3], by="mean"),
    "ablate by uniform": do.ablate("decoder", 1, None, by="uniform"),
    "ablate by previous": do.ablate("encoder", 1, 0, by="previous"),
    "ablate by first": do.ablate("cross", 0, [1, 2], by="first"),
    "ablate some rows": do.ablate("decoder", 2, 1, by="previous", rows=[1, 3]),
    "scale": do.scale("encoder", 0, 3, 2.5, rows=[0, 2]),
    "set a row": do.set_row("cross", 2, [0, 1], 1, {0: 0.5, 3: 0.25}),
    "set a row of the decoder": do.set_row("decoder", 0, 1, 2, {0: 0.9}),
    "hide": do.hide(1),
    "forbid cells": do.mask("encoder", forbid=[(0, 1), (None, 3)]),
    "forbid the past": do.mask("decoder", forbid="past", layer=1),
    "hide from later": do.mask("decoder", forbid=[("later", 0), ("later", 2)]),
    "temperature": do.temperature("cross", 0, None, 3.0),
    "unscaled": do.unscaled("encoder", 0, 1),
    "no positions in the encoder": do.no_positions("encoder"),
    "no positions in the decoder": do.no_positions("decoder"),
    "drop a sub-layer": do.drop_sublayer("decoder", 1, "self_attention"),
    "drop a network": do.drop_sublayer("encoder", 0, "feed_forward"),
    "drop a LayerNorm": do.drop_norm("decoder", 0, "cross_attention"),
    "patch embeddings": do.patch(do.embeddings("encoder"), OTHER, {1: 0, 2: 2}),
    "patch a stream": do.patch(do.stream("decoder", 0, "feed_forward"), OTHER, [1, 2]),
    "patch a head": do.patch(do.head_output("cross", 1, 0), OTHER, [0, 3]),
    "patch the encoder's output": do.patch(do.encoder_output(), OTHER, [0]),
}
"""What acts inside the model, while decoding as in a forced pass."""
EVERY = {**TOKENS, **INSIDE}


def changeable(tokenizer: Tokenizer, **config: object) -> Translator:
    """A small random translator that has mean outputs, so that it takes every change."""
    model = random_model(vocab_size=tokenizer.vocab_size, tied_embeddings=False, **config)
    generator = torch.Generator().manual_seed(5)
    outputs = {
        kind: torch.randn(site.n_layers, 4, 8, generator=generator)
        for kind, site in model.config.sites.items()
    }
    return Translator(model, tokenizer, name="changeable", means=HeadMeans(outputs, {}))

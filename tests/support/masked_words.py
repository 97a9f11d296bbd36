"""A small random encoder alone with a vocabulary that has a mask, a text for it, and a change of every
sort."""

from functools import cache
from typing import Any

import torch
from closed_form import ENGLISH, GERMAN
from random_models import random_encoder

from transformer import Translator
from transformer import interventions as do
from transformer.interventions import HeadMeans
from transformer.text.tokenizer import EOS_ID, Tokenizer

TEXT = "one two <mask> four <mask> six"
OTHER = do.run("eight nine <mask> ten five six", None)
CHANGES = {
    "edit": do.edit_source(1, 70),
    "edit into a mask": do.edit_source(2, "<mask>"),
    "edit into an end": do.edit_source(3, EOS_ID),
    "drop": do.drop_source(2),
    "drop the start": do.drop_source(0),
    "drop the end": do.drop_source(16),
    "ablate by zero": do.ablate("encoder", 1, 2),
    "ablate by mean": do.ablate("encoder", 0, [0, 3], by="mean"),
    "ablate by uniform": do.ablate("encoder", 1, None, by="uniform"),
    "ablate by previous": do.ablate("encoder", 1, 0, by="previous"),
    "scale": do.scale("encoder", 0, 3, 2.5, rows=[0, 2]),
    "set a row": do.set_row("encoder", 1, 0, 3, {0: 0.7}),
    "forbid cells": do.mask("encoder", forbid=[(0, 1), (None, 3)]),
    "forbid the past": do.mask("encoder", forbid="past", layer=1),
    "temperature": do.temperature("encoder", 0, None, 3.0),
    "unscaled": do.unscaled("encoder", 0, 1),
    "no positions": do.no_positions("encoder"),
    "drop attention": do.drop_sublayer("encoder", 1, "self_attention"),
    "drop a network": do.drop_sublayer("encoder", 0, "feed_forward"),
    "drop a LayerNorm": do.drop_norm("encoder", 0, "feed_forward"),
    "patch embeddings": do.patch(do.embeddings("encoder"), OTHER, {1: 1, 2: 2}),
    "patch a stream": do.patch(do.stream("encoder", 0, "feed_forward"), OTHER, [1, 2]),
    "patch a head": do.patch(do.head_output("encoder", 0, 0), OTHER, [0, 3]),
    "patch the output": do.patch(do.encoder_output(), OTHER, [7]),
    "patch from a changed run": do.patch(
        do.head_output("encoder", 0, 0),
        do.run("five <mask>", (), [do.scale("encoder", 0, 1, 0.5)]),
        [1],
    ),
}


@cache
def vocabulary() -> Tokenizer:
    """Number words, bytes for everything else, and a mask."""
    lines = [" ".join(ENGLISH), " ".join(GERMAN[:-1])] * 30
    return Tokenizer.train(lines, 330, at_most=True, masks=True)


def encoder(**changes: Any) -> Translator:
    """A small random model with mean outputs, so that it takes every change."""
    tokenizer = vocabulary()
    sizes = {"vocab_size": tokenizer.vocab_size, "mask_id": tokenizer.source.ids["<mask>"]}
    usual = {"output_bias": True, "output_transform": True}
    model = random_encoder(**{**sizes, **usual, **changes})
    generator = torch.Generator().manual_seed(5)
    means = {"encoder": torch.randn(2, 4, 8, generator=generator)}
    return Translator(model, tokenizer, name="encoder", means=HeadMeans(means, {}))

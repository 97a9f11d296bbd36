"""What a whole source word did: all its pieces taken away for every query, in every head of one layer or all.

The word stays in the text, so that no other token moves; the text without the word is another question
(``Effects.left_out``).
"""

from __future__ import annotations

import numpy as np

from explorer.lenses.measures.effect import Cut, Effects, Way
from explorer.lenses.measures.stream import Tell, UnmeasuredError, recorded, silent
from explorer.lenses.words.groups import reading_groups
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.text.words import Group
from transformer.translator import Translator
from transformer.view import Array


def source_words(run: Translation) -> tuple[Group, ...]:
    """The source as words; the last is `</s>`."""
    last = len(run.source_tokens) - 1
    return *reading_groups(run.source_tokens[:last]), Group(last, last + 1, run.source_tokens[last])


def word_effect(
    translator: Translator,
    run: Translation,
    kind: AttentionKind | str = "cross",
    way: Way = "hidden",
    layer: int | None = None,
    tell: Tell = silent,
) -> Array:
    """Δ log p of every token without each source word: all its pieces, for every query, in every head.

    Δ log p = log p(y | without the word) − log p(y): below zero, the token needed the word.

    Args:
        translator: The model of the run.
        run: A recorded run without changes.
        kind: "cross" takes the word from the decoder, "encoder" from the other words of the source.
        way: "hidden" (its score is −∞), "zeroed" (its value is 0) or "mean" (the mean of the values seen).
        layer: The layer, from 0; None for every layer.
        tell: Hears what share is done.

    Returns:
        (steps, words) float32, in nats; the words are those of ``source_words``.

    Raises:
        UnmeasuredError: The kind has no source words, the model is no Transformer, or something was changed.
        IndexError: There is no such layer.
    """
    recorded(run)
    if (kind := AttentionKind(kind)) not in (AttentionKind.ENCODER, AttentionKind.CROSS):
        raise UnmeasuredError("Source words are keys of the encoder and of cross-attention only.")
    layers = run.config.sites[kind].n_layers
    if layer is not None and not 0 <= layer < layers:
        raise IndexError(f"There is no layer {layer}; there are {layers}, from 0.")
    cuts = [(Cut(kind, tuple(word.indices), way, layer),) for word in source_words(run)]
    found: Array = np.asarray(Effects(translator, run).of(cuts, tell).T.numpy(), dtype=np.float32)
    return found

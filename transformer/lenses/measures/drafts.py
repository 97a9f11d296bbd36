"""DecoderLens: the decoder reads the encoder's stream as it is after each layer (Langedijk et al. 2023).

With pre-norm, the encoder's final LayerNorm is applied to each. The draft after the last layer is the
translation itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor

from transformer.decode.request import TranslationRequest
from transformer.decode.search import decode
from transformer.decode.steps import finish
from transformer.lenses.inside.logit_lens import logit_lens
from transformer.lenses.inside.parts import embedding_trace
from transformer.lenses.measures.stream import Tell, silent, transformer_run
from transformer.model.network import Network
from transformer.model.transformer import Transformer
from transformer.model.watching.observer import Bystander
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.trace.report import AuditReport, Check
from transformer.trace.view import Array

LONGER = 8
"""Most tokens by which a draft may be longer than the translation."""


@dataclass(frozen=True)
class Draft:
    """Translation by the decoder from an unfinished encoding."""

    layers: int  # number of encoder layers that the stream has passed; 0 at the encoder's input
    text: str
    tokens: tuple[str, ...]


class _Memory(Bystander):
    def __init__(self, memory: Tensor) -> None:
        self._memory = memory

    def memory(self, own: Tensor) -> Tensor:
        return self._memory.to(own)


def drafts(
    translator: Translator,
    run: Translation,  # made with ``capture=Capture(residual=True)``
    tell: Tell = silent,  # hears what share is done
) -> tuple[Draft, ...]:
    """Greedy translations from the encoder's stream at its input and after each layer.

    DecoderLens (Langedijk et al. 2023). The decoder was trained to read the last stream alone.

    Returns:
        A draft for the input and one for each encoder layer; the last is the translation, if that was greedy.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer.
    """
    transformer_run(run)
    model = translator.model
    assert isinstance(model, Transformer)
    streams = [embedding_trace(run, "encoder").input]
    streams += [run.stream(end).output for end in model.config.stacks["encoder"].ends()]
    ids, device = [*translator.ids(run.source_text), translator.config.eos_id], translator.device
    source, encoder = torch.tensor([ids], device=device), model.encoder
    with torch.inference_mode():
        found = [encoder.final_norm(each.to(device, encoder.dtype)) for each in streams]
        limit = min(translator.limit(source.shape[1]), len(run.steps) + LONGER)
        made = []
        for layer, memory in enumerate(found):
            made.append(_draft(translator, source, memory, layer, limit))
            tell((layer + 1) / len(found))
        return tuple(made)


def _draft(translator: Translator, source: Tensor, memory: Tensor, layers: int, limit: int) -> Draft:
    request = TranslationRequest(translator.model, source, _Memory(memory[None]))
    (done,) = finish(decode(request, [limit], rules=translator.rules))
    return Draft(layers, translator.text(done.token_ids), translator.pieces(done.token_ids))


def draft_audit(run: Translation, found: Sequence[Draft]) -> AuditReport | None:
    """Check that the last draft is the translation, token by token; None if that was not written greedily."""
    if run.method != "greedy":
        return None
    pairs = zip_longest(found[-1].tokens, run.target_tokens)
    missed = sum(draft != written for draft, written in pairs)
    check = Check("tokens of the last draft that are not the translation's", missed, 0)
    told = "The last draft is the translation, token by token; the others are not checked."
    return AuditReport((check,), told=(told,), claim="the last is the translation")


_TOP = "The top row is the distribution from which the model wrote; the rows below have no such check."


@dataclass(frozen=True, eq=False)
class DecoderLens:
    """The logit lens at every step: what the output matrix reads from the stream after each decoder layer."""

    best: tuple[tuple[str, ...], ...]  # (layers + 1, steps) the most probable token
    probability: Array  # (layers + 1, steps) of that token
    chosen: Array  # (layers + 1, steps) of the token that was written
    audit: AuditReport  # whether the last row is the model's own distribution


def decoder_lens(model: Network, run: Translation, translator: Translator) -> DecoderLens:
    """The logit lens (nostalgebraist 2020) of the whole translation.

    Returns:
        Tokens and probabilities (layers + 1, steps); the last row is the model's own distribution.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model is no Transformer.
    """
    transformer_run(run)
    columns, checks = zip(*(logit_lens(model, run, step, 1) for step in range(len(run.steps))), strict=True)
    rows = list(zip(*columns, strict=True))
    worst = max((check for each in checks for check in each), key=lambda check: check.value)
    return DecoderLens(
        tuple(translator.pieces([each.best[0].token_id for each in row]) for row in rows),
        np.array([[each.best[0].probability for each in row] for row in rows], dtype=np.float32),
        np.array([[each.chosen for each in row] for row in rows], dtype=np.float32),
        AuditReport((worst,), told=(_TOP,), claim="top row verified"),
    )

"""Several texts translated as one padded batch, each with its padding, its masks and all its heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.attention import token_mask
from transformer.audit import audit, head_view
from transformer.config import AttentionKind, ModelConfig, Place
from transformer.decode.request import TranslationRequest
from transformer.decode.search import decode
from transformer.decode.steps import Hypothesis, finish
from transformer.hooks import Hooks
from transformer.runs.translator import Translator
from transformer.runs.wording import InputError
from transformer.text.words import PAD
from transformer.trace import AttentionTrace, Capture, TokenTrace, trace_of
from transformer.training.data import pad
from transformer.view import AuditReport, BoolArray, HeadLabels, HeadView, Window, read_only, site_labels


@dataclass(frozen=True, eq=False)
class BatchEntry:
    """One sentence of a padded batch, as the model saw it."""

    source_tokens: tuple[str, ...]  # pieces with ``<pad>`` up to the longest source
    decoder_input_tokens: tuple[str, ...]  # what the decoder read, with ``<pad>`` up to the longest target
    target_tokens: tuple[str, ...]  # what the decoder predicted, padded likewise
    source_mask: BoolArray  # (source,) bool, True for tokens
    target_mask: BoolArray  # (target,) bool, True for tokens of the decoder input
    attention: AttentionTrace  # the trace of this sentence
    model: str  # name of the model
    config: ModelConfig  # the model's config

    def head(
        self, kind: AttentionKind | str, layer: int, head: int, window: Window | None = None
    ) -> HeadView:
        """One head, with the padding in its mask; raises the errors of ``Translation.head``."""
        kind = AttentionKind(kind)
        provenance = self.model, self.config.norm
        return head_view(self.attention, (kind, layer, head), self.labels(kind), provenance, window)

    def labels(self, kind: AttentionKind | str) -> HeadLabels:
        """The tokens along the maps of one kind, padding included."""
        site = self.config.sites[AttentionKind(kind)]
        return site_labels(site, self.source_tokens, self.decoder_input_tokens, self.target_tokens)


def run_batch(translator: Translator, texts: Sequence[str]) -> tuple[BatchEntry, ...]:
    """Translates texts greedily in one padded batch, then records one teacher-forced pass over all of them.

    The decoder runs as in training: all rows at once under the causal mask. This mask already hides the
    padding at the end of a target; in cross-attention the padding of the source is masked.

    Raises:
        InputError: A text is empty or too long.
    """
    config = translator.config
    sources = [(*translator.ids(text), config.eos_id) for text in texts]
    src_ids = pad(sources, config.pad_id).to(translator.device)
    recorder = Hooks(Capture().parts)
    request = TranslationRequest(translator.model, src_ids, recorder)
    limits = [translator.limit(len(row)) for row in sources]
    rules, *others = [translator.rules_for(text) for text in texts]
    if any(each != rules for each in others):
        raise InputError("The texts of a batch ask for several languages; let all of them ask for one.")
    hypotheses = finish(decode(request, limits, rules=rules))
    written = pad([each.token_ids for each in hypotheses], config.pad_id).to(translator.device)
    inputs = [(config.bos_id, *each.token_ids[:-1]) for each in hypotheses]
    read = pad(inputs, config.pad_id).to(translator.device)
    replayed = _replay(translator, request, read, written, recorder)
    return tuple(
        _entry(translator, recorder, row, (src_ids[row], read[row], written[row]), hypothesis, log_probs)
        for row, (hypothesis, log_probs) in enumerate(zip(hypotheses, replayed, strict=True))
    )


@torch.inference_mode()
def _replay(
    translator: Translator, request: TranslationRequest, read: Tensor, written: Tensor, recorder: Hooks
) -> list[list[float]]:
    """Log-probability of every output token, (batch, target), from one recorded pass."""
    model = translator.model
    features = model.decode(read, request.memory, request.src_padding, hooks=recorder)
    distribution = model.logits(features).float().log_softmax(-1)
    known = written.clamp(max=translator.config.n_target_pieces - 1)  # padding may be no piece
    values: list[list[float]] = distribution.gather(2, known[..., None])[..., 0].tolist()
    return values


def _entry(
    translator: Translator,
    recorder: Hooks,
    row: int,
    ids: tuple[Tensor, Tensor, Tensor],
    hypothesis: Hypothesis,
    log_probs: list[float],
) -> BatchEntry:
    decoded = hypothesis.log_probs

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        return audit(trace, places, decoded, tuple(log_probs[: len(decoded)]), translator.model)

    source_mask = read_only(token_mask(ids[0], translator.config.pad_id).cpu()).astype(bool)
    target_mask = np.arange(len(ids[1])) < len(decoded)
    source = _padded(translator.source_pieces(ids[0].tolist()), source_mask)
    read, written = (_padded(translator.pieces(each.tolist()), target_mask) for each in ids[1:])
    config, sides = translator.config, ("encoder", "decoder", "written")
    named = zip(sides, ids, (source, read, written), strict=True)
    tokens = {side: TokenTrace(tuple(each.tolist()), pieces) for side, each, pieces in named}
    trace = trace_of(recorder, config, auditor, row, tokens=tokens)
    assert trace is not None
    return BatchEntry(source, read, written, source_mask, target_mask, trace, translator.name, config)


def _padded(pieces: Sequence[str], mask: BoolArray) -> tuple[str, ...]:
    return tuple(piece if token else PAD for piece, token in zip(pieces, mask, strict=True))

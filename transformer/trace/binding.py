"""Binds each recording to its place: a second pass of the model, with the recordings as answers.

Each attention of a trace may be consistent by itself even if two heads, two layers or two steps have changed
places. So the audit also asks whether the recordings fit together: if every attention returns its recorded
output, the model must compute at every place the queries, keys and values that were recorded there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from transformer.model.network import Network
from transformer.model.watching.observer import Attended, AttentionInputs, Bystander
from transformer.trace.records import AttentionTrace, LayerTrace
from transformer.trace.report import PLACES, Check
from transformer.trace.stream import SMALLEST_SCALE


@torch.inference_mode()
def audit_places(
    trace: AttentionTrace,  # what was recorded
    model: Network,  # the model that ran
    limit: float,  # largest difference, as a share of the largest number
) -> list[Check]:
    """Compares the queries, keys and values at every place of the model with those recorded there.

    Returns:
        One check; none if the residual stream was changed, which the audit of the stream proves. A model
        without sub-layers has no stream, and its changed inputs and memory are answers like all others.
    """
    stream = any(stack.passed() for stack in model.config.stacks.values())
    if stream and any(value.needs_stream for value in trace.interventions):
        return []
    answers = _Answers(trace)
    device = model.embedding.weight.device
    entered = {side: each.input[None].to(device) for side, each in trace.embeddings.items()}
    padding = _source_padding(trace, model)
    model.through(entered, answers, None if padding is None else padding[None].to(device))
    return [Check(PLACES, answers.worst, limit)]


def _source_padding(trace: AttentionTrace, model: Network) -> Tensor | None:
    """(source,) bool, True for tokens; None if nothing is padded."""
    sites = (site for site in model.config.sites.values() if site.key_side == "encoder")
    return next((trace.layer(site.kind, 0).key_padding for site in sites), None)


class _Answers(Bystander):
    """Answers every attention with the output that was recorded under its name.

    Attributes:
        worst: The largest difference between what the model computed and what was recorded.
    """

    def __init__(self, trace: AttentionTrace) -> None:
        self._trace = trace
        self.worst = 0.0

    def attention(self, asked: AttentionInputs) -> Attended:
        """The recorded output."""
        record = self._trace.layer(asked.kind, asked.layer)
        for now, then in _pairs(asked, record):
            self._compare(now, then)
        return Attended(record.output[None].to(asked.query))

    def memory(self, own: Tensor) -> Tensor:
        """The memory that was used, if it was recorded."""
        record = self._trace.memory
        if record is None:
            return own
        self._compare(own[0], record.used if record.own is None else record.own)
        return record.used[None].to(own)

    def _compare(self, now: Tensor, then: Tensor) -> None:
        difference = _difference(now.float().cpu(), then)
        self.worst = difference if difference != difference else max(self.worst, difference)


def _pairs(asked: AttentionInputs, record: LayerTrace) -> Iterator[tuple[Tensor, Tensor]]:
    """Comparison of a computed pass with its record."""
    yield asked.query[0], record.query
    yield asked.key[0], record.key
    yield asked.value[0], record.value
    recorded = record.score.arrays()
    for name, array in asked.score.arrays().items():
        yield array, recorded.get(name, torch.empty(0))
    if asked.focus is not None:
        yield asked.focus.centres[0, 0], torch.empty(0) if record.focus is None else record.focus.centres


def _difference(now: Tensor, then: Tensor) -> float:
    if now.shape != then.shape:
        return math.inf
    scale = max(SMALLEST_SCALE, float(then.abs().max()))
    return float((now - then).abs().max()) / scale

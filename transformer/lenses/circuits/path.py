"""One path patched: what a head reads of an earlier head directly, and nothing else, is changed.

A writer's output stays in the stream for everybody; only where one reader makes its queries, its keys or
its values, the writer's part of the stream is another one (Elhage et al. 2021; "path patching", Wang et al.
2023). The reader's LayerNorm is computed anew, with its own σ. Direct means: not through what layers between
them made of the writer's output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from transformer.lenses.inside.weights import multi_head, output_rows
from transformer.lenses.measures.stream import UnmeasuredError, recorded
from transformer.model.language_model import LanguageModel
from transformer.model.sites import AttentionKind, Head
from transformer.model.watching.observer import Attended, AttentionInputs, Bystander
from transformer.runs.translation import Translation
from transformer.trace.view import Array

KIND = AttentionKind.DECODER
Into = Literal["query", "key", "value"]


@dataclass(frozen=True, eq=False)
class Patched:
    """Result of a run with one path patched."""

    weights: Array  # (queries, keys) of the reader
    log_probs: Array  # (target,) of the text's tokens, in nats


def written_by(model: LanguageModel, run: Translation, writer: Head) -> Tensor:
    """(length, d_model) what a head adds to the stream, float64; b_O belongs to no head.

    UnmeasuredError if something was changed in the run; IndexError if there is no such head.
    """
    layer, head = writer
    record = recorded(run).layer(KIND, layer, head)
    return record.output[head].double() @ output_rows(model, KIND, layer)[0][head]


def patched(
    model: LanguageModel,
    run: Translation,
    writer: Head,
    reader: Head,
    into: Into = "key",
    instead: Tensor | None = None,
) -> Patched:
    """Runs a text again with one path patched.

    Args:
        model: A pre-norm language model.
        run: The text, made with ``capture=Capture(residual=True)``, without changes.
        writer: The earlier head.
        reader: The later head.
        into: What the reader makes of the stream: its queries, its keys or its values.
        instead: (length, d_model) what the reader finds in the place of the writer's output; None for zeros.

    Raises:
        NotCapturedError: The residual stream was not recorded.
        UnmeasuredError: The model has post-norm, or something was changed in the run.
        IndexError: There is no such head.
        ValueError: The writer does not stand in an earlier layer.
    """
    recorded(run)
    if model.config.norm != "pre":
        raise UnmeasuredError(
            "A path is patched in pre-norm models: there, a head's output stays in the stream."
        )
    if not 0 <= writer[0] < reader[0]:
        raise ValueError("The writer stands in an earlier layer than the reader.")
    recorded(run).layer(KIND, *reader)
    own = written_by(model, run, writer)
    watched = _Path(reader, into, _made(model, run, reader, into, -own if instead is None else instead - own))
    device = model.embedding.weight.device
    read = torch.tensor([[model.config.bos_id, *run.target_ids[:-1]]], device=device)
    with torch.inference_mode():
        features = model.features(read, observer=watched)
        table = model.logits(features)[0].float().log_softmax(-1)
    chosen = table.gather(-1, torch.tensor(run.target_ids, device=device)[:, None])[:, 0]
    assert watched.weights is not None
    return Patched(watched.weights.cpu().numpy(), chosen.cpu().numpy())


def _made(model: LanguageModel, run: Translation, reader: Head, into: Into, change: Tensor) -> Tensor:
    """(length, d_head) queries, keys or values that the reader makes of the changed stream."""
    layer, head = reader
    sublayer = model.config.sites[KIND].sublayer(layer)
    attention, stack = multi_head(model, KIND, layer), model.stack("decoder")
    linear = {"query": attention.q_proj, "key": attention.k_proj, "value": attention.v_proj}[into]
    stream = (run.stream(sublayer).stream.double() + change).to(linear.weight)
    with torch.inference_mode():
        projected = linear(model.residual(sublayer).norm(stream))
    one = projected.view(len(stream), attention.n_heads, -1)[:, head]
    return one if into == "value" else stack.positions.rotate(one[None, None])[0, 0]


class _Path(Bystander):
    def __init__(self, reader: Head, into: Into, vectors: Tensor) -> None:
        (self._layer, self._head), self._into, self._vectors = reader, into, vectors
        self.weights: Tensor | None = None

    def attention(self, asked: AttentionInputs) -> Attended:
        if asked.layer != self._layer:
            return super().attention(asked)
        query, key, value = asked.query.clone(), asked.key.clone(), asked.value.clone()
        own = {"query": query, "key": key, "value": value}[self._into]
        own[:, self._head] = self._vectors.to(own)
        kind, layer, mask, rule, score = asked.kind, asked.layer, asked.mask, asked.rule, asked.score
        changed = AttentionInputs(kind, layer, query, key, value, mask, rule, score)
        seen, scores = changed.visible(), changed.scores()[0, self._head]
        if seen is not None:
            scores = scores.masked_fill(~seen[0, 0], -torch.inf)
        self.weights = scores.softmax(-1)
        return super().attention(changed)

"""Records one request while the model runs, and what was changed in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.interventions.acting import Change, layer_changes
from transformer.model.encodings.biases import BiasRule
from transformer.model.masks import AttentionMask, Focus
from transformer.model.norms import StreamNorm
from transformer.model.scores import ScoreRule
from transformer.model.sites import AttentionKind, Place, Side, Sublayer
from transformer.model.watching.observer import (
    UNWATCHED,
    Attended,
    AttentionInputs,
    Entered,
    Observer,
    Passed,
)
from transformer.trace.records import (
    AttentionTrace,
    Auditor,
    EmbeddingTrace,
    LayerTrace,
    MemoryTrace,
    ResidualTrace,
    TokenTrace,
)


@dataclass(frozen=True)
class Capture:
    """Parts of a run to record.

    Attributes:
        attention: Queries, keys, values, outputs, masks and embeddings.
        residual: Also every sub-layer's input and output, and the residual stream around it.
    """

    attention: bool = True
    residual: bool = False


class _LayerRecord:
    """The recording of one attention sub-layer so far, for the whole batch."""

    def __init__(self, mask: AttentionMask, bias: BiasRule | None, score: ScoreRule) -> None:
        self.mask, self.bias, self.score = mask, bias, score
        self.focus: list[Focus] = []
        self.queries: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.own_outputs: list[Tensor] = []
        self.replaced: list[tuple[Tensor, Tensor]] = []
        self.key_value: tuple[Tensor, Tensor]

    def add(self, asked: AttentionInputs, found: Attended) -> None:
        """Keeps new queries and outputs, and the latest keys and values."""
        self.queries.append(asked.query)
        self.outputs.append(found.output)
        self.key_value = asked.key, asked.value
        if asked.focus is not None:
            self.focus.append(asked.focus)
        if found.own is not None:
            self.own_outputs.append(found.own)
        if found.replaced is not None:
            self.replaced.append(found.replaced)

    def trace(self, row: int) -> LayerTrace:
        key, value = (_own(tensor[row]) for tensor in self.key_value)
        padding = self.mask.key_padding
        rows, weights = self._replaced(row, key.shape[1])
        return LayerTrace(
            query=_joined(self.queries, row, dim=1),
            key=key,
            value=value,
            output=_joined(self.outputs, row, dim=1),
            key_padding=None if padding is None else padding[row].cpu(),
            causal=self.mask.causal,
            bias=None if self.bias is None else self.bias.kept(),
            replaced_rows=rows,
            replaced_weights=weights,
            own_output=_joined(self.own_outputs, row, dim=1) if self.own_outputs else None,
            score=self.score.kept(),
            focus=self._focus(row),
        )

    def _focus(self, row: int) -> Focus | None:
        if not self.focus:
            return None
        return Focus(_joined([each.centres for each in self.focus], row, dim=1)[0], self.focus[0].reach)

    def _replaced(self, row: int, keys: int) -> tuple[Tensor | None, Tensor | None]:
        if not self.replaced:
            return None, None
        rows = torch.cat([rows[row] for rows, _ in self.replaced], dim=1).cpu()
        padded = [F.pad(w[row], (0, keys - w.shape[-1])) for _, w in self.replaced]
        return rows, torch.cat(padded, dim=1).float().cpu()


class Recorder:
    """Records one request; passed along with the KV cache, and never shared."""

    def __init__(
        self,
        capture: Capture,  # what to record
        within: Observer = UNWATCHED,  # the observer that answers the model; by default nothing is changed
        changes: Sequence[Change] = (),  # the interventions that it brings, for the trace
    ) -> None:
        self._capture, self._within, self._changes = capture, within, tuple(changes)
        self._layers: dict[Place, _LayerRecord] = {}
        self._embeddings: dict[Side, list[tuple[Entered, Tensor]]] = {}
        self._updates: dict[Sublayer, list[Tensor]] = {}
        self._residuals: dict[Sublayer, list[tuple[Passed, Tensor]]] = {}
        self._memory: tuple[Tensor, Tensor] | None = None
        # Questions about which nothing is kept go to the observer within; the model asks them most often.
        self.encoding, self.norm = within.encoding, within.norm
        if not capture.residual:
            self.update, self.residual = within.update, within.residual  # type: ignore[method-assign]

    def embedding(self, entered: Entered) -> Tensor:
        """The input of a stack; keeps it with the terms of its sum."""
        used = self._within.embedding(entered)
        if self._capture.attention:
            self._embeddings.setdefault(entered.side, []).append((entered, used))
        return used

    def attention(self, asked: AttentionInputs) -> Attended:
        """The output of an attention sub-layer; keeps what it was computed from."""
        found = self._within.attention(asked)
        if self._capture.attention:
            place = asked.kind, asked.layer
            if place not in self._layers:
                self._layers[place] = _LayerRecord(asked.mask, asked.rule, asked.score)
            self._layers[place].add(asked, found)
        return found

    def update(self, sublayer: Sublayer, own: Tensor) -> Tensor:
        """The update of a sub-layer; keeps its own update if another one is added."""
        used = self._within.update(sublayer, own)
        if used is not own:
            self._updates.setdefault(sublayer, []).append(own)
        return used

    def residual(self, passed: Passed) -> Tensor:
        """The stream after a sub-layer; keeps the stream around it."""
        used = self._within.residual(passed)
        self._residuals.setdefault(passed.sublayer, []).append((passed, used))
        return used

    def memory(self, own: Tensor) -> Tensor:
        """The encoder's output, which it keeps."""
        used = self._within.memory(own)
        if self._capture.residual:
            self._memory = own, used
        return used

    def trace(
        self,
        auditor: Auditor,
        row: int = 0,
        tokens: Mapping[str, TokenTrace] | None = None,  # what was read and written
    ) -> AttentionTrace | None:
        """The recording of one row of the batch; None if nothing was to be recorded."""
        if not self._capture.attention:
            return None
        types = {record.queries[0].dtype for record in self._layers.values()}
        types |= {entered.tokens.dtype for parts in self._embeddings.values() for entered, _ in parts}
        dtype = max(types, key=lambda dtype: torch.finfo(dtype).eps)
        trace = AttentionTrace(
            layers={kind: self._kind(kind, row) for kind in dict.fromkeys(kind for kind, _ in self._layers)},
            embeddings={side: _embedding_trace(parts, row) for side, parts in self._embeddings.items()},
            residuals={name: self._residual_trace(name, row) for name in self._residuals},
            dtype=dtype,
            auditor=auditor,
            memory=None if self._memory is None else _memory_trace(*self._memory, row),
            tokens=tokens or {},
        )
        return changed(trace, self._changes) if self._changes else trace

    def _kind(self, kind: AttentionKind, row: int) -> tuple[LayerTrace, ...]:
        layers = sorted(layer for recorded, layer in self._layers if recorded == kind)
        return tuple(self._layers[kind, layer].trace(row) for layer in layers)

    def _residual_trace(self, sublayer: Sublayer, row: int) -> ResidualTrace:
        parts, own = self._residuals[sublayer], self._updates.get(sublayer)
        return ResidualTrace(
            stream=_joined([passed.stream for passed, _ in parts], row, dim=0),
            read=_joined([passed.read for passed, _ in parts], row, dim=0),
            update=_joined([passed.update for passed, _ in parts], row, dim=0),
            output=_joined([used for _, used in parts], row, dim=0),
            own_update=None if own is None else _joined(own, row, dim=0),
            own_output=_before([(passed.output, used) for passed, used in parts], row),
        )


def changed(trace: AttentionTrace, changes: Sequence[Change]) -> AttentionTrace:
    """The trace with what was changed in its run, each layer with its own changes as rules."""
    layers = {
        kind: tuple(
            replace(record, changes=layer_changes(changes, kind, layer, record.shape[0]))
            for layer, record in enumerate(records)
        )
        for kind, records in trace.layers.items()
    }
    return replace(trace, layers=layers, changes=tuple(changes))


def _own(tensor: Tensor) -> Tensor:
    return tensor.float().cpu().clone(memory_format=torch.contiguous_format)


def _joined(parts: Sequence[Tensor], row: int, dim: int) -> Tensor:
    if len(parts) == 1:
        return _own(parts[0][row])
    return torch.cat(list(parts), dim=dim + 1)[row].float().cpu()


def _before(pairs: Sequence[tuple[Tensor, Tensor]], row: int) -> Tensor | None:
    """The value before a change, (length, d_model); None if nothing was changed."""
    if all(own is used for own, used in pairs):
        return None
    return _joined([own for own, _ in pairs], row, dim=0)


def _embedding_trace(parts: Sequence[tuple[Entered, Tensor]], row: int) -> EmbeddingTrace:
    encodings = [entered.positions for entered, _ in parts if entered.positions is not None]
    return EmbeddingTrace(
        tokens=_joined([entered.tokens for entered, _ in parts], row, dim=0),
        positions=torch.cat(encodings).float().cpu() if encodings else None,
        input=_joined([used for _, used in parts], row, dim=0),
        own_input=_before([(entered.total, used) for entered, used in parts], row),
        norm=norm if isinstance(norm := parts[0][0].norm, StreamNorm) else None,
    )


def _memory_trace(own: Tensor, used: Tensor, row: int) -> MemoryTrace:
    return MemoryTrace(_own(used[row]), None if used is own else _own(own[row]))

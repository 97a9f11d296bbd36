"""Records one request's attention while the model runs, fused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.model.encodings.biases import BiasRule
from transformer.model.masks import AttentionMask
from transformer.model.sites import AttentionKind, Place, Side, Sublayer
from transformer.model.watching.hooks import Hook
from transformer.model.watching.observer import HookCarrier
from transformer.trace.records import AttentionTrace, Auditor, EmbeddingTrace, LayerTrace, ResidualTrace


@dataclass(frozen=True)
class Capture:
    """What to record.

    Attributes:
        attention: Queries, keys, values, outputs, masks and embeddings.
        residual: Also every sub-layer's input and output, and the residual stream around it.
    """

    attention: bool = True
    residual: bool = False


class _LayerRecord:
    """The recording of one attention sub-layer so far, for the whole batch."""

    def __init__(self) -> None:
        self.queries: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.replaced: list[tuple[Tensor, Tensor]] = []
        self.key_value: tuple[Tensor, Tensor]
        self.mask: AttentionMask
        self.bias: BiasRule | None = None

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
        )

    def _replaced(self, row: int, keys: int) -> tuple[Tensor | None, Tensor | None]:
        if not self.replaced:
            return None, None
        rows = torch.cat([rows[row] for rows, _ in self.replaced], dim=1).cpu()
        padded = [F.pad(w[row], (0, keys - w.shape[-1])) for _, w in self.replaced]
        return rows, torch.cat(padded, dim=1).float().cpu()


class Recorder(HookCarrier):
    """Records one request; passed along with the KV cache, and never shared.

    Args:
        capture: What to record.
        hooks: Interventions.
    """

    def __init__(self, capture: Capture, hooks: Sequence[Hook] = ()) -> None:
        super().__init__(hooks)
        self._capture = capture
        self._layers: dict[Place, _LayerRecord] = {}
        self._embeddings: dict[Side, list[tuple[Tensor, Tensor | None, Tensor]]] = {}
        self._residuals: dict[Sublayer, list[tuple[Tensor, ...]]] = {}

    def attention(
        self,
        kind: AttentionKind,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        output: Tensor,
        mask: AttentionMask,
        bias: BiasRule | None,
        replaced: tuple[Tensor, Tensor] | None,
    ) -> None:
        """Keeps new queries and outputs (batch, heads, queries, d_head), and the latest keys and values."""
        if not self._capture.attention:
            return
        record = self._layers.get((kind, layer))
        if record is None:
            record = self._layers[kind, layer] = _LayerRecord()
            record.mask, record.bias = mask, bias
        record.queries.append(query)
        record.outputs.append(output)
        record.key_value = key, value
        if replaced is not None:
            record.replaced.append(replaced)

    def embedding(self, side: Side, tokens: Tensor, positions: Tensor | None, total: Tensor) -> None:
        """Keeps embeddings and the input (batch, new, d_model), and the encoding (new, d_model) between."""
        if self._capture.attention:
            self._embeddings.setdefault(side, []).append((tokens, positions, total))

    def residual(
        self, sublayer: Sublayer, stream: Tensor, read: Tensor, update: Tensor, output: Tensor
    ) -> None:
        """Keeps the stream around a sub-layer, each tensor (batch, new, d_model)."""
        if self._capture.residual:
            self._residuals.setdefault(sublayer, []).append((stream, read, update, output))

    def trace(self, auditor: Auditor, row: int = 0) -> AttentionTrace | None:
        """The recording of one row of the batch; None if nothing was to be recorded."""
        if not self._capture.attention:
            return None
        types = {record.queries[0].dtype for record in self._layers.values()}
        dtype = max(types, key=lambda dtype: torch.finfo(dtype).eps)
        return AttentionTrace(
            layers={kind: self._kind(kind, row) for kind in dict.fromkeys(kind for kind, _ in self._layers)},
            embeddings={side: _embedding_trace(parts, row) for side, parts in self._embeddings.items()},
            residuals={name: _residual_trace(parts, row) for name, parts in self._residuals.items()},
            dtype=dtype,
            auditor=auditor,
        )

    def _kind(self, kind: AttentionKind, row: int) -> tuple[LayerTrace, ...]:
        layers = sorted(layer for recorded, layer in self._layers if recorded == kind)
        return tuple(self._layers[kind, layer].trace(row) for layer in layers)


def _own(tensor: Tensor) -> Tensor:
    return tensor.float().cpu().clone(memory_format=torch.contiguous_format)


def _joined(parts: Sequence[Tensor], row: int, dim: int) -> Tensor:
    if len(parts) == 1:
        return _own(parts[0][row])
    return torch.cat(list(parts), dim=dim + 1)[row].float().cpu()


def _embedding_trace(parts: Sequence[tuple[Tensor, Tensor | None, Tensor]], row: int) -> EmbeddingTrace:
    encodings = [positions for _, positions, _ in parts if positions is not None]
    return EmbeddingTrace(
        tokens=_joined([tokens for tokens, _, _ in parts], row, dim=0),
        positions=torch.cat(encodings).float().cpu() if encodings else None,
        input=_joined([total for _, _, total in parts], row, dim=0),
    )


def _residual_trace(parts: Sequence[tuple[Tensor, ...]], row: int) -> ResidualTrace:
    return ResidualTrace(*(_joined([part[i] for part in parts], row, dim=0) for i in range(4)))

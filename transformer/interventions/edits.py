"""Interventions at work: each becomes edits of the values that a model names (``transformer.hooks``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer import interventions as do
from transformer.config import ModelConfig
from transformer.encodings import PositionalEncoding
from transformer.hooks import At, Edit


@dataclass(frozen=True, eq=False)
class Change:
    """An intervention, and what it puts in, if that must be computed first."""

    value: do.Intervention
    # (heads, d_head) mean outputs, or (positions, width) of another run; None if none is needed
    material: Tensor | None = None


def edits(changes: Sequence[Change], config: ModelConfig) -> dict[str, list[Edit]]:
    """By name, the edits of some changes: in one attention scores and masks, then weights, then outputs.

    Changes of one sort act in the order of the list; but the division by √d_k is left out once, and before
    any temperature.
    """
    by_name: dict[str, list[tuple[Change, list[int]]]] = {}
    for change in sorted(changes, key=lambda change: not isinstance(change.value, do.Unscaled)):
        value = change.value
        for name in value.hooks(config):
            acting, heads = by_name.setdefault(name, []), list(value.heads(config.n_heads))
            if isinstance(value, do.Unscaled):
                heads = [head for head in heads if all(head not in others for _, others in acting)]
            acting.append((change, heads))
    return {name: [partial(_edit, config, *each) for each in acting] for name, acting in by_name.items()}


def _edit(config: ModelConfig, change: Change, heads: Sequence[int], own: Any, at: At) -> Any:
    """A value after a change; of (…, heads, queries, width) the part of each of its heads."""
    match value := change.value:
        case do.NoPositions():
            return PositionalEncoding(config)
        case do.DropNorm():
            return nn.Identity()
        case do.DropSublayer():
            return torch.zeros_like(own)
        case do.Hide() | do.Mask():
            return do.allows(value, *_places(own, at.first), own)
        case do.Patch() if not heads:
            return _patched(value, own, at.first, change.material)
    mask = torch.ones_like(own, dtype=torch.bool) if at.mask is None else at.mask.expand_as(own)
    changed, part, visible = own.clone(), own[..., heads, :, :], mask[..., heads, :, :]
    match value:
        case do.Patch():
            part = _patched(value, part, at.first, change.material)
        case do.Temperature():
            part = part / value.temperature
        case do.Unscaled():
            added = 0.0 if at.bias is None else at.bias[..., heads, :, :]
            part = (part - added) * math.sqrt(config.d_head) + added
        case do.SetRow() if 0 <= (row := value.query - at.first) < part.shape[-2]:
            part[..., row, :] = _shared(value, part[..., row, :], visible[..., row, :])
        case do.Ablate() | do.Scale():
            part = _replaced(value, part, visible, at.first, change.material)
    changed[..., heads, :, :] = part
    return changed


def _places(like: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """(queries, 1) and (keys,) positions of cells (…, queries, keys); the queries from ``first`` on."""
    queries, keys = (torch.arange(count, device=like.device) for count in like.shape[-2:])
    return queries[:, None] + first, keys


def _replaced(
    value: do.Intervention, own: Tensor, visible: Tensor, first: int, means: Tensor | None
) -> Tensor:
    """Some rows of heads' weights (…, queries, keys) or outputs (…, queries, d_head) after a change."""
    rows, keys = _places(own, first)
    acting = rows >= 0 if value.rows is None else torch.isin(rows, rows.new_tensor(value.rows))
    if isinstance(value, do.Scale):
        new = own * value.factor
    elif value.part == "heads":
        new = torch.zeros_like(own) if means is None else means[:, None].to(own).expand_as(own)
    else:
        looked_at = {"uniform": visible, "previous": keys == rows - 1, "first": keys == 0}[value.by] & visible
        new = (looked_at / looked_at.sum(-1, keepdim=True).clamp_min(1)).to(own.dtype)
        acting = acting & new.gt(0).any(-1, keepdim=True)
    return new.where(acting, own)


def _shared(value: do.Intervention, own: Tensor, visible: Tensor) -> Tensor:
    """A row (…, heads, keys): what is given, and the rest shared by the other visible keys."""
    keys, weights = map(list, zip(*value.given, strict=True))
    given, others = torch.zeros_like(own, dtype=torch.double), visible.clone()
    given[..., keys] = given.new_tensor(weights)
    others[..., keys] = False
    if bool((given * ~visible).any()):
        raise do.InterventionError(
            f"Query {value.query + 1} of {do.SITES[value.kind]} cannot attend to a key that is hidden."
        )
    left, rest = max(0.0, 1.0 - sum(weights)), own.double() * others
    rest = rest.where(rest.sum(-1, keepdim=True) > 0, others.double())
    total = rest.sum(-1, keepdim=True)
    if left > do.SUM_LIMIT and not bool(total.gt(0).all()):
        raise do.InterventionError(
            f"The weights of query {value.query + 1} sum to {1 - left:g}, and no other key can take the rest."
        )
    return (given + rest * (left / total.clamp_min(1e-30))).to(own.dtype)


def _patched(value: do.Intervention, own: Tensor, first: int, material: Tensor | None) -> Tensor:
    """A place (…, positions, width) with what another run held there; ``first`` is its first position."""
    assert material is not None
    to = [here - first for here, _ in value.pairs(len(material))]
    rows = [row for row, at in enumerate(to) if 0 <= at < own.shape[-2]]
    after = own.clone()
    after[..., [to[row] for row in rows], :] = material[rows].to(own)
    return after

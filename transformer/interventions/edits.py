"""Interventions at work: each becomes edits of the values that a model names (``transformer.hooks``)."""

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
    """By name, the edits of some changes; the model calls those of scores and masks before the others.

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


def _edit(config: ModelConfig, change: Change, heads: Sequence[int], original: Any, at: At) -> Any:
    """A value after a change; of (…, heads, queries, width) some rows of some heads."""
    value, material = change.value, change.material
    match value:
        case do.NoPositions():
            return PositionalEncoding(config)
        case do.DropNorm():
            return nn.Identity()
        case do.DropSublayer():
            return torch.zeros_like(original)
        case do.Patch() if not heads:
            return _patched(value, original, at.first, material)
    rows, keys = (torch.arange(count, device=original.device) for count in original.shape[-2:])
    rows = rows[:, None] + at.first
    if value.part == "mask":
        return do.allows(value, rows, keys, original)
    mask = torch.ones_like(original, dtype=torch.bool) if at.mask is None else at.mask.expand_as(original)
    new, visible, named = original[..., heads, :, :], mask[..., heads, :, :], getattr(value, "rows", None)
    acting = rows >= 0 if named is None else torch.isin(rows, rows.new_tensor(named))
    match value:
        case do.Patch():
            new = _patched(value, new, at.first, material)
        case do.Temperature():
            new = new / value.temperature
        case do.Unscaled():
            added = 0.0 if at.bias is None else at.bias[..., heads, :, :]
            new = (new - added) * math.sqrt(config.d_head) + added
        case do.SetRow() if 0 <= (row := value.query - at.first) < new.shape[-2]:
            new[..., row, :] = _shared(value, new[..., row, :], visible[..., row, :])
        case do.Scale():
            new = new * value.factor
        case do.Ablate(by="zero" | "mean"):
            new = torch.zeros_like(new) if material is None else material[:, None].to(new).expand_as(new)
        case do.Ablate(by=by):
            sees = {"uniform": visible, "previous": keys == rows - 1, "first": keys == 0}[by] & visible
            new = (sees / sees.sum(-1, keepdim=True).clamp_min(1)).to(original.dtype)
            acting = acting & sees.any(-1, keepdim=True)
    changed = original.clone()
    changed[..., heads, :, :] = new.where(acting, original[..., heads, :, :])
    return changed


def _shared(value: do.Intervention, original: Tensor, visible: Tensor) -> Tensor:
    """A row (…, heads, keys): what is given, and the rest shared by the other visible keys."""
    keys, weights = map(list, zip(*value.given, strict=True))
    given, others = torch.zeros_like(original, dtype=torch.double), visible.clone()
    given[..., keys] = given.new_tensor(weights)
    others[..., keys] = False
    if bool((given * ~visible).any()):
        raise do.InterventionError(
            f"Query {value.query + 1} of {do.SITES[value.kind]} cannot attend to a key that is hidden."
        )
    left, rest = max(0.0, 1.0 - sum(weights)), original.double() * others
    rest = rest.where(rest.sum(-1, keepdim=True) > 0, others.double())
    total = rest.sum(-1, keepdim=True)
    if left > do.SUM_LIMIT and not bool(total.gt(0).all()):
        raise do.InterventionError(
            f"The weights of query {value.query + 1} sum to {1 - left:g}, and no other key can take the rest."
        )
    return (given + rest * (left / total.clamp_min(1e-30))).to(original.dtype)


def _patched(value: do.Intervention, original: Tensor, first: int, material: Tensor | None) -> Tensor:
    """A place (…, positions, width) with what another run held there; ``first`` is its first position."""
    assert material is not None
    to = [here - first for here, _ in value.pairs(len(material))]
    rows = [row for row, at in enumerate(to) if 0 <= at < original.shape[-2]]
    after = original.clone()
    after[..., [to[row] for row in rows], :] = material[rows].to(original)
    return after

"""Interventions at work: each becomes edits of the values that a model names
(``transformer.hooks``)."""

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
    """By name, the edits of some changes; the model calls those of scores and masks before the
    others.

    Changes of one sort act in the order of the list; but the division by √d_k is left out once, and
    before any temperature.
    """
    by_name: dict[str, list[Edit]] = {}
    undivided: dict[str, set[int]] = {}  # by name, the heads whose division is left out already
    for change in sorted(changes, key=lambda change: not isinstance(change.value, do.Unscaled)):
        for name in change.value.hooks(config):
            heads = change.value.heads(config.n_heads)
            if isinstance(change.value, do.Unscaled):
                before = undivided.setdefault(name, set())
                heads = tuple(head for head in heads if head not in before)
                before.update(heads)
            by_name.setdefault(name, []).append(partial(_edit, config, change, heads))
    return by_name


# `Any` below: a hook's value is a tensor, a norm or an encoding, as its name says.


def _edit(config: ModelConfig, change: Change, heads: Sequence[int], original: Any, at: At) -> Any:
    """A value after a change."""
    match change.value:
        case do.NoPositions():
            return PositionalEncoding(config)
        case do.DropNorm():
            return nn.Identity()
        case do.DropSublayer():
            return torch.zeros_like(original)
        case do.Patch(head=None) as patch:
            return _patched(patch, original, at.first, change.material)
        case do.OfMask() as mask:
            rows, keys = _positions(original, at.first)
            return do.allows(mask, rows, keys, original)
        case _:
            return _edit_heads(config, change, heads, original, at)


def _positions(original: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """(queries, 1) and (keys,): positions of the rows of a map, from ``first`` on, and of its
    columns."""
    queries, keys = original.shape[-2:]
    rows = torch.arange(first, first + queries, device=original.device)
    return rows[:, None], torch.arange(keys, device=original.device)


def _edit_heads(
    config: ModelConfig, change: Change, heads: Sequence[int], original: Tensor, at: At
) -> Tensor:
    """(…, heads, queries, width): scores, weights or outputs, some rows of some heads changed."""
    before = original[..., heads, :, :]
    rows, _ = _positions(original, at.first)
    acting = rows >= 0
    value = change.value
    match value:
        case do.Patch():
            after = _patched(value, before, at.first, change.material)
        case do.Temperature():
            after = before / value.temperature
        case do.Unscaled():
            added = 0.0 if at.bias is None else at.bias[..., heads, :, :]
            after = (before - added) * math.sqrt(config.d_head) + added
        case do.SetRow():
            after = _with_row(value, before, _visible(original, at)[..., heads, :, :], at.first)
        case do.Scale():
            after = before * value.factor
            acting = _named(value.rows, rows)
        case do.Ablate(by="zero"):
            after = torch.zeros_like(before)
            acting = _named(value.rows, rows)
        case do.Ablate(by="mean"):
            assert change.material is not None
            after = change.material[:, None].to(before).expand_as(before)
            acting = _named(value.rows, rows)
        case do.Ablate():
            sees = _pattern(value.by, _visible(original, at)[..., heads, :, :], at.first)
            keys_seen = sees.sum(-1, keepdim=True)
            after = (sees / keys_seen.clamp_min(1)).to(original.dtype)
            acting = _named(value.rows, rows) & (keys_seen > 0)
        case _:
            raise TypeError(f"{type(value).__name__} does not change heads.")
    changed = original.clone()
    changed[..., heads, :, :] = after.where(acting, before)
    return changed


def _named(named: Sequence[int] | None, rows: Tensor) -> Tensor:
    """(queries, 1): whether a change acts in a row; None names all."""
    if named is None:
        return rows >= 0
    return torch.isin(rows, rows.new_tensor(named))


def _visible(original: Tensor, at: At) -> Tensor:
    """(…, heads, queries, keys): whether a query may see a key."""
    if at.mask is None:
        return torch.ones_like(original, dtype=torch.bool)
    return at.mask.expand_as(original)


def _pattern(by: do.By, visible: Tensor, first: int) -> Tensor:
    """(…, heads, queries, keys): the visible keys that a fixed pattern looks at."""
    if by == "uniform":
        return visible
    rows, keys = _positions(visible, first)
    looks = keys == rows - 1 if by == "previous" else keys == 0
    return looks & visible


def _with_row(value: do.SetRow, before: Tensor, visible: Tensor, first: int) -> Tensor:
    """(…, heads, queries, keys): weights with one row set, if that row is among them."""
    row = value.query - first
    if not 0 <= row < before.shape[-2]:
        return before
    after = before.clone()
    after[..., row, :] = _shared(value, before[..., row, :], visible[..., row, :])
    return after


def _shared(value: do.SetRow, original: Tensor, visible: Tensor) -> Tensor:
    """A row (…, heads, keys): what is given, and the rest shared by the other visible keys."""
    keys = [key for key, _ in value.given]
    weights = [weight for _, weight in value.given]
    row = torch.zeros_like(original, dtype=torch.double)
    row[..., keys] = row.new_tensor(weights)
    if bool((row * ~visible).any()):
        raise do.InterventionError(
            f"Query {value.query + 1} of {do.SITES[value.kind]} cannot attend to a key that is "
            "hidden."
        )
    free = visible.clone()
    free[..., keys] = False
    rest = original.double() * free
    rest = rest.where(rest.sum(-1, keepdim=True) > 0, free.double())
    total = rest.sum(-1, keepdim=True)
    left = max(0.0, 1.0 - sum(weights))
    if left > do.SUM_LIMIT and not bool(total.gt(0).all()):
        raise do.InterventionError(
            f"The weights of query {value.query + 1} sum to {1 - left:g}, and no other key can "
            "take the rest."
        )
    return (row + rest * (left / total.clamp_min(1e-30))).to(original.dtype)


def _patched(value: do.Patch, original: Tensor, first: int, material: Tensor | None) -> Tensor:
    """(…, positions, width): a place, from position ``first`` on, with what another run held
    there."""
    assert material is not None
    pairs = enumerate(value.pairs(len(material)))
    places = {here - first: row for row, (here, _) in pairs}
    there = {place: row for place, row in places.items() if 0 <= place < original.shape[-2]}
    after = original.clone()
    after[..., list(there), :] = material[list(there.values())].to(original)
    return after

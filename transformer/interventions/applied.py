"""What each change makes of the tensors inside an attention, or at a patched place.

Every function returns a new tensor, or its own input if the change does not concern it. Tensors end in
(queries, keys), (queries, d_head) or (positions, width); ``first`` is the position of the first row, from 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from transformer.interventions.base import SITES, InterventionError
from transformer.interventions.heads import (
    SUM_LIMIT,
    Ablate,
    By,
    InAttention,
    Scale,
    SetRow,
    Temperature,
    Unscaled,
)
from transformer.interventions.masks import REGIONS, Cells, Masking
from transformer.interventions.patching import Patch


def masked(change: Masking, own: Tensor, first: int) -> Tensor:
    """A mask (…, queries, keys), True = may attend, after a change."""
    allowed, forbidden = (_marked(cells, own, first) for cells in change.cells)
    return (own | allowed) & ~forbidden


def scored(
    change: InAttention,  # the change
    own: Tensor,  # the scores
    bias: Tensor | None,  # the part of them that positions add, undivided by √d_k; None without any
    d_head: int,  # d_k
) -> Tensor:
    """One head's scores (…, queries, keys), as the softmax receives them."""
    match change:
        case Temperature():
            return own / change.temperature
        case Unscaled():
            added = torch.zeros_like(own) if bias is None else bias
            return (own - added) * math.sqrt(d_head) + added
    return own


def weighed(change: InAttention, own: Tensor, visible: Tensor, first: int) -> Tensor:
    """One head's weights (…, queries, keys); ``visible``, in the same shape, is the mask."""
    match change:
        case Ablate(by=("uniform" | "previous" | "first") as by):
            made = _pattern(by, visible, first).to(own.dtype)
            acts = _acting(change.rows, own, first) & made.gt(0).any(-1)
            return torch.where(acts[..., None], made, own)
        case SetRow() if 0 <= (row := change.query - first) < own.shape[-2]:
            made = own.clone()
            made[..., row, :] = _shared(change, own[..., row, :], visible[..., row, :])
            return made
    return own


def put_out(change: InAttention, own: Tensor, first: int, material: Tensor | None) -> Tensor:
    """One head's output (…, queries, d_head); ``material`` is what the change puts in, computed before."""
    match change:
        case Ablate(by=("zero" | "mean")):
            made = torch.zeros_like(own) if material is None else material.to(own).expand_as(own)
            return torch.where(_acting(change.rows, own, first)[..., None], made, own)
        case Scale():
            return torch.where(_acting(change.rows, own, first)[..., None], own * change.factor, own)
        case Patch() if material is not None:
            return patched(change, own, first, material)
    return own


def patched(change: Patch, own: Tensor, first: int, material: Tensor) -> Tensor:
    """A place (…, positions, width) with what another run held there."""
    here = torch.tensor([here for here, _ in change.pairs(len(material))]) - first
    inside = (here >= 0) & (here < own.shape[-2])
    made = own.clone()
    made[..., here[inside].to(own.device), :] = material[inside].to(own)
    return made


def _marked(cells: Cells, like: Tensor, first: int) -> Tensor:
    """(queries, keys) bool: where cells lie in a mask (…, queries, keys)."""
    queries, keys = like.shape[-2:]
    rows = torch.arange(first, first + queries, device=like.device)[:, None]
    columns = torch.arange(keys, device=like.device)
    if isinstance(cells, str):
        marked: Tensor = REGIONS[cells](rows, columns)
        return marked
    marked = torch.zeros(queries, keys, dtype=torch.bool, device=like.device)
    for query, key in cells:
        marked |= _on(query, rows) & _on(key, columns)
    return marked


def _on(at: int | None, positions: Tensor) -> Tensor:
    return positions >= 0 if at is None else positions == at


def _acting(rows: tuple[int, ...] | None, values: Tensor, first: int) -> Tensor:
    """(queries,) bool: the rows of ``values`` (…, queries, width) that a change acts on."""
    positions = torch.arange(first, first + values.shape[-2], device=values.device)
    return positions >= 0 if rows is None else torch.isin(positions, torch.tensor(rows, device=values.device))


def _pattern(by: By, visible: Tensor, first: int) -> Tensor:
    """(…, queries, keys): the weights of a fixed pattern; a row that has no such key is all zeros."""
    if by == "uniform":
        return visible / visible.sum(-1, keepdim=True).clamp_min(1)
    queries, keys = visible.shape[-2:]
    rows = torch.arange(first, first + queries, device=visible.device)
    wanted = rows - 1 if by == "previous" else torch.zeros_like(rows)
    return (wanted[:, None] == torch.arange(keys, device=visible.device)) & visible


def _shared(change: SetRow, own: Tensor, visible: Tensor) -> Tensor:
    """A row (…, keys): what is given, and the rest shared by the other visible keys."""
    keys = torch.tensor([key for key, _ in change.given], device=own.device)
    weights = torch.tensor([weight for _, weight in change.given], device=own.device, dtype=torch.float64)
    if bool((weights * ~visible[..., keys]).any()):
        raise InterventionError(
            f"Query {change.query + 1} of {SITES[change.kind]} cannot attend to a key that is hidden."
        )
    others = visible.clone()
    others[..., keys] = False
    left = max(0.0, 1.0 - float(weights.sum()))
    rest = own.double() * others
    rest = torch.where(rest.sum(-1, keepdim=True) > 0, rest, others.double())
    total = rest.sum(-1, keepdim=True)
    if left > SUM_LIMIT and not bool(total.gt(0).all()):
        raise InterventionError(
            f"The weights of query {change.query + 1} sum to {1 - left:g}, "
            "and no other key can take the rest."
        )
    made = rest * (left / total.clamp_min(1e-30))
    made[..., keys] = weights
    return made.to(own.dtype)

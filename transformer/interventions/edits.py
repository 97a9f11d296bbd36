"""Interventions at work: each becomes edits of the values that a model names (``transformer.hooks``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer.config import AttentionKind, ModelConfig, Sublayer
from transformer.encodings import PositionalEncoding
from transformer.hooks import At, Edit
from transformer.interventions import (
    DropNorm,
    DropSublayer,
    Embeddings,
    EncoderOutput,
    HeadOutput,
    InAttention,
    InHeads,
    Intervention,
    Masking,
    NoPositions,
    Patch,
    PatchPlace,
    Stream,
    Unscaled,
)


@dataclass(frozen=True, eq=False)
class Change:
    """An intervention, and what it puts in, if that must be computed first."""

    value: Intervention
    # (heads, d_head) mean outputs, or (positions, width) of another run; None if none is needed
    material: Tensor | None = None


def edits(changes: Sequence[Change], config: ModelConfig) -> dict[str, list[Edit]]:
    """By name, the edits of some changes: in one attention masks first, then scores, weights and outputs.

    Changes of one sort act in the order of the list; but the division by √d_k is left out once, and before
    any temperature.
    """
    by_name: dict[str, list[Edit]] = {}
    unscaled = set[tuple[str, int]]()
    for change in changes:
        value, material = change.value, change.material
        match value:
            case NoPositions(side):
                by_name[f"{side}.encoding"] = [lambda own, at: PositionalEncoding(config)]
            case DropSublayer(sublayer):
                by_name[f"{sublayer.path}.output"] = [lambda own, at: torch.zeros_like(own)]
            case DropNorm(place):
                path = place.path if isinstance(place, Sublayer) else place
                by_name[f"{path}.norm"] = [lambda own, at: nn.Identity()]
            case Patch(place=place) if not isinstance(place, HeadOutput):
                by_name.setdefault(patched_name(place), []).append(_patch(value, material))
        for kind, site in config.sites.items():
            for layer in range(site.n_layers):
                path = site.sublayer(layer).path
                if isinstance(value, Masking) and value.changes(kind, layer):
                    by_name.setdefault(f"{path}.mask", []).append(_mask(value))
                if not isinstance(value, InAttention):
                    continue
                heads = value.heads_of(kind, layer, config.n_heads)
                part = "heads" if value.acts_on == "output" else value.acts_on
                if isinstance(value, Unscaled):
                    new = tuple(head for head in heads if (path, head) not in unscaled)
                    unscaled |= {(path, head) for head in new}
                    if new:
                        by_name.setdefault(f"{path}.{part}", []).insert(
                            0, _in_heads(value, new, None, config)
                        )
                elif heads:
                    edit = _in_heads(value, heads, material, config)
                    by_name.setdefault(f"{path}.{part}", []).append(edit)
    return by_name


def acts_in(value: Intervention, kind: AttentionKind, layer: int, n_heads: int) -> bool:
    """Whether a change acts inside an attention sub-layer."""
    if isinstance(value, Masking):
        return value.changes(kind, layer)
    return isinstance(value, InAttention) and bool(value.heads_of(kind, layer, n_heads))


def patched_name(place: PatchPlace) -> str:
    """The name of what a patch fills."""
    match place:
        case Embeddings(side):
            return f"{side}.input"
        case Stream(sublayer):
            return f"{sublayer.path}.stream"
        case HeadOutput(kind, layer, _):
            side = "encoder" if kind == "encoder" else "decoder"
            return f"{side}.{layer}.{'cross' if kind == 'cross' else 'self'}_attention.heads"
    assert isinstance(place, EncoderOutput)
    return "encoder.output"


def _mask(value: Masking) -> Edit:
    return lambda own, at: value.masked(own, at.first)


def _patch(value: Patch, material: Tensor | None) -> Edit:
    return lambda own, at: value.put_out(own, at.first, material)


def _in_heads(
    value: InAttention, heads: tuple[int, ...], material: Tensor | None, config: ModelConfig
) -> Edit:
    """Each head's part of (…, heads, queries, width) after the change."""

    def edit(own: Tensor, at: At) -> Tensor:
        changed = own.clone()
        for i, head in enumerate(heads):
            part = own[..., head, :, :]
            if value.acts_on == "scores":
                bias = None if at.bias is None else at.bias[..., head, :, :]
                part = value.on_scores(part, bias, config.d_head)
            elif value.acts_on == "weights":
                mask = torch.ones_like(own, dtype=torch.bool) if at.mask is None else at.mask.expand_as(own)
                part = value.on_weights(part, mask[..., head, :, :], at.first)
            else:
                given = material[i] if isinstance(value, InHeads) and material is not None else material
                part = value.put_out(part, at.first, given)
            changed[..., head, :, :] = part
        return changed

    return edit

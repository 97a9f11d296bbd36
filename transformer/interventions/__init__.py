"""Interventions: one thing changed in a running model, as a value.

    from transformer import interventions as do base = translator.translate(text) changed =
    translator.translate(text, interventions=[do.ablate("cross", layer=1, head=5, by="mean")])

An intervention is frozen and compares by its fields, so it is a key, a line of a caption (``str``,
counted from 1), JSON (``to_json``, counted from 0) and a part of an address (``write_text``,
counted from 1). Within one attention, scores and masks come first, then weights, then outputs, as
the model calls them; changes of one sort act in their order.

Positions of ``edit_source`` and ``drop_source`` are those of the text as typed, all other positions
those of the source as the model reads it. While decoding, later keys do not exist, so only in a
forced pass can the causal mask be lifted or the whole output be patched.

The kinds stand in ``tokens``, ``heads``, ``masks``, ``stack`` and ``patches``: a class that holds
exact values and can be asked what it changes and whether it fits a run, and the function that
people call. What a field may hold is in ``fields``, text and JSON in ``codec``. What each change
does is in ``edits``, its equation in ``transformer.equations``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer.config import AttentionKind
from transformer.interventions.base import Intervention, InterventionError
from transformer.interventions.codec import (
    as_interventions,
    from_json,
    read_text,
    to_json,
    write_text,
)
from transformer.interventions.heads import (
    SUM_LIMIT,
    Ablate,
    By,
    OfHeads,
    Scale,
    SetRow,
    Temperature,
    Unscaled,
    ablate,
    scale,
    set_row,
    temperature,
    unscaled,
)
from transformer.interventions.masks import Cell, Hide, Mask, OfMask, allows, hide, lifts, mask
from transformer.interventions.patches import (
    OtherRun,
    Patch,
    embeddings,
    encoder_output,
    head_output,
    patch,
    run,
    stream,
)
from transformer.interventions.stack import (
    DropNorm,
    DropSublayer,
    NoPositions,
    drop_norm,
    drop_sublayer,
    no_positions,
)
from transformer.interventions.tokens import (
    Choose,
    DropSource,
    EditSource,
    Forbid,
    Prefix,
    Token,
    choose,
    drop_source,
    edit_source,
    forbid,
    prefix,
)
from transformer.interventions.words import PARTS, REGIONS, SITES
from transformer.interventions.words import place as counted

if TYPE_CHECKING:  # an address holds changes, and needs no PyTorch
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class HeadMeans:
    """The mean output of every head, before W_O, over all rows of a sample of sentences."""

    outputs: Mapping[AttentionKind, Tensor]  # by kind, (layers, heads, d_head) float32
    about: Mapping[str, str]  # what was measured: data, command, date

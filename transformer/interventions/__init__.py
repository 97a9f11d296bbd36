"""Interventions: one thing changed in a running model, as a value.

    from transformer import interventions as do
    base = translator.translate(text)
    changed = translator.translate(text, interventions=[do.ablate("cross", layer=1, head=5, by="mean")])

An intervention is frozen and compares by its fields, so it is a key, a line of a caption (``str``, counted
from 1), JSON (``to_json``, counted from 0) and a part of an address (``write_text``, counted from 1). Within
one attention, scores and masks come first, then weights, then outputs, as the model calls them; changes of
one sort act in their order.

Positions of ``edit_source`` and ``drop_source`` are those of the text as typed, all other positions those of
the source as the model reads it. While decoding, later keys do not exist, so only in a forced pass can the
causal mask be lifted or the whole output be patched.

Which fit a request is in ``request``, what each does in ``edits``, its equation in ``transformer.equations``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer.config import AttentionKind, Side

# isort: off
from transformer.interventions.codec import PARTS, PLACE_NAME, REGIONS, SITES, counted, kind
from transformer.interventions.codec import Intervention, InterventionError, attempt
from transformer.interventions.codec import as_interventions, from_json, read_text, to_json, write_text
# isort: on

if TYPE_CHECKING:  # an address holds changes, and needs no PyTorch
    from torch import Tensor

Token = int | str
"""A token by its id, or by its piece, such as "▁ist"."""
Cell = str | tuple[int | None, int | None]
"""A query and a key, from 0, None for every one; or the name of a region."""
SUM_LIMIT = 1e-6
"""Excess above 1 that the sum of given weights may have."""

# Tokens: they never change the model's distribution; log-probabilities and alternatives stay its own.

choose = Choose = kind("Choose", "tokens", "step token", "{step} writes {token}")
"""One token at one step of the output, in every live hypothesis; no output ends before that step."""
forbid = Forbid = kind("Forbid", "tokens", "token step?=", "{token} is forbidden[ at {step}]")
"""A token that the output may not hold, at one step or (None) anywhere."""
prefix = Prefix = kind("Prefix", "tokens", "token_ids", "the output begins with {token_ids}")
"""The first tokens of the output; after them, the search continues as asked."""
edit_source = EditSource = kind(
    "EditSource", "tokens", "position token", "{position} becomes {token}", name="edit"
)
"""A different token at one position of the source, as typed."""
drop_source = DropSource = kind("DropSource", "tokens", "position", "{position} is left out", name="drop")
"""The source, as typed, without the token at one position."""

# One head of a layer, several, or (None) all.

HEADS, SAID = "kind layer head?", "{kind}, {layer}, {head}"
ablate = Ablate = kind("Ablate", "weights", f"{HEADS}= by= rows?=", f"{SAID} {{by}}[ in {{rows}}]")
"""A head without what it computes: "zero" and "mean" replace its output, others its weights.

A row whose key is hidden or does not exist stays as it is.

"zero" and "mean" answer different questions: without any output, the layers above get a sum that they never
met in training; with the mean, they lose only what is special to this sentence.
"""
scale = Scale = kind("Scale", "heads", f"{HEADS} factor rows?=", f"{SAID} times {{factor}}[ in {{rows}}]")
"""A head whose output is multiplied by a factor."""
set_row = SetRow = kind(
    "SetRow", "weights", f"{HEADS} query given", f"{SAID}, {{query}}: {{given}}", name="row"
)
"""Given weights in one row of a head; the other visible keys share what is left, as before."""
temperature = Temperature = kind(
    "Temperature", "scores", f"{HEADS} temperature", f"{SAID} with temperature {{temperature}}"
)
"""A head whose scores are divided by a number before the softmax: below 1 sharper, above 1 flatter."""
unscaled = Unscaled = kind("Unscaled", "scores", f"{HEADS}=", f"{SAID} without ÷ √d_k")
"""A head without the division by √d_k (section 3.2.1): its scores are q·k, plus what positions add."""

# Masks: cells that a query may attend to, or may not, decided before the softmax, in every head.

ACROSS: dict[str, Any] = {"kind": AttentionKind.CROSS, "layer": None, "allow": ()}
ACROSS["forbid"] = property(lambda change: ((None, change.source_token),))
HIDE_SAYS = "{source_token} is hidden from cross-attention"
hide = Hide = kind("Hide", "mask", "source_token", HIDE_SAYS, **ACROSS)
"""A source token, as the model reads it, that no cross-attention may attend to."""
MASK_SAYS = "{kind}[, {layer}][; allowed: {allow}][; hidden: {forbid}]"
mask = Mask = kind("Mask", "mask", "kind allow= forbid= layer?=", MASK_SAYS)
"""Cells of a kind's masks that are allowed, and cells that are forbidden, in one layer or (None) in all.

Lifting the causal mask is defined in a forced pass only: while decoding, later keys do not exist.
"""


def lifts(change: Intervention) -> bool:
    """True if a mask allows keys after their query."""
    cells = [(0, 1) if cell in ("all", "future", "next") else cell for cell in change.allow]
    return any(cell[1] is None or cell[1] > (cell[0] or 0) for cell in cells if not isinstance(cell, str))


def allows(mask: Intervention, query: Any, key: Any, visible: Any = False) -> Any:
    """True if a mask lets a query see a key, which it sees without it if that is ``visible``; both are
    positions from 0, or arrays of these that fit each other."""

    def covers(cell: Cell) -> Any:
        if isinstance(cell, str):
            after = key - query
            named = {"future": after > 0, "next": after == 1, "self": after == 0, "past": after < 0}
            return named.get(cell, after == after)
        row, column = cell
        return (query >= 0 if row is None else query == row) & (key >= 0 if column is None else key == column)

    for cell in mask.allow:
        visible = visible | covers(cell)
    for cell in mask.forbid:
        visible = visible & (covers(cell) ^ True)
    return visible


# A stack's arithmetic: only the residual stream shows what they did.

no_positions = NoPositions = kind("NoPositions", "{side}.encoding", "side", "no positions in the {side}")
"""A side without positional encoding: nothing added, nothing rotated, no bias on the scores."""
PART = "{side}.{layer}.{sublayer}"
drop_sublayer = DropSublayer = kind(
    "DropSublayer", f"{PART}.output", "side layer sublayer", "{side} {layer}, {sublayer} adds nothing"
)
"""A sub-layer that adds nothing to the stream; it is computed, and its update replaced by zero."""
NORM_SAYS = "no norm in {side}[ {layer}|, at its end][, {sublayer}]"
drop_norm = DropNorm = kind("DropNorm", f"{PART}.norm", "side layer?= sublayer?=", NORM_SAYS)
"""A LayerNorm that passes its input on: that of a sub-layer, or (None) that at the end of a stack."""

# Patches: what a place held in another run. A place is a name of ``transformer.hooks``, and that of one head
# ends with its number: ``decoder.1.cross_attention.heads.5``.

embeddings: Callable[[str], str] = "{}.input".format
"""The input of a stack, by its side: token embeddings with what positions add to them."""
stream: Callable[[str, int, str], str] = "{}.{}.{}.stream".format
"""The residual stream after a sub-layer, by side, layer and name."""
encoder_output: Callable[[], str] = "encoder.output".format
"""The memory of cross-attention: the encoder's last stream, with pre-norm after its last LayerNorm."""


def head_output(kind: str, layer: int, head: int) -> str:
    """The output of one head, before W_O."""
    side, name = {"cross": ("decoder", "cross")}.get(kind, (kind, "self"))
    return f"{side}.{layer}.{name}_attention.heads.{head}"


class OtherRun(NamedTuple):
    """The run that a patch comes from, as all that is needed to repeat it."""

    source_text: str
    target_ids: Sequence[int] | None = None  # its output; None if only the encoder is needed
    interventions: Sequence[Intervention] = ()  # its own changes


run = OtherRun


class _Patching(Intervention):
    def __post_init__(self) -> None:
        super().__post_init__()
        nested = (change for patch in self.interventions for change in getattr(patch, "interventions", ()))
        if any(isinstance(change, Patch) for change in nested):
            raise InterventionError("Runs of patches may be nested at most 3 deep.")
        hook, side, layer, name, head = re.findall(PLACE_NAME, self.place)[0]
        there: dict[str, Any] = {"changes": hook, "hook": hook, "side": side, "head": ()}  # positions' side
        if head:
            kind = AttentionKind("cross" if "cross" in name else side)
            there |= {"changes": "heads", "kind": kind, "layer": int(layer), "head": (int(head),)}
        if side == "encoder" and not self.interventions:  # it has not seen the output
            there["target"] = None
        vars(self).update(there)

    def pairs(self, length: int) -> tuple[tuple[int, int], ...]:
        """Pairs of positions here and there, for another run of ``length`` positions."""
        return tuple((at, at) for at in range(length)) if self.positions is None else self.positions

    def taken(self, there: int, here: int | None) -> list[int]:
        """Positions taken of the other run's ``there``; InterventionError if one does not exist."""
        other = f"The other run has {there} positions in the {self.side}"
        if self.positions is None and here != there:
            raise InterventionError(f"{other} and this one {here}; name which position goes where.")
        taken = [at for _, at in self.pairs(there)]
        if max(taken) >= there:
            raise InterventionError(f"{other}, counted from 1; there is no position {max(taken) + 1}.")
        return taken


PATCH_HAS = "place text positions?= target?= interventions="
PATCH_SAYS = "{place}[ at {positions}] from “{text}”[, with {interventions}]"
Patch = kind("Patch", "{place}", PATCH_HAS, PATCH_SAYS, base=_Patching)
"""Content of a place in another run, which is repeated from its text, output and changes."""


def patch(place: str, from_run: Any, positions: Any = None) -> Any:
    """Content of a place in another run: in a translation, or in a value of ``run``."""
    parts = attrgetter("source_text", "target_ids", "interventions")
    wrong = "The other run is {}; it must be a translation, or a value of run()."
    text, target, changes = attempt(parts, from_run, wrong)
    return Patch(place, getattr(from_run, "prompt", None) or text, positions, target, changes)


@dataclass(frozen=True, eq=False)
class HeadMeans:
    """The mean output of every head, before W_O, over all rows of a sample of sentences."""

    outputs: Mapping[AttentionKind, Tensor]  # by kind, (layers, heads, d_head) float32
    about: Mapping[str, str]  # what was measured: data, command, date

"""Interventions: one thing changed in a running model, as a value.

    from transformer import interventions as do
    base = translator.translate(text)
    changed = translator.translate(text, interventions=[do.ablate("cross", layer=1, head=5, by="mean")])

An intervention is frozen and compares by its fields, so it is a key, a line of a caption (``str``, counted
from 1), JSON (``to_json``, counted from 0) and a part of an address (``write_text``, counted from 1). Within
one attention, masks come first, then scores, weights and outputs; changes of one sort act in their order.

Tokens are steered in the search (``transformer.decoding``), which never changes the model's
log-probabilities. Positions of ``edit_source`` and ``drop_source`` are those of the text as typed, all other
positions those of the source as the model reads it. While decoding, later keys do not exist, so only in a
forced pass can the causal mask be lifted or the whole output be patched.

Here stands what each kind holds and says; which fit a request is in ``request``, what a change does to a
tensor in ``edits``, and its equation for the audit in ``transformer.equations``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from transformer.config import AttentionKind, Side, SublayerName

# isort: off
from transformer.interventions.codec import CHANGE, INDEX, Intervention, InterventionError, Scalar, attempt
from transformer.interventions.codec import as_interventions, from_json, read_text, to_json, write_text
from transformer.interventions.codec import choice, index, number, optional, pair, text
# isort: on

if TYPE_CHECKING:  # an address holds changes, and needs no PyTorch
    from torch import Tensor

Token = int | str
"""A token by its id, or by its piece, such as "▁ist"."""
Cell = str | tuple[int | None, int | None]
"""A query and a key, from 0, None for every one; or the name of a region."""
REGIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "all": ("every key", lambda query, key: (query >= 0) & (key >= 0)),
    "future": ("later keys", lambda query, key: key > query),
    "next": ("the key after the query", lambda query, key: key == query + 1),
    "self": ("the query's own key", lambda query, key: key == query),
    "past": ("earlier keys", lambda query, key: key < query),
}
"""Regions by name: in words, and from positions of queries and keys (numbers, or arrays that fit)."""
SITES = {kind: "cross-attention" if kind == "cross" else f"{kind} self-attention" for kind in AttentionKind}
PARTS: dict[str, str] = {name: name.replace("_", "-") for name in ("self_attention", "cross_attention")}
PARTS["feed_forward"] = "feed-forward network"
BY = {  # the mean over a sample of sentences; "uniform" over the visible keys
    "zero": "gives no output",
    "mean": "gives its mean output",
    "uniform": "looks at all keys alike",
    "previous": "looks at the key before the query",
    "first": "looks at the first key",
}
SUM_LIMIT = 1e-6
"""Excess above 1 that the sum of given weights may have."""
DEEPEST = 3
"""Most levels of nested runs: a patch from a run that has a patch from a run."""

# Fields; all positions, layers and heads count from 0.

PIECE = text("a piece such as '▁ist', or its id", ".{1,200}")
TOKEN = Scalar(
    PIECE.said,
    lambda value: PIECE.make(value) if isinstance(value, str) else INDEX.check("", value),
    lambda value: f".{value}" if isinstance(value, str) and re.match(r"[0-9.]", value) else str(value),
    lambda text: int(text) if re.match("[0-9]", text) else text.removeprefix("."),
    lambda value: f"“{value}”" if isinstance(value, str) else f"token {value}",
)
TARGET = replace(index("target id"), write=str, read=int, keys=False)
TEXT = text("a text of 1 to 100,000 letters", ".{1,100000}", lambda text: textwrap.shorten(text, 60))
PLACE_NAME = (
    r"(?P<hook>(?P<side>encoder|decoder)\.(?:input|output"
    r"|(?P<layer>[0-9]{1,4})\.(?P<sublayer>[a-z]+_[a-z]+)\.(?:stream|heads(?=\.))))"
    r"(?:(?<=heads)\.(?P<head>[0-9]{1,4}))?"
)
PLACE = text("one of embeddings, stream, head_output and encoder_output", PLACE_NAME, lambda at: counted(at))
QUERY_KEY = pair(optional(index("query")), optional(index("key")))
CELL = Scalar(
    f"{', '.join(REGIONS)} or {QUERY_KEY.said}",
    lambda cell: cell if isinstance(cell, str) and cell in REGIONS else QUERY_KEY.make(cell),
    lambda cell: cell if isinstance(cell, str) else QUERY_KEY.write(cell),
    lambda text: text if text in REGIONS else QUERY_KEY.read(text),
    lambda cell: REGIONS[cell][0] if isinstance(cell, str) else QUERY_KEY.words(cell),
    lambda cell: [] if isinstance(cell, str) else QUERY_KEY.indices(cell),
)
BOTH = pair(index("position"), index("", "there"), "←")
POSITIONS = replace(
    BOTH,
    make=lambda at: BOTH.make((at, at) if isinstance(at, int) else at),
    words=lambda at: BOTH.words(at).partition(" ←" if at[0] == at[1] else "\0")[0],
)
Attention = Annotated[AttentionKind, choice(SITES)]
OfSide = Annotated[Side, choice({"encoder": "encoder", "decoder": "decoder"})]
Layer = Annotated[int, index("layer")]
Heads = Annotated[tuple[int, ...] | None, index("head")]
Rows = Annotated[tuple[int, ...] | None, index("row", "query")]
Step = Annotated[int, index("step")]
AToken = Annotated[Token, TOKEN]
Typed = Annotated[int, index("source token", "typed")]
Cells = Annotated[tuple[Cell, ...], CELL]


# Tokens: they never change the model's distribution; log-probabilities and alternatives stay its own.


class Choose(Intervention, name="choose", says="{step} writes {token}", part="tokens"):
    """One token at one step of the output, in every live hypothesis; no output ends before that step."""

    step: Step
    token: AToken


class Forbid(Intervention, name="forbid", says="{token} is forbidden[ at {step}]", part="tokens"):
    """A token that the output may not hold, at one step or (None) anywhere."""

    token: AToken
    step: Annotated[int | None, index("step")] = None


class Prefix(Intervention, name="prefix", says="the output begins with {token_ids}", part="tokens"):
    """The first tokens of the output; after them, the search continues as asked."""

    token_ids: Annotated[tuple[Token, ...], TOKEN]


class EditSource(Intervention, name="edit", says="{position} becomes {token}", part="tokens"):
    """A different token at one position of the source, as typed."""

    position: Typed
    token: AToken


class DropSource(Intervention, name="drop", says="{position} is left out", part="tokens"):
    """The source, as typed, without the token at one position."""

    position: Typed


# Heads.

IN_HEADS = "{kind}, {layer}, {head}"


class InHeads(Intervention):
    """A change of one head of a layer, of several, or (None) of all."""

    kind: Attention
    layer: Layer
    head: Heads

    def heads(self, n_heads: int) -> tuple[int, ...]:
        return super().heads(n_heads) if self.head is None else self.head


class Ablate(InHeads, name="ablate", says=f"{IN_HEADS} {{by}}[ in {{rows}}]"):
    """A head without what it computes; ``by`` says what takes its place.

    "zero" and "mean" answer different questions: without any output, the layers above get a sum that they
    never met in training; with the mean, they lose only what is special to this sentence.
    """

    head: Heads = None
    by: Annotated[str, choice(BY)] = "zero"  # a row whose key is hidden or does not exist stays as it is
    rows: Rows = None

    @property
    def part(self) -> str:
        return "heads" if self.by in ("zero", "mean") else "weights"


class Scale(InHeads, name="scale", says=f"{IN_HEADS} times {{factor}}[ in {{rows}}]", part="heads"):
    """A head whose output is multiplied by a factor."""

    factor: Annotated[float, number(-1e6, 1e6)]
    rows: Rows = None


class SetRow(InHeads, name="row", says=f"{IN_HEADS}, {{query}}: {{given}}", part="weights"):
    """Given weights in one row of a head; the other visible keys share what is left, as before."""

    query: Annotated[int, index("query")]
    # keys with their weights; set by pairs, by a map, or by the weights of keys 0, 1, …
    given: Annotated[tuple[tuple[int, float], ...], pair(index("key"), number(0, 1))]


class Temperature(
    InHeads, name="temperature", says=f"{IN_HEADS} with temperature {{temperature}}", part="scores"
):
    """A head whose scores are divided by a number before the softmax: below 1 sharper, above 1 flatter."""

    temperature: Annotated[float, number(0.001, 1000)]


class Unscaled(InHeads, name="unscaled", says=f"{IN_HEADS} without ÷ √d_k", part="scores"):
    """A head without the division by √d_k (section 3.2.1): its scores are q·k, plus what positions add."""

    head: Heads = None


# Masks: cells that a query may attend to, or may not, decided before the softmax, in every head.


class Hide(Intervention, name="hide", says="{source_token} is hidden from cross-attention", part="mask"):
    """A source token, as the model reads it, that no cross-attention may attend to."""

    source_token: Annotated[int, index("source token")]
    kind, layer, allow = AttentionKind.CROSS, None, ()

    @property
    def forbid(self) -> tuple[Cell, ...]:
        """Its cells."""
        return ((None, self.source_token),)


MASK_SAYS = "{kind}[, {layer}][; allowed: {allow}][; hidden: {forbid}]"


class Mask(Intervention, name="mask", says=MASK_SAYS, part="mask"):
    """Cells of a kind's masks that are allowed, and cells that are forbidden.

    Lifting the causal mask is defined in a forced pass only: while decoding, later keys do not exist.
    """

    kind: Attention
    allow: Cells = ()  # to be seen although the model's mask hides them
    forbid: Cells = ()  # to be hidden; they win over ``allow``
    layer: Annotated[int | None, index("layer")] = None  # None for every layer

    @property
    def lifts(self) -> bool:
        """True if it allows keys after their query."""
        cells = [(0, 1) if cell in ("all", "future", "next") else cell for cell in self.allow]
        return any(cell[1] is None or cell[1] > (cell[0] or 0) for cell in cells if not isinstance(cell, str))


def covers(cells: Sequence[Cell], query: Any, key: Any) -> Any:
    """True if a query and a key, from 0, are among cells; both may be arrays that fit each other."""
    inside = (query < 0) & (key < 0)
    for cell in cells:
        if isinstance(cell, str):
            inside = inside | REGIONS[cell][1](query, key)
        else:
            row, column = (
                at >= 0 if n is None else at == n for at, n in zip((query, key), cell, strict=True)
            )
            inside = inside | (row & column)
    return inside


def allows(mask: Mask | Hide, query: Any, key: Any, visible: Any = False) -> Any:
    """True if a mask lets a query see a key, which it sees without it if that is ``visible``."""
    return (visible | covers(mask.allow, query, key)) & (covers(mask.forbid, query, key) ^ True)


# A stack's arithmetic: only the residual stream shows what they did.


class NoPositions(Intervention, name="nopositions", says="no positions in the {side}", part="stream"):
    """A side without positional encoding: nothing added, nothing rotated, no bias on the scores."""

    side: OfSide


class DropSublayer(
    Intervention, name="dropsublayer", says="{side} {layer}, {sublayer} adds nothing", part="stream"
):
    """A sub-layer that adds nothing to the stream; it is computed, and its update replaced by zero."""

    side: OfSide
    layer: Layer
    sublayer: Annotated[SublayerName, choice(PARTS)]


NORM_SAYS = "no norm in {side}[ {layer}|, at its end][, {sublayer}]"


class DropNorm(Intervention, name="dropnorm", says=NORM_SAYS, part="stream"):
    """A LayerNorm that passes its input on: that of a sub-layer, or (None) that at the end of a stack."""

    side: OfSide
    layer: Annotated[int | None, index("layer")] = None
    sublayer: Annotated[SublayerName | None, choice(PARTS)] = None


# Patches: what a place held in another run. A place is a name of ``transformer.hooks``, and that of one head
# ends with its number: ``decoder.1.cross_attention.heads.5``.


def embeddings(side: str) -> str:
    """The input of a stack: token embeddings with what positions add to them."""
    return f"{side}.input"


def stream(side: str, layer: int, sublayer: str) -> str:
    """The residual stream after a sub-layer."""
    return f"{side}.{layer}.{sublayer}.stream"


def head_output(kind: str, layer: int, head: int) -> str:
    """The output of one head, before W_O."""
    side, name = {"cross": ("decoder", "cross")}.get(kind, (kind, "self"))
    return f"{side}.{layer}.{name}_attention.heads.{head}"


def encoder_output() -> str:
    """The memory of cross-attention: the encoder's last stream, with pre-norm after its last LayerNorm."""
    return "encoder.output"


def placed(name: str) -> dict[str, Any]:
    """What the name of a place says: "hook", the name there, "side", "layer", "sublayer" and "head"."""
    found = re.fullmatch(PLACE_NAME, name)
    return found.groupdict() if found else {}


def counted(name: str) -> str:
    """A place, counted from 1: ``decoder layer 2 cross-attention head 6``."""
    named = re.sub(r"heads\.", "head.", re.sub(r"\.([0-9]+\..)", r".layer.\1", name)).split(".")
    return " ".join(str(int(part) + 1) if part.isdigit() else PARTS.get(part, part) for part in named)


class OtherRun(NamedTuple):
    """The run that a patch comes from, as all that is needed to repeat it."""

    source_text: str
    target_ids: Sequence[int] | None = None  # its output; None if only the encoder is needed
    interventions: Sequence[Intervention] = ()  # its own changes


PATCH_SAYS = "{place}[ at {positions}] from “{text}”[, with {interventions}]"


class Patch(Intervention, name="patch", says=PATCH_SAYS):
    """Content of a place in another run, which is repeated from its text, output and changes."""

    place: Annotated[str, PLACE]
    text: Annotated[str, TEXT]
    # pairs (position here, position there), a number alone for both; None for every position, which both runs
    # must have in the same number
    positions: Annotated[tuple[tuple[int, int], ...] | None, POSITIONS] = None
    target: Annotated[tuple[int, ...] | None, TARGET] = None
    interventions: Annotated[tuple[Intervention, ...], CHANGE] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth() > DEEPEST:
            raise InterventionError(f"Runs of patches may be nested at most {DEEPEST} deep.")
        if self.side == "encoder" and not self.interventions:  # it has not seen the output
            object.__setattr__(self, "target", None)

    def depth(self) -> int:
        """Levels of nested runs, 2 if the other run has no patch."""
        return 1 + max([1, *(each.depth() for each in self.interventions if isinstance(each, Patch))])

    @property
    def side(self) -> Side:
        """The side whose positions its place has."""
        return placed(self.place)["side"]

    @property
    def part(self) -> str:
        return "stream" if placed(self.place)["head"] is None else "heads"

    @property
    def site(self) -> tuple[AttentionKind, int] | None:
        _, side, layer, name, head = placed(self.place).values()
        return None if head is None else (AttentionKind("cross" if "cross" in name else side), int(layer))

    def heads(self, n_heads: int) -> tuple[int, ...]:
        head = placed(self.place)["head"]
        return () if head is None else (int(head),)

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


@dataclass(frozen=True, eq=False)
class HeadMeans:
    """The mean output of every head, before W_O, over all rows of a sample of sentences."""

    outputs: Mapping[AttentionKind, Tensor]  # by kind, (layers, heads, d_head) float32
    about: Mapping[str, str]  # what was measured: data, command, date


# How changes are made: these take what a person types, and the classes say what is held.

_MADE: Any = (Choose, Forbid, Prefix, EditSource, DropSource, Ablate, Scale, SetRow, Temperature, Unscaled)
choose, forbid, prefix, edit_source, drop_source, ablate, scale, set_row, temperature, unscaled = _MADE
_MADE = Hide, Mask, NoPositions, DropSublayer, DropNorm, OtherRun
hide, mask, no_positions, drop_sublayer, drop_norm, run = _MADE


def patch(place: str, from_run: Any, positions: Any = None) -> Patch:
    """Content of a place in another run: in a translation, or in a value of ``run``."""
    parts = attrgetter("source_text", "target_ids", "interventions")
    wrong = "The other run is {}; it must be a translation, or a value of run()."
    text, target, changes = attempt(parts, from_run, wrong)
    return Patch(place, getattr(from_run, "prompt", None) or text, positions, target, changes)

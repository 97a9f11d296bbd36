"""Patches: what a place held in another run.

A place is a name of ``transformer.hooks``, and that of one head ends with its number:
``decoder.1.cross_attention.heads.5``.
"""

import functools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, Protocol

from transformer.config import AttentionKind, ModelConfig, Side
from transformer.interventions import words
from transformer.interventions.base import (
    Bounds,
    Intervention,
    InterventionError,
    Part,
    RunShape,
    exact,
)
from transformer.interventions.codec import change_of, write_text
from transformer.interventions.fields import (
    Id,
    Index,
    One,
    OrNone,
    Pairs,
    Raw,
    Several,
    Text,
    Unit,
)
from transformer.text.kinds import Kind

_PLACE = re.compile(
    r"(?P<hook>(?P<side>encoder|decoder)\."
    r"(?:input|output|(?P<layer>[0-9]{1,4})\.(?P<sublayer>[a-z]+_[a-z]+)\.(?:stream|heads(?=\.))))"
    r"(?:(?<=heads)\.(?P<head>[0-9]{1,4}))?"
)


def embeddings(side: str) -> str:
    """The input of a stack, by its side: token embeddings with what positions add to them."""
    return f"{side}.input"


def stream(side: str, layer: int, sublayer: str) -> str:
    """The residual stream after a sub-layer."""
    return f"{side}.{layer}.{sublayer}.stream"


def encoder_output() -> str:
    """The memory of cross-attention: the encoder's last stream, after its last norm if it has
    one."""
    return "encoder.output"


def head_output(kind: str, layer: int, head: int) -> str:
    """The output of one head, before W_O."""
    if kind == AttentionKind.CROSS:
        return f"decoder.{layer}.cross_attention.heads.{head}"
    return f"{kind}.{layer}.self_attention.heads.{head}"


@dataclass(frozen=True)
class PatchedPlace:
    """What the name of a place says."""

    hook: str  # the name in ``transformer.hooks``
    side: Side
    kind: AttentionKind | None = None  # of the head; None for a place of the stream
    layer: int | None = None  # of the head, from 0
    head: int | None = None  # from 0


@functools.cache
def patched_place(name: str) -> PatchedPlace:
    """Reads the name of a place; it is one (``Patch`` has checked it)."""
    named = _PLACE.fullmatch(name)
    assert named is not None
    side: Side = "encoder" if named["side"] == "encoder" else "decoder"
    place = PatchedPlace(hook=named["hook"], side=side)
    if named["head"] is None:
        return place
    kind = AttentionKind(side)
    if named["sublayer"] == "cross_attention":
        kind = AttentionKind.CROSS
    return replace(place, kind=kind, layer=int(named["layer"]), head=int(named["head"]))


class OtherRun(NamedTuple):
    """The run that a patch comes from, as all that is needed to repeat it."""

    source_text: str
    target_ids: Sequence[int] | None = None  # its output; None if only the encoder is needed
    interventions: Sequence[Intervention] = ()  # its own changes


run = OtherRun


class Repeatable(Protocol):
    """A run that can be repeated: a translation, or a value of ``run``."""

    @property
    def source_text(self) -> str: ...
    @property
    def target_ids(self) -> Sequence[int] | None: ...
    @property
    def interventions(self) -> Sequence[Intervention]: ...


class _Change(Unit):
    """A change of the other run."""

    kind = Kind("a change", lambda value: isinstance(value, Intervention))

    def make(self, value: Raw) -> Intervention:
        return change_of(value)

    def write(self, value: Raw) -> str:
        return write_text([value])


_TEXT = Text("a text of 1 to 100,000 letters", ".{1,100000}")
_NAME = Text("one of embeddings, stream, head_output and encoder_output", _PLACE.pattern)
_POSITIONS = OrNone(Pairs(Index("position"), Index("position there", counts=""), twice=True))


@dataclass(frozen=True)
class Patch(Intervention):
    """Content of a place in another run, which is repeated from its text, output and changes."""

    name = "patch"
    place: Annotated[str, One(_NAME)]
    text: Annotated[str, One(_TEXT)]
    # pairs (position here, position there); None for every position, which both runs must have in
    # the same number
    positions: Annotated[tuple[tuple[int, int], ...] | None, _POSITIONS] = None
    target: Annotated[tuple[int, ...] | None, OrNone(Several(Id()))] = None
    interventions: Annotated[tuple[Intervention, ...], Several(_Change(), least=0)] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        nested = (
            change
            for patch in self.interventions
            if isinstance(patch, Patch)
            for change in patch.interventions
        )
        if any(isinstance(change, Patch) for change in nested):
            raise InterventionError("Runs of patches may be nested at most 3 deep.")
        if self.side == "encoder" and not self.interventions:  # it has not seen the output
            object.__setattr__(self, "target", None)

    def __str__(self) -> str:
        where = "" if self.positions is None else f" at {words.few(map(_pair, self.positions))}"
        names = words.few(change.name for change in self.interventions)
        changed = f", with {names}" if names else ""
        text = textwrap.shorten(self.text, 60)
        return f"{words.place(self.place)}{where} from “{text}”{changed}"

    @property
    def named_ids(self) -> tuple[int, ...]:
        """Those of the other run's output, and of its changes."""
        in_changes = [token_id for change in self.interventions for token_id in change.named_ids]
        return (*(self.target or ()), *in_changes)

    @property
    def hook(self) -> str:
        """The name in ``transformer.hooks``."""
        return patched_place(self.place).hook

    @property
    def side(self) -> Side:
        return patched_place(self.place).side

    @property
    def kind(self) -> AttentionKind | None:
        """The kind of attention of the head; None for a place of the stream."""
        return patched_place(self.place).kind

    @property
    def layer(self) -> int | None:
        """The layer of the head, from 0; None for a place of the stream."""
        return patched_place(self.place).layer

    @property
    def head(self) -> int | None:
        """The head, from 0; None for a place of the stream."""
        return patched_place(self.place).head

    @property
    def part(self) -> Part:
        return "stream" if self.head is None else "heads"

    def heads(self, n_heads: int) -> tuple[int, ...]:
        return () if self.head is None else (self.head,)

    def acts_in(self, kind: AttentionKind, layer: int) -> bool:
        return (kind, layer) == (self.kind, self.layer)

    def elsewhere(self, heads: tuple[int, ...]) -> "Patch":
        (head,) = heads
        return replace(self, place=f"{self.hook}.{head}")

    def hooks(self, config: ModelConfig) -> Iterator[str]:
        if self.head is None:
            yield self.hook
        else:
            yield from super().hooks(config)

    def bounds(self, shape: RunShape) -> Bounds:
        return shape.of_stack(self.side)

    def check(self, shape: RunShape, changes: Sequence[Intervention]) -> None:
        from transformer.hooks import hook_names  # needs PyTorch, as the run does

        super().check(shape, changes)
        config = shape.config
        if self.hook not in hook_names(config) or (self.head or 0) >= config.n_heads:
            raise InterventionError(f"This model has no {words.place(self.place)}, counted from 1.")
        if self.side == "decoder" and self.target is None:
            raise InterventionError(
                "A patch into the decoder needs the output of the other run; give one."
            )
        if self.positions is None and shape.exact(self.side) is None:
            raise InterventionError(
                "While decoding, the output has no length yet; name positions, or patch a forced "
                "pass."
            )

    def pairs(self, length: int) -> tuple[tuple[int, int], ...]:
        """Pairs of positions here and there, for another run of ``length`` positions."""
        if self.positions is None:
            return tuple((at, at) for at in range(length))
        return self.positions

    def taken(self, there: int, here: int | None) -> list[int]:
        """Positions taken of the other run's ``there``; InterventionError if one does not exist."""
        length = f"The other run has {there} positions in the {self.side}"
        if self.positions is None and here != there:
            raise InterventionError(
                f"{length} and this one {here}; name which position goes where."
            )
        positions = [position for _, position in self.pairs(there)]
        if max(positions) >= there:
            raise InterventionError(
                f"{length}, counted from 1; there is no position {max(positions) + 1}."
            )
        return positions


def _pair(pair: tuple[int, int]) -> str:
    here, there = pair
    position = words.number("position", here)
    if here == there:
        return position
    return f"{position} ← {there + 1}"


def patch(
    place: str,
    from_run: Repeatable,
    positions: Mapping[int, int] | Iterable[int | tuple[int, int]] | int | None = None,
) -> Patch:
    """Content of a place in another run: in a translation, or in a value of ``run``.

    Positions are pairs (position here, position there), a number alone for both; None for every
    position, which both runs must have in the same number.
    """
    try:
        text = getattr(from_run, "prompt", None) or from_run.source_text
        # a run without an output, of an encoder alone, has none to repeat
        target = from_run.target_ids or None
        changes = from_run.interventions
    except AttributeError as error:
        raise InterventionError(
            f"The other run is {from_run!r:.80}; it must be a translation, or a value of run()."
        ) from error
    return exact(
        Patch, place=place, text=text, positions=positions, target=target, interventions=changes
    )

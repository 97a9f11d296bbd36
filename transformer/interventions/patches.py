"""Patches: what a place of the model held in another run is put here; the check of a whole list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

import transformer.interventions.codec as codec
import transformer.interventions.request as request
from transformer.config import AttentionKind, Side, Sublayer
from transformer.interventions.changes import Choose, DropSource, EditSource, InAttention, Mask, Prefix
from transformer.interventions.codec import Encodable, Intervention, InterventionError, Json, Kind
from transformer.interventions.request import Attention, Layer, RunShape

if TYPE_CHECKING:  # an address holds changes, and needs no PyTorch
    from torch import Tensor

T = TypeVar("T")


class PatchPlace(Encodable):
    """A place that a patch may fill, in the compact text ``stream.decoder.2.cross``, ``head.cross.2.6``."""

    known: ClassVar[dict[str, Any]] = {}
    if TYPE_CHECKING:  # a field of one place, computed by the others

        @property
        def side(self) -> Side:
            """The side whose positions it has."""


@dataclass(frozen=True)
class Embeddings(PatchPlace, name="embeddings", says="{side} embeddings"):
    """The input of a stack: token embeddings with what positions add to them."""

    side: Annotated[Side, request.SIDE]  # "encoder" or "decoder"


@dataclass(frozen=True)
class Stream(PatchPlace, name="stream"):
    """The residual stream after a sub-layer."""

    sublayer: Annotated[Sublayer, request.SUBLAYER]

    @property
    def side(self) -> Side:
        return self.sublayer.side

    def __str__(self) -> str:
        return request.sublayer_name(self.sublayer, ", stream after ")


@dataclass(frozen=True)
class HeadOutput(PatchPlace, name="head", says="{kind}, output of layer {layer}, head {head}"):
    """The output of one head, before W_O."""

    kind: Attention
    layer: Layer
    head: Annotated[int, request.HEAD]  # from 0

    @property
    def side(self) -> Side:
        return "encoder" if self.kind is AttentionKind.ENCODER else "decoder"


@dataclass(frozen=True)
class EncoderOutput(PatchPlace, name="output", says="encoder output"):
    """The memory of cross-attention: the encoder's last stream, with pre-norm after its last LayerNorm."""

    side: ClassVar[Side] = "encoder"

    def check(self, shape: RunShape) -> None:
        request.has_side(self.side, self, shape)


def _read_place(text: str) -> PatchPlace:
    name, *parts = text.split(".")
    try:
        place: PatchPlace = PatchPlace.known[name].from_parts(parts)
    except InterventionError:
        raise
    except (ValueError, LookupError, TypeError) as error:
        raise InterventionError(f"There is no place {text!r:.40} to patch.") from error
    return place


def _place_json(place: PatchPlace) -> Json:
    values = place.to_json()  # a sub-layer is no value of its own there
    return {"at": str(place) if place.name == "output" else place.name, **values.get("sublayer", values)}


def _place_from_json(value: Json) -> PatchPlace:
    name, values = value["at"], {name: part for name, part in value.items() if name != "at"}
    if name == "stream":
        return stream(**values)
    place: PatchPlace = PatchPlace.known["output" if name == "encoder output" else name].from_json(values)
    return place


_all_changes = codec.must(
    lambda values: all(isinstance(value, Intervention) for value in values),
    "The other run's changes are not interventions.",
)
_CHANGES = Kind(
    lambda value: _all_changes(tuple(value)),
    write=codec.write_text,
    read=codec.read_text,
    to_json=codec.to_json,
    from_json=codec.from_json,
)
_PLACE = Kind(
    codec.must(
        lambda value: isinstance(value, PatchPlace),
        "A patch needs a place: embeddings, stream, head_output or encoder_output.",
    ),
    lambda value, change, shape: value.check(shape),
    lambda place: ".".join([place.name, *place.to_parts()]),
    _read_place,
    _place_json,
    _place_from_json,
)


@dataclass(frozen=True)
class OtherRun(Encodable):
    """The run that a patch comes from, as all that is needed to repeat it."""

    text: Annotated[str, request.TEXT]  # its source text
    # ids of its output; None if only the encoder is needed
    target: Annotated[tuple[int, ...] | None, request.IDS, "none"] = None
    interventions: Annotated[tuple[Intervention, ...], _CHANGES] = ()  # its own changes

    def depth(self) -> int:
        """Levels of nested runs, 1 without a patch."""
        nested = [change.from_run.depth() for change in self.interventions if isinstance(change, Patch)]
        return 1 + max(nested, default=0)

    def __str__(self) -> str:
        with_changes = f", with {len(self.interventions)} changes" if self.interventions else ""
        return f"“{self.text[:60]}{'…' * (len(self.text) > 60)}”{with_changes}"


def _run(value: Any) -> OtherRun:
    """A value of ``run``, or of a translation."""
    if isinstance(value, OtherRun):
        return value
    try:
        return OtherRun(value.source_text, value.target_ids, value.interventions)
    except AttributeError:
        raise InterventionError("A patch comes from a translation, or from a value of run().") from None


_RUN = Kind(
    _run,
    write=OtherRun.to_parts,
    read=OtherRun.from_parts,
    to_json=OtherRun.to_json,
    from_json=OtherRun.from_json,
    rest=True,
)
DEEPEST = 3
"""Most levels of nested runs: a patch from a run that has a patch from a run."""


@dataclass(frozen=True)
class Patch(
    InAttention,
    name="patch",
    says="{place}{positions} from {from_run}",
    acts_on="output",
    order=("place", "positions", "from_run"),
):
    """Content of a place in another run."""

    place: Annotated[PatchPlace, _PLACE]  # ``embeddings``, ``stream``, ``head_output`` or ``encoder_output``
    from_run: Annotated[OtherRun, _RUN]  # a translation, or a value of ``run``
    # pairs (position here, position there), from 0; None for every position, which both runs must have in the
    # same number
    positions: Annotated[tuple[tuple[int, int], ...] | None, request.PAIRS, "all"] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.from_run.depth() > DEEPEST:
            raise InterventionError(f"Runs of patches may be nested at most {DEEPEST} deep.")
        if self.place.side == "encoder" and not self.from_run.interventions:  # it has not seen the output
            object.__setattr__(self, "from_run", replace(self.from_run, target=None))

    @property
    def needs_stream(self) -> bool:
        return not isinstance(self.place, HeadOutput)

    def check(self, shape: RunShape) -> None:
        super().check(shape)
        if self.place.side == "decoder" and self.from_run.target is None:
            raise InterventionError("A patch into the decoder needs the output of the other run; give one.")
        if self.positions is not None:
            request.POSITION.check(self.positions[-1][0], self.place, shape)
        elif shape.exact(self.place.side) is None:
            raise InterventionError(
                "While decoding, the length of the output is not known; "
                "name the positions to patch, or patch a forced pass."
            )

    @property
    def site(self) -> tuple[AttentionKind, int] | None:
        return (self.place.kind, self.place.layer) if isinstance(self.place, HeadOutput) else None

    def heads(self, n_heads: int) -> tuple[int, ...]:
        return (self.place.head,) if isinstance(self.place, HeadOutput) else ()

    def moved(self, heads: tuple[int, ...]) -> Self:
        assert isinstance(self.place, HeadOutput)
        return replace(self, place=replace(self.place, head=heads[0]))

    def put_out(self, own: Tensor, first: int, material: Tensor | None) -> Tensor:
        """A place (…, positions, width) with what another run held there; ``first`` is its first position."""
        assert material is not None
        to = [here - first for here, _ in self.pairs(len(material))]
        rows = [row for row, at in enumerate(to) if 0 <= at < own.shape[-2]]
        patched = own.clone()
        patched[..., [to[row] for row in rows], :] = material[rows].to(own)
        return patched

    def pairs(self, length: int) -> tuple[tuple[int, int], ...]:
        """Pairs of positions here and there, for another run of ``length`` positions."""
        return tuple((at, at) for at in range(length)) if self.positions is None else self.positions

    def taken(self, there: int, here: int | None) -> tuple[int, ...]:
        """Positions taken of the other run's ``there``; InterventionError if one does not exist."""
        other = f"The other run has {there} positions in the {self.place.side}"
        if self.positions is None and here != there:
            raise InterventionError(f"{other} and this one {here}; name which position goes where.")
        taken = tuple(at for _, at in self.pairs(there))
        if max(taken) >= there:
            raise InterventionError(f"{other}, counted from 1; there is no position {max(taken) + 1}.")
        return taken


patch: Callable[..., Patch] = Patch
run: Callable[..., OtherRun] = OtherRun
embeddings: Callable[..., Embeddings] = Embeddings
head_output: Callable[..., HeadOutput] = HeadOutput
encoder_output = EncoderOutput


def stream(side: str, layer: int, sublayer: str) -> Stream:
    """The residual stream after a sub-layer; arguments as ``drop_sublayer``."""
    return Stream(request.sublayer_of(side, layer, sublayer))


@dataclass(frozen=True, eq=False)
class HeadMeans:
    """The mean output of every head, before W_O, over all rows of a sample of sentences."""

    outputs: Mapping[AttentionKind, Tensor]  # by kind, (layers, heads, d_head) float32
    about: Mapping[str, str]  # what was measured: data, command, date

    def of(self, kind: AttentionKind, layer: int, heads: tuple[int, ...]) -> Tensor:
        """(heads, d_head): the mean outputs of some heads of a layer, all from 0."""
        return self.outputs[kind][layer, list(heads)]


def as_interventions(values: Iterable[Intervention]) -> tuple[Intervention, ...]:
    """Interventions as a tuple; InterventionError if one is something else, or there are too many."""
    changes = (values,) if isinstance(values, Intervention) else tuple(values)
    for change in changes:
        if not isinstance(change, Intervention):
            raise InterventionError(
                f"{change!r:.60} is not an intervention; make one with transformer.interventions."
            )
    return codec.at_most(changes)


def check(changes: Sequence[Intervention], shape: RunShape) -> None:
    """Raises InterventionError if a change does not fit the request, or if two contradict each other."""
    masks = [change for change in changes if isinstance(change, Mask) and change.kind == "decoder"]
    shape = replace(shape, lifted=lambda query, key: any(mask.allows(query, key) for mask in masks))
    steps, edits = list[int](), list[int]()
    for change in changes:
        change.check(shape)
        if isinstance(change, Choose):
            steps.append(change.step)
        elif isinstance(change, Prefix):
            steps += range(len(change.token_ids))
        elif isinstance(change, EditSource | DropSource):
            edits.append(change.position)
    for noun, places in (("step", steps), ("source token", edits)):
        if twice := [place for place in places if places.count(place) > 1]:
            raise InterventionError(f"Two changes decide {noun} {twice[0] + 1}; keep one of them.")


def edited(
    typed: Sequence[T],  # the tokens of the source as typed, ``</s>`` included
    changes: Iterable[Intervention],  # all changes
    names: Mapping[EditSource, T],  # the tokens of ``EditSource``
) -> tuple[T, ...]:
    """The source as the model reads it; InterventionError if no token is left."""
    source = dict(enumerate(typed))
    for change in changes:
        if isinstance(change, EditSource):
            source[change.position] = names[change]
        elif isinstance(change, DropSource):
            source.pop(change.position, None)
    if not source:
        raise InterventionError("No source token is left; keep one.")
    return tuple(source.values())

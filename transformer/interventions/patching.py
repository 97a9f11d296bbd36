"""Patching: what a place of the model held in another run is put into this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from transformer.interventions.base import (
    PARTS,
    SITES,
    Intervention,
    InterventionError,
    Setting,
    kind_of,
    side_of,
    sublayer_of,
    whole,
)
from transformer.interventions.heads import Acts, InAttention
from transformer.model.sites import AttentionKind, Side, Sublayer

LONGEST_TEXT = 100_000
DEEPEST = 3
"""How deep runs may be nested: a patch from a run that has a patch from a run."""


@dataclass(frozen=True)
class Embeddings:
    """The input of a stack: token embeddings with what positions add to them."""

    side: Side

    def check(self, setting: Setting) -> None:
        """Raises InterventionError if the model has no such place."""
        if self.side not in setting.config.stacks:
            raise InterventionError(f"This model has no {self.side}.")

    def __str__(self) -> str:
        return f"{self.side} embeddings"


@dataclass(frozen=True)
class Stream:
    """The residual stream after a sub-layer."""

    sublayer: Sublayer

    @property
    def side(self) -> Side:
        """The side whose positions it has."""
        return self.sublayer.side

    def check(self, setting: Setting) -> None:
        """Raises InterventionError if the model has no such place."""
        setting.check_sublayer(self.sublayer)

    def __str__(self) -> str:
        where = f"{self.sublayer.side} layer {self.sublayer.layer + 1}"
        return f"{where}, stream after {PARTS[self.sublayer.name]}"


@dataclass(frozen=True)
class HeadOutput:
    """The output of one head, before W_O."""

    kind: AttentionKind
    layer: int
    head: int

    @property
    def side(self) -> Side:
        """The side whose positions it has."""
        return "encoder" if self.kind is AttentionKind.ENCODER else "decoder"

    def check(self, setting: Setting) -> None:
        """Raises InterventionError if the model has no such place."""
        setting.site(self.kind, self.layer)
        if self.head >= setting.config.n_heads:
            raise InterventionError(
                f"There is no head {self.head + 1} of {SITES[self.kind]}: "
                f"a layer has {setting.config.n_heads}, counted from 1."
            )

    def __str__(self) -> str:
        return f"{SITES[self.kind]}, output of layer {self.layer + 1}, head {self.head + 1}"


@dataclass(frozen=True)
class EncoderOutput:
    """What cross-attention reads: the encoder's last stream, with pre-norm after the last LayerNorm."""

    @property
    def side(self) -> Side:
        """The side whose positions it has."""
        return "encoder"

    def check(self, setting: Setting) -> None:
        """Raises InterventionError if the model has no such place."""
        if "encoder" not in setting.config.stacks:
            raise InterventionError("This model has no encoder.")

    def __str__(self) -> str:
        return "encoder output"


PatchPlace = Embeddings | Stream | HeadOutput | EncoderOutput


@dataclass(frozen=True)
class OtherRun:
    """The run that a patch comes from, as all that is needed to repeat it."""

    text: str  # its source text
    target: tuple[int, ...] | None = None  # ids of its output; None if only the encoder is needed
    interventions: tuple[Intervention, ...] = ()  # its own changes

    def __str__(self) -> str:
        with_changes = f", with {len(self.interventions)} changes" if self.interventions else ""
        return f"“{self.text[:60]}{'…' * (len(self.text) > 60)}”{with_changes}"


@dataclass(frozen=True)
class Patch(Intervention, InAttention):
    """What a place held in another run."""

    name: ClassVar[str] = "patch"
    place: PatchPlace  # the place
    from_run: OtherRun  # the other run
    # pairs (position here, position there), from 0; None for every position, which both runs must have in the
    # same number
    positions: tuple[tuple[int, int], ...] | None = None

    @property
    def needs_stream(self) -> bool:
        return not isinstance(self.place, HeadOutput)

    def check(self, setting: Setting) -> None:
        self.place.check(setting)
        if self.place.side == "decoder" and self.from_run.target is None:
            raise InterventionError("A patch into the decoder needs the output of the other run; give one.")
        if self.positions is None:
            if setting.whole(self.place.side) is None:
                raise InterventionError(
                    "While decoding, the length of the output is not known; "
                    "name the positions to patch, or patch a forced pass."
                )
            return
        last, most = max(here for here, _ in self.positions), setting.length(self.place.side)
        if last >= most:
            raise InterventionError(
                f"There is no position {last + 1} in the {self.place.side}: there are at most {most:,}, "
                "counted from 1."
            )

    @property
    def acts_on(self) -> Acts:
        return "output"

    def pairs(self, length: int) -> tuple[tuple[int, int], ...]:
        """Pairs of positions here and there, for another run of ``length`` positions."""
        return tuple((at, at) for at in range(length)) if self.positions is None else self.positions

    def taken(
        self,
        there: int,  # positions of the other run
        here: int | None,  # positions of this run, if they are known
    ) -> tuple[int, ...]:
        """The positions of the other run that the patch takes.

        Raises:
            InterventionError: The lengths differ and no positions are named, or a position does not exist.
        """
        if self.positions is None and here != there:
            raise InterventionError(
                f"The other run has {there} positions in the {self.place.side} and this one {here}; "
                "name which position goes where."
            )
        taken = tuple(there for _, there in self.pairs(there))
        if max(taken) >= there:
            raise InterventionError(
                f"The other run has {there} positions in the {self.place.side}, counted from 1; "
                f"there is no position {max(taken) + 1}."
            )
        return taken

    def __str__(self) -> str:
        where = ""
        if self.positions is not None:
            pairs = [str(a + 1) if a == b else f"{a + 1} ← {b + 1}" for a, b in self.positions[:4]]
            where = f" at {', '.join(pairs)}{' …' * (len(self.positions) > 4)}"
        return f"{self.place}{where} from {self.from_run}"


class DoneRun(Protocol):
    """A finished translation, as far as a patch needs it."""

    @property
    def source_text(self) -> str:
        """Its source text."""

    @property
    def target_ids(self) -> tuple[int, ...]:
        """Ids of its output."""

    @property
    def interventions(self) -> tuple[Intervention, ...]:
        """Its own changes."""


def patch(
    place: PatchPlace,  # ``embeddings``, ``stream``, ``head_output`` or ``encoder_output``
    from_run: OtherRun | DoneRun,  # a translation, or a value of ``run``
    # a map from positions here to positions there, from 0; positions that are the same in both; or None for
    # all, if both runs have the same number
    positions: Mapping[int, int] | Sequence[int] | Sequence[tuple[int, int]] | int | None = None,
) -> Patch:
    """Puts what a place held in another run into this one.

    Raises:
        InterventionError: An argument is of another sort, or runs are nested too deeply.
    """
    if not isinstance(place, PatchPlace):
        raise InterventionError("A patch needs a place: embeddings, stream, head_output or encoder_output.")
    other = from_run if isinstance(from_run, OtherRun) else _other(from_run)
    if depth(other) > DEEPEST:
        raise InterventionError(f"Runs of patches may be nested at most {DEEPEST} deep.")
    if place.side == "encoder" and not other.interventions:
        other = replace(other, target=None)  # the encoder has not seen it
    return Patch(place, other, None if positions is None else _pairs(positions))


def run(
    text: str,  # its source text
    target: Iterable[int] | None = None,  # ids of its output; not needed for places in the encoder
    interventions: Iterable[Intervention] = (),  # its own changes
) -> OtherRun:
    """The run that a patch comes from."""
    if not isinstance(text, str) or not text or len(text) > LONGEST_TEXT:
        raise InterventionError("The other run has no text, or one that is too long.")
    ids = None if target is None else tuple(whole(each, "A target id") for each in target)
    if ids is not None and not 1 <= len(ids) <= 4096:
        raise InterventionError("The other run's output must have from 1 to 4,096 tokens.")
    own = tuple(interventions)
    if not all(isinstance(each, Intervention) for each in own):
        raise InterventionError("The other run's changes are not interventions.")
    return OtherRun(text, ids, own)


def embeddings(side: str) -> Embeddings:
    """The input of the "encoder" or "decoder" stack."""
    return Embeddings(side_of(side))


def stream(side: str, layer: int, sublayer: str) -> Stream:
    """The residual stream after a sub-layer; arguments as ``drop_sublayer``."""
    return Stream(sublayer_of(side, layer, sublayer))


def head_output(kind: AttentionKind | str, layer: int, head: int) -> HeadOutput:
    """The output of one head; layer and head from 0."""
    return HeadOutput(kind_of(kind), whole(layer, "The layer"), whole(head, "The head"))


def encoder_output() -> EncoderOutput:
    """What cross-attention reads."""
    return EncoderOutput()


def depth(other: OtherRun) -> int:
    """How deep runs are nested, 1 without a patch."""
    nested = [depth(each.from_run) for each in other.interventions if isinstance(each, Patch)]
    return 1 + max(nested, default=0)


def _other(done: DoneRun) -> OtherRun:
    try:
        return run(done.source_text, done.target_ids, done.interventions)
    except AttributeError:
        raise InterventionError("A patch comes from a translation, or from a value of run().") from None


def _pairs(
    positions: Mapping[int, int] | Sequence[int] | Sequence[tuple[int, int]] | int,
) -> tuple[tuple[int, int], ...]:
    if isinstance(positions, int):
        positions = [positions]
    if not isinstance(positions, Iterable):
        raise InterventionError("Positions are whole numbers, or a map from positions here to there.")
    items = positions.items() if isinstance(positions, Mapping) else positions
    each = [item if isinstance(item, tuple | list) else (item, item) for item in items]
    if not 1 <= len(each) <= 4096 or any(len(pair) != 2 for pair in each):
        raise InterventionError("Positions are 1 to 4,096 whole numbers, or a map from here to there.")
    pairs = sorted((whole(here, "A position"), whole(there, "A position")) for here, there in each)
    if len(dict(pairs)) != len(pairs):
        raise InterventionError("A position can be patched from one position only.")
    return tuple(pairs)

"""Patching: what a place of the model held in another run is put into this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from transformer.config import AttentionKind
from transformer.interventions.base import InterventionError, Setting, within
from transformer.interventions.fields import Plain, Whole
from transformer.interventions.heads import Acts, InAttention
from transformer.interventions.places import HeadOutput, PatchPlace, PlaceField
from transformer.interventions.written import (
    Field,
    Intervention,
    Json,
    Written,
    from_json,
    read_text,
    to_json,
    write_text,
)

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["OtherRun", "Patch", "patch", "run"]

LONGEST_TEXT = 100_000
DEEPEST = 3
"""Most levels of nested runs: a patch from a run that has a patch from a run."""


class _Text(Field[Any, Any]):
    def validate(self, value: Any) -> str:
        if not isinstance(value, str) or not value or len(value) > LONGEST_TEXT:
            raise InterventionError("The other run has no text, or one that is too long.")
        return value


class _Ids(Field[Any, Any]):
    def validate(self, value: Any) -> tuple[int, ...]:
        ids = tuple(map(Whole("A target id").validate, value))
        if not 1 <= len(ids) <= 4096:
            raise InterventionError("The other run's output must have from 1 to 4,096 tokens.")
        return ids

    def write(self, value: tuple[int, ...]) -> str:
        return ".".join(map(str, value))

    def read(self, text: str) -> list[int]:
        return [int(each) for each in text.split(".")]


class _Changes(Field[Any, Any]):
    def validate(self, value: Any) -> tuple[Intervention, ...]:
        changes = tuple(value)
        if not all(isinstance(each, Intervention) for each in changes):
            raise InterventionError("The other run's changes are not interventions.")
        return changes

    def write(self, value: tuple[Intervention, ...]) -> str:
        return write_text(value)

    def read(self, text: str) -> tuple[Intervention, ...]:
        return read_text(text)

    def to_json(self, value: tuple[Intervention, ...]) -> list[Json]:
        return to_json(value)

    def from_json(self, value: Any) -> tuple[Intervention, ...]:
        return from_json(value)


class OtherRun(Written):
    """The run that a patch comes from, as all that is needed to repeat it."""

    text: Plain[str] = _Text()  # its source text
    # ids of its output; None if only the encoder is needed
    target: Field[tuple[int, ...] | None, Iterable[int] | None] = _Ids(None, "none")
    # its own changes
    interventions: Field[tuple[Intervention, ...], Iterable[Intervention]] = _Changes(())

    def depth(self) -> int:
        """Levels of nested runs, 1 without a patch."""
        nested = [each.from_run.depth() for each in self.interventions if isinstance(each, Patch)]
        return 1 + max(nested, default=0)

    def __str__(self) -> str:
        with_changes = f", with {len(self.interventions)} changes" if self.interventions else ""
        return f"“{self.text[:60]}{'…' * (len(self.text) > 60)}”{with_changes}"


class _Run(Field[Any, Any]):
    """A value of ``run``, or a translation."""

    def validate(self, value: Any) -> OtherRun:
        if isinstance(value, OtherRun):
            return value
        try:
            return OtherRun(value.source_text, value.target_ids, value.interventions)
        except AttributeError:
            raise InterventionError("A patch comes from a translation, or from a value of run().") from None

    def to_text(self, value: OtherRun, parts: list[str]) -> None:
        value.to_text(parts)

    def from_text(self, parts: list[str]) -> OtherRun:
        return OtherRun.from_text(parts)

    def to_json(self, value: OtherRun) -> Json:
        return value.to_json()

    def from_json(self, value: Json) -> OtherRun:
        return OtherRun.from_json(value)


_POSITION = Whole("A position")


class _Pairs(Field[Any, Any]):
    """Pairs of positions (here, there); a number, or several, that are the same in both; or a map."""

    def validate(self, value: Any) -> tuple[tuple[int, int], ...]:
        if isinstance(value, int):
            value = [value]
        if not isinstance(value, Iterable):
            raise InterventionError("Positions are whole numbers, or a map from positions here to there.")
        items = value.items() if isinstance(value, Mapping) else value
        each = [item if isinstance(item, tuple | list) else (item, item) for item in items]
        if not 1 <= len(each) <= 4096 or any(len(pair) != 2 for pair in each):
            raise InterventionError("Positions are 1 to 4,096 whole numbers, or a map from here to there.")
        pairs = sorted((_POSITION.validate(here), _POSITION.validate(there)) for here, there in each)
        if len(dict(pairs)) != len(pairs):
            raise InterventionError("A position can be patched from one position only.")
        return tuple(pairs)

    def write(self, value: tuple[tuple[int, int], ...]) -> str:
        return "-".join(f"{here + 1}.{there + 1}" for here, there in value)

    def read(self, text: str) -> list[tuple[int, ...]]:
        return [tuple(map(_POSITION.read, pair.split("."))) for pair in text.split("-")]


class Patch(InAttention):
    """Content of a place in another run."""

    name: ClassVar[str] = "patch"
    acts_on: ClassVar[Acts] = "output"
    order: ClassVar[tuple[str, ...]] = ("place", "positions", "from_run")
    # ``embeddings``, ``stream``, ``head_output`` or ``encoder_output``
    place: Plain[PatchPlace] = PlaceField()
    from_run: Field[OtherRun, Any] = _Run()  # a translation, or a value of ``run``
    # pairs (position here, position there), from 0; None for every position, which both runs must have in the
    # same number
    positions: Field[
        tuple[tuple[int, int], ...] | None,
        Mapping[int, int] | Sequence[int] | Sequence[tuple[int, int]] | int | None,
    ] = _Pairs(None, "all")

    def __post_init__(self) -> None:
        if self.from_run.depth() > DEEPEST:
            raise InterventionError(f"Runs of patches may be nested at most {DEEPEST} deep.")
        if self.place.side == "encoder" and not self.from_run.interventions:  # it has not seen the output
            object.__setattr__(self, "from_run", replace(self.from_run, target=None))

    @property
    def needs_stream(self) -> bool:
        return not isinstance(self.place, HeadOutput)

    def check(self, setting: Setting) -> None:
        super().check(setting)
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
        within(last, most, "position", f" in the {self.place.side}", f"there are at most {most:,}")

    def heads(self, n_heads: int) -> tuple[int, ...]:
        return (self.place.head,) if isinstance(self.place, HeadOutput) else ()

    def moved(self, heads: tuple[int, ...]) -> Patch:
        assert isinstance(self.place, HeadOutput)
        return replace(self, place=replace(self.place, head=heads[0]))

    def heads_of(self, kind: AttentionKind, layer: int, n_heads: int) -> tuple[int, ...]:
        at = self.place
        return (at.head,) if isinstance(at, HeadOutput) and (at.kind, at.layer) == (kind, layer) else ()

    def put_out(self, own: Tensor, first: int, material: Tensor | None) -> Tensor:
        """A place (…, positions, width) with what another run held there; ``first`` is its first position."""
        assert material is not None
        to = [here - first for here, _ in self.pairs(len(material))]
        rows = [row for row, at in enumerate(to) if 0 <= at < own.shape[-2]]
        made = own.clone()
        made[..., [to[row] for row in rows], :] = material[rows].to(own)
        return made

    def pairs(self, length: int) -> tuple[tuple[int, int], ...]:
        """Pairs of positions here and there, for another run of ``length`` positions."""
        return tuple((at, at) for at in range(length)) if self.positions is None else self.positions

    def taken(self, there: int, here: int | None) -> tuple[int, ...]:
        """Positions taken of the other run's ``there``; InterventionError if one does not exist."""
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


patch, run = Patch, OtherRun

"""The places that a patch may fill: each can be written, read and checked."""

from __future__ import annotations

from typing import Any, ClassVar

from transformer.config import AttentionKind, Side, Sublayer
from transformer.interventions.base import PARTS, SITES, InterventionError, Setting
from transformer.interventions.fields import Head, Kind, Layer, Plain, SideField, SublayerField, sublayer_of
from transformer.interventions.written import Field, Json, Written

__all__ = ["Embeddings", "EncoderOutput", "HeadOutput", "Stream"]
__all__ += ["embeddings", "encoder_output", "head_output", "stream"]


class PatchPlace(Written):
    """A place that can be patched, in the compact text ``stream.decoder.2.cross``, ``head.cross.2.6``."""

    name: ClassVar[str]
    """Its name in the compact text."""
    at: ClassVar[str] = ""
    """Its name in JSON, if that is another."""

    @property
    def side(self) -> Side:
        """The side whose positions it has."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        PLACES[cls.name] = cls


PLACES: dict[str, type[PatchPlace]] = {}
"""Every sort of place, by its name in the compact text."""


class Embeddings(PatchPlace):
    """The input of a stack: token embeddings with what positions add to them."""

    name: ClassVar[str] = "embeddings"
    side: Plain[Side] = SideField()  # "encoder" or "decoder"

    def __str__(self) -> str:
        return f"{self.side} embeddings"


class Stream(PatchPlace):
    """The residual stream after a sub-layer."""

    name: ClassVar[str] = "stream"
    sublayer: Plain[Sublayer] = SublayerField()

    @property
    def side(self) -> Side:
        return self.sublayer.side

    def to_json(self) -> Json:
        return {**self.declared["sublayer"].to_json(self.sublayer)}

    @classmethod
    def from_json(cls, values: Json) -> Stream:
        return stream(**values)

    def __str__(self) -> str:
        where = f"{self.sublayer.side} layer {self.sublayer.layer + 1}"
        return f"{where}, stream after {PARTS[self.sublayer.name]}"


class HeadOutput(PatchPlace):
    """The output of one head, before W_O."""

    name: ClassVar[str] = "head"
    kind: Field[AttentionKind, AttentionKind | str] = Kind()  # which attention
    layer: Plain[int] = Layer("The layer")  # from 0
    head: Plain[int] = Head("The head")  # from 0

    @property
    def side(self) -> Side:
        return "encoder" if self.kind is AttentionKind.ENCODER else "decoder"

    def __str__(self) -> str:
        return f"{SITES[self.kind]}, output of layer {self.layer + 1}, head {self.head + 1}"


class EncoderOutput(PatchPlace):
    """The memory of cross-attention: the encoder's last stream, with pre-norm after its last LayerNorm."""

    name: ClassVar[str] = "output"
    at: ClassVar[str] = "encoder output"

    @property
    def side(self) -> Side:
        return "encoder"

    def check(self, setting: Setting) -> None:
        setting.check_side(self.side)

    def __str__(self) -> str:
        return "encoder output"


embeddings, head_output, encoder_output = Embeddings, HeadOutput, EncoderOutput


def stream(side: str, layer: int, sublayer: str) -> Stream:
    """The residual stream after a sub-layer; arguments as ``drop_sublayer``."""
    return Stream(sublayer_of(side, layer, sublayer))


class PlaceField(Field[Any, Any]):
    """A place of a patch."""

    def validate(self, value: Any) -> PatchPlace:
        if not isinstance(value, PatchPlace):
            raise InterventionError(
                "A patch needs a place: embeddings, stream, head_output or encoder_output."
            )
        return value

    def check(self, value: PatchPlace, of: Any, setting: Setting) -> None:
        value.check(setting)

    def write(self, value: PatchPlace) -> str:
        parts = [value.name]
        value.to_text(parts)
        return ".".join(parts)

    def read(self, text: str) -> PatchPlace:
        name, *parts = text.split(".")
        if name in PLACES:
            found = PLACES[name].from_text(parts)
            if not parts:
                return found
        raise InterventionError(f"There is no place {text!r:.40} to patch.")

    def to_json(self, value: PatchPlace) -> Json:
        return {"at": value.at or value.name, **value.to_json()}

    def from_json(self, value: Json) -> PatchPlace:
        sort = {each.at or each.name: each for each in PLACES.values()}[value["at"]]
        return sort.from_json({name: each for name, each in value.items() if name != "at"})

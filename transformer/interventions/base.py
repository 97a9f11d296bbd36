"""What any change of a run is: a value whose fields are exact, and what it can be asked."""

import functools
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import ClassVar, Literal, TypeVar, get_type_hints

from transformer.config import AttentionKind, ModelConfig, Side
from transformer.interventions.fields import Form, Raw
from transformer.interventions.words import PARTS, SITES

Part = Literal["tokens", "mask", "scores", "weights", "heads", "stream"]
"""What is changed: tokens; the mask, scores, weights or heads' outputs of an attention; the
stream."""
DAMAGES = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
T = TypeVar("T")
C = TypeVar("C", bound="Intervention")


class InterventionError(ValueError):
    """A change that cannot be made; the message says why in one sentence, and counts from 1."""


def attempt(make: Callable[[Raw], T], value: Raw, wrong: str) -> T:
    """What is made of a value; InterventionError if that fails, with the value as ``{}``."""
    try:
        return make(value)
    except InterventionError:
        raise
    except DAMAGES as error:
        raise InterventionError(wrong.format(reprlib.repr(value))) from error


@dataclass(frozen=True)
class Bounds:
    """How many there are of what a change counts."""

    where: str  # in words
    counts: Mapping[str, int]  # by noun
    grows: frozenset[str]  # nouns of which there may be fewer, because the output is being decoded

    def check(self, noun: str, index: int) -> None:
        """InterventionError if there is no thing of this number, from 0."""
        count = self.counts.get(noun, inf)
        if index < count:
            return
        most = "at most " if noun in self.grows else ""
        name = "source token" if noun == "typed" else noun
        raise InterventionError(
            f"There is no {name} {index + 1} in {self.where}: there are {most}{count:,}, counted "
            "from 1."
        )


@dataclass(frozen=True)
class RunShape:
    """The request that a change is checked against: the model and the lengths of both sides."""

    config: ModelConfig
    typed: int  # number of source tokens as typed, ``</s>`` included
    source: int  # number of source tokens as the model reads them
    target: int  # most tokens of the output
    forced: int | None = (
        None  # number of tokens of the output in a forced pass; None while decoding
    )

    @property
    def decoding(self) -> bool:
        """Whether the output is not known yet."""
        return self.forced is None

    def exact(self, side: Side) -> int | None:
        """Number of tokens of a side; None if it is not known before the output is."""
        return self.source if side == "encoder" else self.forced

    @property
    def lengths(self) -> dict[Side, int]:
        """Most tokens of each side."""
        return {"encoder": self.source, "decoder": self.target}

    def of_run(self) -> Bounds:
        """Bounds of what belongs to the texts."""
        return self._bounds("this run", {})

    def of_attention(self, kind: AttentionKind) -> Bounds:
        """Bounds in the attentions of a kind; InterventionError if the model has none."""
        site = self.config.sites.get(kind)
        if site is None:
            raise InterventionError(f"This model has no {SITES[kind]}.")
        counts = {
            "query": self.lengths[site.query_side],
            "key": self.lengths[site.key_side],
            "layer": site.n_layers,
        }
        return self._bounds(SITES[kind], counts)

    def of_stack(self, side: Side, sublayer: str | None = None) -> Bounds:
        """Bounds in a stack; InterventionError if the model lacks it, or its layers the
        sub-layer."""
        stack = self.config.stacks.get(side)
        if stack is None:
            raise InterventionError(f"This model has no {side}.")
        if sublayer is not None and sublayer not in stack.sublayers:
            raise InterventionError(f"A layer of the {side} has no {PARTS[sublayer]}.")
        counts = {"position": self.lengths[side], "layer": stack.n_layers}
        return self._bounds(f"the {side}", counts)

    def _bounds(self, where: str, counts: Mapping[str, int]) -> Bounds:
        texts = {
            "step": self.target,
            "typed": self.typed,
            "source token": self.source,
            "head": self.config.n_heads,
        }
        grows = ("step", "query", "key", "position") if self.decoding else ()
        return Bounds(where=where, counts=texts | dict(counts), grows=frozenset(grows))


@dataclass(frozen=True)
class Intervention:
    """One change of a run: a value that can be printed, compared, used as a key and written to a
    file.

    Whatever is set, from Python, JSON or an address, becomes exact when a change is made, or is
    refused in one sentence.
    """

    known: ClassVar[dict[str, type["Intervention"]]] = {}
    """All kinds of changes by name."""
    name: ClassVar[str]
    """Its name in text and in JSON."""
    changes: ClassVar[Part]
    """What it changes."""
    steers: ClassVar[bool] = False
    """Whether it decides what is written; a model that is an encoder alone writes nothing."""

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            Intervention.known[cls.name] = cls

    def __post_init__(self) -> None:
        for name, form, value in self.values():
            wrong = f"The {name.replace('_', ' ')} is {{}}; it must be {form.said}."
            object.__setattr__(self, name, attempt(form.make, value, wrong))

    def values(self) -> list[tuple[str, Form, Raw]]:
        """Each field: its name, what it may be, what it is."""
        return [(name, form, getattr(self, name)) for name, form in self.forms().items()]

    @classmethod
    @functools.cache
    def forms(cls) -> dict[str, Form]:
        """What each field may hold: the form that stands beside its type."""
        hints = get_type_hints(cls, include_extras=True)
        return {field.name: hints[field.name].__metadata__[0] for field in fields(cls)}

    @property
    def named_ids(self) -> tuple[int, ...]:
        """The tokens that it names by their ids, which mean something in one vocabulary only."""
        return ()

    @property
    def decides(self) -> tuple[str, ...]:
        """What no other change of a run may decide, too, in words."""
        return ()

    @property
    def part(self) -> Part:
        """What it changes."""
        return self.changes

    def bounds(self, shape: RunShape) -> Bounds:
        """How many there are of what its fields count; InterventionError if a thing is missing."""
        return shape.of_run()

    def check(self, shape: RunShape, changes: Sequence["Intervention"]) -> None:
        """InterventionError if it does not fit a run that has all these changes."""
        bounds = self.bounds(shape)
        for _, form, value in self.values():
            for noun, index in form.indices(value):
                bounds.check(noun, index)

    def heads(self, n_heads: int) -> tuple[int, ...]:
        """The heads in which it acts where it acts."""
        return tuple(range(n_heads))

    def acts_in(self, kind: AttentionKind, layer: int) -> bool:
        """Whether it changes an attention sub-layer."""
        return False

    def heads_of(self, kind: AttentionKind, layer: int, n_heads: int) -> tuple[int, ...]:
        """The heads of an attention sub-layer in which it acts."""
        if not self.acts_in(kind, layer):
            return ()
        return self.heads(n_heads)

    def elsewhere(self, heads: tuple[int, ...]) -> "Intervention":
        """The same change of other heads of its layer; InterventionError if it changes no heads."""
        raise InterventionError(f"This is no change of heads: {self}.")

    def hooks(self, config: ModelConfig) -> Iterator[str]:
        """The names of what it changes in a model (``transformer.hooks``)."""
        for kind, site in config.sites.items():
            for layer, path in enumerate(site.paths):
                if self.acts_in(kind, layer):
                    yield f"{path}.{self.part}"


def exact(kind: Callable[..., C], /, **typed: Raw) -> C:
    """A change of what people type: its class makes each value exact, or refuses it."""
    return kind(**typed)

"""What the fields of interventions may hold, and their codec: compact text, sentences and JSON.

``FIELDS`` says of every field what it may be, and ``kind`` makes a kind of change of some. What is set, from
Python, JSON or an address, is converted when a change is made, or refused in one sentence.

JSON counts from 0: ``{"do": "ablate", "kind": "cross", "layer": 1, "head": [5], …}``; the compact text, for
people, from 1: ``ablate_cross_2_6_mean~choose_4_▁ist``. It leaves out the last fields if they are as usual.
``~`` separates changes, ``_`` fields, ``-`` several values, ``.`` a pair; ``x`` is None; other signs that
could be taken for one of these are escaped, as ``%5F``.
"""

from __future__ import annotations

import dataclasses
import re
import reprlib
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from transformer.config import AttentionKind, ModelConfig
from transformer.text.kinds import Kind, number, one_of, whole

MOST_CHANGES, MOST_VALUES, LONGEST, FEW = 64, 4096, 20_000, 4
"""Most changes of a run, values of a field, characters of a text, and values that a sentence lists."""
DAMAGES = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
REGIONS = {
    "all": "every key",
    "future": "later keys",
    "next": "the key after the query",
    "self": "the query's own key",
    "past": "earlier keys",
}
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
PLACE_NAME = (  # the name in ``transformer.hooks``, side, layer, sub-layer, and of one head its number
    r"((encoder|decoder)\.(?:input|output|([0-9]{1,4})\.([a-z]+_[a-z]+)\.(?:stream|heads(?=\.))))"
    r"(?:(?<=heads)\.([0-9]{1,4}))?"
)


class InterventionError(ValueError):
    """A change that cannot be made; the message says why in one sentence, and counts from 1."""


def attempt(make: Callable[[Any], Any], value: Any, wrong: str) -> Any:
    """What is made of a value; InterventionError if that fails, with the value as ``{}``."""
    try:
        return make(value)
    except InterventionError:
        raise
    except DAMAGES as error:
        raise InterventionError(wrong.format(reprlib.repr(value))) from error


def counted(name: str) -> str:
    """A place, counted from 1: ``decoder layer 2 cross-attention head 6``."""
    named = re.sub(r"heads\.", "head.", re.sub(r"\.([0-9]+\..)", r".layer.\1", name)).split(".")
    return " ".join(str(int(part) + 1) if part.isdigit() else PARTS.get(part, part) for part in named)


@dataclass(frozen=True, eq=False)
class Unit:
    """A single value, and how it is written."""

    kind: Kind  # what may be set
    make: Callable[[Any], Any] = lambda value: value  # the value of it
    write: Callable[[Any], str] = str
    read: Callable[[str], Any] = str  # what ``write`` wrote → what may be set
    words: Callable[[Any], str] = str  # in a sentence; of an index also None, for every one
    counts: str = ""  # the thing of which it is a number, from 0


WHOLE = whole(0, most=2**31 - 1)
NUMBER = partial(Unit, make=float, write=repr, read=float, words="{:g}".format)


def index(noun: str, counts: str = "", every: bool = False) -> Unit:
    """A number, from 0, of what is counted; or None for every one."""
    return Unit(
        Kind(WHOLE.said, lambda value: (every and value is None) or WHOLE.holds(value)),
        lambda value: None if value is None else int(value),
        write=lambda value: "x" if value is None else str(value + 1),
        read=lambda text: None if every and text == "x" else int(text) - 1,
        words=lambda value: f"every {noun}" if value is None else f"{noun} {value + 1}".lstrip(),
        counts=counts or noun,
    )


def text(said: str, pattern: str, words: Callable[[Any], str] = str) -> Unit:
    """A text of a pattern."""
    parsed = re.compile(pattern, re.DOTALL)
    return Unit(Kind(said, lambda text: isinstance(text, str) and bool(parsed.fullmatch(text))), words=words)


def choice(words: Mapping[Any, str]) -> Unit:
    """A name, by what sentences call each; a text has what stands before its first ``_``."""
    known, short = {name: name for name in words}, {name.partition("_")[0]: name for name in words}
    write = lambda name: name.partition("_")[0]  # noqa: E731
    return Unit(one_of(*words), known.__getitem__, write, short.__getitem__, words.__getitem__)


@dataclass(frozen=True, eq=False)
class Field:
    """What a field of a change may hold: one unit or a pair of units, or several of these."""

    units: tuple[Unit, ...]
    least: int | None = None  # several values, at least so many; None for one alone
    usual: Any = ...  # its default; with None, it may be None
    names: Unit | None = None  # what may stand for a pair
    twice: bool = False  # whether a number alone stands for a pair of it, in this run and another

    @property
    def said(self) -> str:
        """What it must be, in words."""
        one = " and ".join(unit.kind.said for unit in self.units)
        one = f"a pair of {one}" if len(self.units) > 1 else one
        one = f"{', '.join(map(str, self.names.kind.choices))} or {one}" if self.names else one
        return one if self.least is None else f"from {self.least} to {MOST_VALUES:,} values, each {one}"

    def parts(self, one: Any) -> list[tuple[Unit, Any]]:
        """The units of one value, each with its part of it."""
        if self.names and isinstance(one, str):
            return [(self.names, one)]
        return [*zip(self.units, one if len(self.units) > 1 else (one,), strict=True)]

    def several(self, value: Any) -> list[list[tuple[Unit, Any]]]:
        """These of each; None stands for none."""
        return list(map(self.parts, (value,) if self.least is None else value or ()))

    def make(self, value: Any) -> Any:
        """The value of what may be set: of several, one alone, a map for its pairs, or numbers for a map
        from 0, 1, …; one of ``DAMAGES`` if it means nothing."""
        if value is None and self.usual is None:
            return None
        pairs, alone = len(self.units) > 1, isinstance(value, str) or not isinstance(value, Iterable)
        ones = [value] if alone or self.least is None else value
        ones = ones.items() if isinstance(ones, Mapping) else ones
        if pairs:
            numbered = ((one, one) for one in ones) if self.twice else enumerate(ones)
            ones = [pair if isinstance(pair[1], int | float) else pair[1] for pair in numbered]
        rows = [[unit.make(unit.kind.check("", part)) for unit, part in self.parts(one)] for one in ones]
        values = [tuple(row) if len(row) > 1 else row[0] for row in rows]
        if self.least is None:
            return values[0]
        if self.units[0].counts and not self.names:  # a set, or a map if they are pairs
            values = sorted(set(values))
        keys = {value[0] for value in values} if pairs and not self.names else values
        if len(keys) < len(values) or not self.least <= len(values) <= MOST_VALUES:
            raise ValueError("There are too many values, too few, or two for one key.")
        return tuple(values)

    def write(self, value: Any) -> str:
        """Its compact text."""
        texts = (".".join(unit.write(part) for unit, part in parts) for parts in self.several(value))
        return "x" if value is None else next(texts) if self.least is None else join("-", texts)

    def read(self, text: str) -> Any:
        """What may be set, from what ``write`` wrote."""
        if text == "x" and self.usual is None:
            return None
        values = list[Any]()
        for one in [text] if self.least is None else split("-", text) if text else ():
            units = (self.names,) if self.names and "." not in one else self.units
            parts = zip(units, one.split(".", len(units) - 1), strict=True)
            first, *second = [unit.read(part) for unit, part in parts]
            values.append((first, *second) if second else first)
        return values[0] if self.least is None else values

    def words(self, value: Any) -> str:
        """A value in a sentence."""
        arrow, said = " ← " if self.twice else " → ", list[str]()
        for parts in self.several(value) or [self.parts(None)]:
            same = self.twice and parts[0][1] == parts[1][1]
            said.append(arrow.join(unit.words(part) for unit, part in parts[: 1 if same else None]))
        return ", ".join(said[:FEW]) + f" … ({len(said)} in all)" * (len(said) > FEW)

    def indices(self, value: Any) -> list[tuple[str, int]]:
        """Every number from 0 in a value, with what it counts."""
        parts = (part for parts in self.several(value) for part in parts)
        return [(unit.counts, at) for unit, at in parts if unit.counts and at is not None]


def join(separator: str, parts: Iterable[str]) -> str:
    """Parts side by side; what would be taken for a separator is escaped."""
    signs = "[%~_]" if separator == "_" else f"[%{separator}]"
    return separator.join(re.sub(signs, lambda sign: f"%{ord(sign[0]):02X}", part) for part in parts)


def split(separator: str, text: str) -> list[str]:
    """The parts that were joined."""
    plain = "%([0-9A-F]{2})"
    return [re.sub(plain, lambda sign: chr(int(sign[1], 16)), part) for part in text.split(separator)]


PIECE = text("a piece such as '▁ist', or its id", ".{1,200}").kind
TOKEN = Unit(
    Kind(PIECE.said, lambda value: PIECE.holds(value) or WHOLE.holds(value)),
    lambda value: value if isinstance(value, str) else int(value),
    write=lambda value: f".{value}" if isinstance(value, str) and re.match(r"[0-9.]", value) else str(value),
    read=lambda text: int(text) if re.match("[0-9]", text) else text.removeprefix("."),
    words=lambda value: f"“{value}”" if isinstance(value, str) else f"token {value}",
)
CHANGE = Unit(
    Kind("a change", bool), lambda at: change_of(at), lambda at: write_text([at]), words=attrgetter("name")
)
# a name of ``transformer.hooks``; of one head, with its number: ``decoder.1.cross_attention.heads.5``
PLACE = text("one of embeddings, stream, head_output and encoder_output", PLACE_NAME, counted)
TEXT = text("a text of 1 to 100,000 letters", ".{1,100000}", lambda text: textwrap.shorten(text, 60))
CELLS = Field((index("query", every=True), index("key", every=True)), 0, (), choice(REGIONS))
FIELDS = {
    "kind": Field((choice(SITES),)),  # of attention
    "layer": Field((index("layer"),)),
    "head": Field((index("head"),), 1),
    "by": Field((choice(BY),), usual="zero"),  # what takes the place of what a head computes
    "factor": Field((NUMBER(number(-1e6, 1e6)),)),
    "temperature": Field((NUMBER(number(0.001, 1000)),)),
    "rows": Field((index("row", "query"),), 1),
    "query": Field((index("query"),)),
    # keys with their weights; set by pairs, by a map, or by the weights of keys 0, 1, …
    "given": Field((index("key"), NUMBER(number(0, 1))), 1),
    "source_token": Field((index("source token"),)),  # as the model reads it
    "position": Field((index("source token", "typed"),)),
    "token": Field((TOKEN,)),
    "token_ids": Field((TOKEN,), 1),
    "step": Field((index("step"),)),
    "allow": CELLS,  # to be seen although the model's mask hides them
    "forbid": CELLS,  # to be hidden; they win over ``allow``
    "side": Field((choice({"encoder": "encoder", "decoder": "decoder"}),)),
    "sublayer": Field((choice(PARTS),)),
    "place": Field((PLACE,)),
    "text": Field((TEXT,)),  # of another run
    # pairs (position here, position there), a number alone for both; None for every position, which both runs
    # must have in the same number
    "positions": Field((index("position"), index("")), 1, twice=True),
    "target": Field((Unit(WHOLE, int, read=int),), 1),  # the other run's output
    "interventions": Field((CHANGE,), 0, ()),  # and its own changes
}
"""What each field of a change may be; positions, layers and heads count from 0."""


class Intervention:
    """One change of a run: a value that can be printed, compared, used as a key and written to a file."""

    known: ClassVar[dict[str, Any]] = {}
    """All kinds of changes by name."""
    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __post_init__(self) -> None:
        for name, field, value in self.values():
            wrong = f"The {name.replace('_', ' ')} is {{}}; it must be {field.said}."
            object.__setattr__(self, name, attempt(field.make, value, wrong))

    def values(self) -> list[tuple[str, Field, Any]]:
        """Each field: its name, what it may be, what it is."""
        fields: dict[str, Field] = self.fields
        return [(name, field, getattr(self, name)) for name, field in fields.items()]

    def __str__(self) -> str:
        def said(match: re.Match[str]) -> str:
            return match[1] if getattr(self, match[2]) not in (None, ()) else match[3] or ""

        sentence = re.sub(r"\[([^]|]*\{(\w+)\}[^]|]*)(?:\|([^]]*))?\]", said, self.says)
        return re.sub(r"\{(\w+)\}", lambda at: self.fields[at[1]].words(getattr(self, at[1])), sentence)

    @property
    def part(self) -> str:
        """What it changes: "tokens"; "mask", "scores", "weights" or "heads" of an attention; the "stream"."""
        part = "stream" if "." in self.changes else self.changes
        return "heads" if getattr(self, "by", "") in ("zero", "mean") else part

    def heads(self, n_heads: int) -> tuple[int, ...]:
        """The heads in which it acts there."""
        heads: tuple[int, ...] | None = getattr(self, "head", None)
        return tuple(range(n_heads)) if heads is None else heads

    def heads_of(self, kind: AttentionKind, layer: int, n_heads: int) -> tuple[int, ...]:
        """The heads of an attention sub-layer in which it acts."""
        acts = getattr(self, "kind", None) == kind and self.layer in (None, layer)
        return self.heads(n_heads) if acts else ()

    def hooks(self, config: ModelConfig) -> Iterator[str]:
        """The names of what it changes in a model (``transformer.hooks``)."""
        if self.part == "stream":
            yield self.changes.format(**vars(self)).replace(".None", "")
        for kind, site in config.sites.items():
            for layer in range(site.n_layers):
                if self.heads_of(kind, layer, config.n_heads):
                    yield f"{site.sublayer(layer).path}.{self.part}"


def kind(title: str, changes: str, has: str, says: str, base: type = Intervention, **more: Any) -> Any:
    """A kind of change: a frozen dataclass.

    It changes "tokens", a part of an attention, or a name of ``transformer.hooks`` made of its fields. Of
    these, one with ``?`` may be None, one with ``=`` has a default. Its sentence has their names, and in
    brackets what is said only if the field there has a value, with what is said otherwise after ``|``.
    """
    fields, parameters = dict[str, Field](), list[tuple[str, Any, Any]]()
    for field, optional, default in re.findall(r"(\w+)(\??)(=?)", has):
        fields[field] = may = replace(FIELDS[field], usual=None) if optional else FIELDS[field]
        parameters.append((field, Any, dataclasses.field(default=may.usual if default else MISSING)))
    more = {"name": title.lower(), "fields": fields, "says": says, "changes": changes} | more
    more["__module__"] = __package__  # where it is a name
    made: Any = dataclasses.make_dataclass(title, parameters, bases=(base,), namespace=more, frozen=True)
    Intervention.known[made.name] = made
    return made


def change_of(value: Any) -> Intervention:
    """A change as it is, or from its JSON or compact text; one of ``DAMAGES`` if it means nothing."""
    if isinstance(value, Intervention):
        return value
    if isinstance(value, str):
        name, *texts = split("_", value)
        fields = list(Intervention.known[name].fields.items())[: len(texts)]
        value = {field: may.read(text) for (field, may), text in zip(fields, texts, strict=True)} | {
            "do": name
        }
    return Intervention.known[value["do"]](**{field: part for field, part in value.items() if field != "do"})


def write_text(changes: Iterable[Intervention]) -> str:
    """Interventions as compact text; empty without any."""
    texts = list[str]()
    for change in changes:
        values = change.values()
        while values and values[-1][2] == getattr(type(change), values[-1][0], ...):  # its default
            del values[-1]
        texts.append(join("_", [change.name, *(field.write(value) for _, field, value in values)]))
    return "~".join(texts)


def to_json(value: Any) -> Any:
    """Interventions, or what they hold, as JSON values."""
    if isinstance(value, Intervention):
        return {"do": value.name} | {name: to_json(part) for name, _, part in value.values()}
    if isinstance(value, str):
        return str(value)
    return [to_json(item) for item in value] if isinstance(value, Iterable) else value


def as_interventions(values: Any) -> tuple[Intervention, ...]:
    """Changes as they are, from their JSON or from compact text; InterventionError if something else is
    among them, or too much."""
    if isinstance(values, str):
        if len(values) > LONGEST:
            raise InterventionError(f"The changes take more than {LONGEST:,} characters.")
        values = values.split("~") if values else ()
    values = (values,) if isinstance(values, Intervention) else values
    changes = attempt(tuple, values, "The changes {} cannot be read.")
    if len(changes) > MOST_CHANGES:
        raise InterventionError(f"A run takes at most {MOST_CHANGES} changes; there are {len(changes)}.")
    return tuple(attempt(change_of, value, "The change {} cannot be read.") for value in changes)


read_text = from_json = as_interventions

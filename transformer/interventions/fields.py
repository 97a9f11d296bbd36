"""What the fields of changes may hold: what people may set, and how it is written as compact text.

A field's type has its ``Form`` beside it: ``Annotated[int, One(Index("layer"))]``. A ``Unit`` is a
form's single value: a kind of value (``transformer.text.kinds``) with its compact text. Positions,
layers and heads count from 0 in Python and JSON, and from 1 in text, where ``-`` separates several
values, ``.`` the two of a pair, and ``x`` is None; signs that could be taken for one of these are
escaped, as ``%5F``.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from transformer.interventions.words import LATER, REGIONS
from transformer.text import kinds
from transformer.text.kinds import Kind

T = TypeVar("T")
Raw = Any
"""What people, files and addresses say, before it is known to mean something."""
MOST_VALUES = 4096
"""Most values of a field."""
WHOLE = kinds.whole(0, most=2**31 - 1)
_ESCAPED = {"_": "[%~_]", "-": "[%-]"}


def join(separator: str, texts: Iterable[str]) -> str:
    """Texts side by side; what would be taken for a separator is escaped."""
    signs = re.compile(_ESCAPED[separator])
    return separator.join(signs.sub(lambda sign: f"%{ord(sign[0]):02X}", text) for text in texts)


def split(separator: str, text: str) -> list[str]:
    """The texts that were joined."""
    escaped = re.compile("%([0-9A-F]{2})")
    return [
        escaped.sub(lambda sign: chr(int(sign[1], 16)), field) for field in text.split(separator)
    ]


# --- single values -------------------------------------------------------------------------------


class Unit(ABC):
    """A single value."""

    kind: Kind
    """What may be set."""
    counts: str = ""
    """The thing of which it is a number, from 0; empty for what is no such number."""

    @abstractmethod
    def make(self, value: Raw) -> Raw:
        """The value of what is set; ValueError, TypeError or LookupError if it means nothing."""

    def checked(self, value: T) -> T:
        """What is set; ValueError if it is of another kind."""
        return self.kind.check("", value)

    def write(self, value: Raw) -> str:
        return str(value)

    def read(self, text: str) -> Raw:
        """What may be set, from what ``write`` wrote."""
        return text


class Index(Unit):
    """A number, from 0, of what is counted; with ``every`` also None, for every one."""

    kind = WHOLE

    def __init__(self, noun: str, counts: str | None = None, every: bool = False) -> None:
        self.counts = noun if counts is None else counts
        self.every = every

    def make(self, value: Raw) -> int | None:
        if self.every and value is None:
            return None
        return int(self.checked(value))

    def write(self, value: Raw) -> str:
        if value is None:
            return "x"
        return str(value + 1)

    def read(self, text: str) -> int | None:
        if self.every and text == "x":
            return None
        return int(text) - 1


class Id(Unit):
    """The id of a token."""

    kind = WHOLE

    def make(self, value: Raw) -> int:
        return int(self.checked(value))

    def read(self, text: str) -> int:
        return int(text)


class Number(Unit):
    """A number in a range, its ends included."""

    def __init__(self, low: float, high: float) -> None:
        self.kind = kinds.number(low, high)

    def make(self, value: Raw) -> float:
        return float(self.checked(value))

    def write(self, value: Raw) -> str:
        return repr(value)

    def read(self, text: str) -> float:
        return float(text)


class Name(Unit):
    """One of a few names; a text has what stands before its first ``_``."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = {name: name for name in names}
        self.kind = kinds.one_of(*self.names)
        self.short = {name.partition("_")[0]: name for name in self.names}

    def make(self, value: Raw) -> str:
        return self.names[self.checked(value)]

    def write(self, value: Raw) -> str:
        return str(value).partition("_")[0]

    def read(self, text: str) -> str:
        return self.short[text]


class Text(Unit):
    """A text of a pattern."""

    def __init__(self, said: str, pattern: str) -> None:
        form = re.compile(pattern, re.DOTALL)
        self.kind = Kind(
            said, lambda value: isinstance(value, str) and form.fullmatch(value) is not None
        )

    def make(self, value: Raw) -> str:
        text: str = self.checked(value)
        return text


class Token(Unit):
    """A token by its piece or its id; in text, a piece that begins like an id has ``.`` before
    it."""

    kind = Kind(
        "a piece such as '▁ist', or its id",
        lambda value: 0 < len(value) <= 200 if isinstance(value, str) else WHOLE.holds(value),
    )

    def make(self, value: Raw) -> int | str:
        if isinstance(value, str):
            return self.checked(value)
        return int(self.checked(value))

    def write(self, value: Raw) -> str:
        if isinstance(value, str) and re.match(r"[0-9.]", value):
            return f".{value}"
        return str(value)

    def read(self, text: str) -> int | str:
        if re.match("[0-9]", text):
            return int(text)
        return text.removeprefix(".")


# --- what a field holds --------------------------------------------------------------------------


class Form(ABC):
    """What a field may hold."""

    said: str
    """What may be set, in words, after "it must be"."""

    @abstractmethod
    def make(self, value: Raw) -> Raw:
        """The value of what is set; ValueError, TypeError or LookupError if it means nothing."""

    @abstractmethod
    def write(self, value: Raw) -> str: ...

    @abstractmethod
    def read(self, text: str) -> Raw:
        """What may be set, from what ``write`` wrote."""

    def indices(self, value: Raw) -> Iterator[tuple[str, int]]:
        """Every number from 0 in a value, with what it counts."""
        return iter(())


class One(Form):
    """One value."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.said = unit.kind.said

    def make(self, value: Raw) -> Raw:
        return self.unit.make(value)

    def write(self, value: Raw) -> str:
        return self.unit.write(value)

    def read(self, text: str) -> Raw:
        return self.unit.read(text)

    def indices(self, value: Raw) -> Iterator[tuple[str, int]]:
        if self.unit.counts:
            yield self.unit.counts, value


class OrNone(Form):
    """What another form holds, or None."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.said = form.said

    def make(self, value: Raw) -> Raw:
        if value is None:
            return None
        return self.form.make(value)

    def write(self, value: Raw) -> str:
        if value is None:
            return "x"
        return self.form.write(value)

    def read(self, text: str) -> Raw:
        if text == "x":
            return None
        return self.form.read(text)

    def indices(self, value: Raw) -> Iterator[tuple[str, int]]:
        if value is not None:
            yield from self.form.indices(value)


class ManyForm(Form):
    """Several values; one that is set alone stands for a list of it."""

    def __init__(
        self,
        least: int,  # how many there are at least
        one: str,  # what each may be, in words
    ) -> None:
        self.least = least
        self.said = f"from {least} to {MOST_VALUES:,} values, each {one}"

    def make(self, value: Raw) -> tuple[Raw, ...]:
        values = self.make_each(self._listed(value))
        if not self.least <= len(values) <= MOST_VALUES:
            raise ValueError(self.said)
        return tuple(values)

    def _listed(self, value: Raw) -> Iterable[Raw]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            return [value]
        return value.items() if isinstance(value, Mapping) else value

    @abstractmethod
    def make_each(self, values: Iterable[Raw]) -> Sequence[Raw]:
        """The values of what is set."""

    def write(self, value: Raw) -> str:
        return join("-", map(self.write_one, value))

    @abstractmethod
    def write_one(self, value: Raw) -> str: ...

    def read(self, text: str) -> Raw:
        if not text:
            return []
        return [self.read_one(value) for value in split("-", text)]

    @abstractmethod
    def read_one(self, text: str) -> Raw: ...


class Several(ManyForm):
    """Several values of one unit; numbers of counted things are a set."""

    def __init__(self, unit: Unit, least: int = 1) -> None:
        super().__init__(least, unit.kind.said)
        self.unit = unit

    def make_each(self, values: Iterable[Raw]) -> Sequence[Raw]:
        exact = [self.unit.make(value) for value in values]
        return sorted({*exact}) if self.unit.counts else exact

    def write_one(self, value: Raw) -> str:
        return self.unit.write(value)

    def read_one(self, text: str) -> Raw:
        return self.unit.read(text)

    def indices(self, value: Raw) -> Iterator[tuple[str, int]]:
        if self.unit.counts:
            yield from ((self.unit.counts, index) for index in value)


class Pairs(ManyForm):
    """A map, as sorted pairs: set as pairs, as a map, or as values of 0, 1, …

    With ``twice``, a number that is set alone stands for a pair of it.
    """

    def __init__(self, first: Index, second: Unit, twice: bool = False) -> None:
        super().__init__(1, f"a pair of {first.kind.said} and {second.kind.said}")
        self.first = first
        self.second = second
        self.twice = twice

    def make_each(self, values: Iterable[Raw]) -> Sequence[Raw]:
        pairs = {self._pair(at, value) for at, value in enumerate(values)}
        if len({first for first, _ in pairs}) < len(pairs):
            raise ValueError("Two values for one.")
        return sorted(pairs)

    def _pair(self, at: int, value: Raw) -> tuple[Raw, Raw]:
        if not isinstance(value, int | float):
            first, second = value
        elif self.twice:
            first = second = value
        else:
            first = at
            second = value
        return self.first.make(first), self.second.make(second)

    def write_one(self, value: Raw) -> str:
        first, second = value
        return f"{self.first.write(first)}.{self.second.write(second)}"

    def read_one(self, text: str) -> Raw:
        first, second = text.split(".", 1)
        return self.first.read(first), self.second.read(second)

    def indices(self, value: Raw) -> Iterator[tuple[str, int]]:
        for first, second in value:
            yield self.first.counts, first
            if self.second.counts:
                yield self.second.counts, second


class Cells(ManyForm):
    """Cells of a mask: names of regions, or pairs of a query and a key, None for every one."""

    def __init__(self) -> None:
        super().__init__(0, f"{', '.join(REGIONS)} or a pair of {WHOLE.said} and {WHOLE.said}")
        self.region = Name(REGIONS)
        self.query = Index("query", every=True)
        self.key = Index("key", every=True)

    def make_each(self, values: Iterable[Raw]) -> Sequence[Raw]:
        return [self._cell(value) for value in values]

    def _cell(self, value: Raw) -> Raw:
        if isinstance(value, str):
            return self.region.make(value)
        query, key = value
        if query == LATER and key is not None:
            return LATER, self.key.make(key)
        return self.query.make(query), self.key.make(key)

    def write_one(self, value: Raw) -> str:
        if isinstance(value, str):
            return self.region.write(value)
        query, key = value
        row = LATER if query == LATER else self.query.write(query)
        return f"{row}.{self.key.write(key)}"

    def read_one(self, text: str) -> Raw:
        if "." not in text:
            return self.region.read(text)
        query, key = text.split(".", 1)
        if query == LATER:
            return LATER, self.key.read(key)
        return self.query.read(query), self.key.read(key)

    def indices(self, value: Raw) -> Iterator[tuple[str, int]]:
        for query, key in (cell for cell in value if not isinstance(cell, str)):
            if query is not None and query != LATER:
                yield self.query.counts, query
            if key is not None:
                yield self.key.counts, key

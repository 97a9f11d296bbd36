"""A study: what was measured, as a document with its charts. The app draws one without computing anything.

A measurement names its studies (`lab/measurement.py`), which are functions from its data to a `Study`. Their
documents lie in `assets/studies`, or beside the model that they are about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from transformer.storage.files import CheckpointError, read_json, write_json
from transformer.text.numbers import number

Json = dict[str, Any]
Cell = str | float | None
Kind = Literal["curves", "dots", "bars", "grid", "table"]
Log = Literal["", "x", "y", "xy"]
FOLDER = "studies"
"""Folder of the documents, in `assets` and in the directory of a model."""
SHIPPED = Path("assets", FOLDER)


@dataclass(frozen=True)
class Chart:
    """Rows of numbers, and how they are drawn."""

    # `curves` over numbers; `dots` and `bars`, a row for each place, or side by side in groups; `grid`, a map
    # of series (down) by places (across); `table`, with any columns
    kind: Kind
    caption: str  # what it shows
    alt: str  # what one sees, for people who do not see it
    # names of the columns: series, place, value, and perhaps the low and the high end of an interval
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    log: Log = ""  # which axes are logarithmic
    unit: str = ""  # written after a value


@dataclass(frozen=True)
class Study:
    """One document."""

    topic: str  # what it is listed under
    question: str
    finding: str  # the answer, in one sentence
    parts: Sequence[str | Chart]  # paragraphs in Markdown and charts, in order; each number stands in a chart
    method: str  # what was done, in a few sentences
    sources: str = ""  # papers


Told = Callable[[Json], Study]
"""Tells what was measured."""


def interval(cell: Json, factor: float = 1.0) -> list[float]:
    """Value and both ends of a measured interval, for a row of a chart."""
    return [factor * cell[end] for end in ("value", "low", "high")]


def named(kind: str) -> str:
    """A kind of attention in a sentence."""
    return {"encoder": "encoder self-attention", "decoder": "masked decoder self-attention"}.get(
        kind, "cross-attention"
    )


def gap(cell: Json, digits: int = 1) -> str:
    """A difference with its interval: `+0.3 (−0.1 to 0.7)`."""
    value, low, high = (number(cell[end], f"+.{digits}f") for end in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def curves(
    caption: str,
    columns: Sequence[str],  # as `Chart` has them
    found: Mapping[str, Iterable[Sequence[Cell]]],  # points of each series: place, value, perhaps both ends
    log: Log = "",
) -> Chart:
    """Curves by name."""
    rows = [(name, *point) for name, points in found.items() for point in points]
    return chart("curves", caption, columns, rows, log)


def chart(
    kind: Kind,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],  # series, place, value, and perhaps both ends of its interval
    log: Log = "",
) -> Chart:
    """A chart whose alternative text tells its values: of a map the ends, of a curve too, of others all."""
    told = _ends(rows) if kind == "grid" else _values(rows, kind == "curves")
    return Chart(kind, caption, f"{caption}: {told}.", columns, rows, log)


def _ends(rows: Sequence[Sequence[Cell]]) -> str:
    ordered = sorted((float(row[2] or 0.0), f"{row[0]}, {row[1]}") for row in rows)
    return "from " + " to ".join(f"{_told(value)} ({place})" for value, place in (ordered[0], ordered[-1]))


def _values(rows: Sequence[Sequence[Cell]], curves: bool) -> str:
    series: dict[str, list[str]] = {}
    for name, place, value, *_ in (row for row in rows if row[2] is not None):
        series.setdefault(str(name), []).append(_told(value) if curves else f"{place}: {_told(value)}")
    if curves:
        ends = {name: dict.fromkeys((each[0], each[-1])) for name, each in series.items()}
        return "; ".join(f"{name}: {' to '.join(each)}" for name, each in ends.items())
    told = {name: "; ".join(each) for name, each in series.items()}
    return ", ".join(f"{name} ({each})" if len(told) > 1 else each for name, each in told.items())


def _told(value: Any) -> str:
    return number(value, ",.0f" if abs(value) >= 100 else ".3g")


def write(
    name: str,
    study: Study,
    found: Json,  # what was measured
    data: Path,  # its file
    shipped: bool,  # whether the document belongs to those in `assets`, or in a folder beside the file
) -> Path:
    """Writes a document; returns its path."""
    path = (SHIPPED if shipped else data.parent / FOLDER) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = str(data) if shipped else data.name
    write_json(path, {**asdict(study), "made": _made(found), "data": {file: digest(data)}})
    return path


def _made(found: Json) -> list[tuple[str, str]]:
    """Dates and commands of the measurements."""
    again = found.get("again", {}).values()
    told = [each for each in (found, *found.values(), *again) if isinstance(each, dict) and "command" in each]
    return sorted({(str(each["date"]), str(each["command"])) for each in told})


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(path: Path) -> Json:
    """The content of a document.

    Raises:
        CheckpointError: the file is damaged, or is no document.
    """
    found = read_json(path)
    try:
        parts = [each if isinstance(each, str) else Chart(**each) for each in found["parts"]]
        named = {name: found[name] for name in ("topic", "question", "finding", "method", "sources")}
        return {"study": Study(parts=parts, **named), "made": found["made"], "data": found["data"]}
    except (KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path} is no document of a study; `python -m lab documents` writes it again."
        ) from error


def documents(folders: Iterable[Path]) -> Iterator[Path]:
    """The documents in some folders."""
    for folder in folders:
        yield from sorted(folder.glob("*.json"))

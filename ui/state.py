"""What the visitor sees, kept in the session and written to the address: the only file with session keys.

The session holds the state. The address is read on the first line of a page's full run (a link, the menu,
Back), and written once per change. Programs count from 0; the address counts from 1, as people do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import streamlit as st

from figures.style import SCALES
from transformer import patterns
from transformer.positions import REGISTRY
from ui.linked_view.events import Cursor, Head, Limits, picked_head, reduce

LONGEST_LINK = 4_000
SAMPLE = "sample-"
BEAM = "beam-"
ABOVE = "above-"
GOLD = ("sample", "file")
LARGEST_BEAM = 8
ORDERS = (
    "entropy",
    "mean_distance",
    "previous_mass",
    "same_mass",
    "next_mass",
    "first_mass",
    "eos_mass",
    "contribution",
    "aer",
)
"""Statistics by which a grid of heads can be ordered and coloured."""
HIDEABLE = ("special", "punctuation")
"""What can be left out of a map."""
WINDOWS = (64, 32, 16)
"""Rows and columns that a map shows at most."""

STATISTICS = (*(each.name for each in patterns.STATISTICS), "aer", "aer_read", "keeps")
"""Everything that is known of a head over many sentences."""

WIDTHS, BASES, COUNTS, OFFSETS = (4, 512), (2, 1_000_000), (2, 4096), (0, 1000)
"""Smallest and largest d_model, base, number of positions and offset of the page of positions."""

WhatIf = tuple[str, float | None]
WHAT_IFS: dict[str, tuple[float, float] | None] = {
    **dict.fromkeys(("no-projections", "no-scale", "additive", "bilinear", "hard")),
    "temperature": (0.05, 20.0),
    "local": (0.0, 1024.0),
    "pair": (1.0, 256.0),
}
"""Other arithmetic of "Inside a head", and from where to where its number goes; None where it has none."""

MOST_SEED = 1_000
PARTS = (
    "source-embedding",
    "encoder-attention-norm",
    "encoder-attention",
    "encoder-attention-add",
    "encoder-forward-norm",
    "encoder-forward",
    "encoder-forward-add",
    "encoder-end",
    "target-embedding",
    "decoder-attention-norm",
    "decoder-attention",
    "decoder-attention-add",
    "decoder-cross-norm",
    "decoder-cross",
    "decoder-cross-add",
    "decoder-forward-norm",
    "decoder-forward",
    "decoder-forward-add",
    "decoder-end",
    "output",
)
"""Parts of the model on the page Anatomy."""

Against = tuple[str, Any]
"""What Compare sets against the selection: `uniform`, `untrained` with its seed, `head` with layer and head,
`decode` with a way of decoding, `model` with a name; `forced` and `sentence`, whose text is in `other`."""

HandLinks = frozenset[tuple[int, int, bool]]
"""Word links: source word, target word (from 0), and whether the link is sure or only possible."""
MOST_PAIRS = 1_000
_PAIR = re.compile(r"(\d{1,4})([-p])(\d{1,4})")

T = TypeVar("T")


@dataclass(frozen=True)
class State:
    """Everything that an address carries; positions, layers and heads from 0, None where the app chooses.

    Attributes:
        text: the sentence.
        model: the name of the model.
        step: the decode step.
        source: the source token that was clicked.
        encoder: the chosen head of encoder self-attention.
        decoder: the chosen head of masked decoder self-attention.
        cross: the chosen head of cross-attention.
        view: the variant of a page: `batch`, `trained`, `alignment`.
        decode: `greedy`, `beam-4`, `sample-7`.
        target: a translation of the visitor's own.
        batch: the second sentence on the encoder page.
        order: the statistic by which the grids of heads are ordered.
        words: whether sub-words are merged into words.
        hide: what is left out of the maps, of `HIDEABLE`.
        rows: whether decoder rows are named by the token `read` or `predicted`; None: as usual for the kind.
        scale: how weights become colours: `linear`, `sqrt`, `log`.
        window: rows and columns that a map shows at most.
        show: how the pages of a kind draw a head: `matrix`, `lines`, `strongest`.
        links: which lines are drawn: `mass-70`, the links that carry 70 % of each row; `weight-10`, those
            of at least 0.10.
        more: heads of the same kind that are drawn with the chosen one as lines.
        color: the statistic that colours the grids of heads.
        kind: the attention that a page of all three shows: encoder, decoder or cross.
        mask: what the mask of the Masks page could have been: `zero`, `after`; None for what it is.
        statistic: what the page of heads over many sentences colours by, as in `heads.json`.
        sentences: the batch of the Masks page, one sentence a line.
        member: the sentence of that batch which is shown.
        mean: the layers (first and last, from 0) over whose heads an alignment averages; None for one head.
        rule: how attention becomes links: `mutual`, `above-0.3`; None for each word's strongest.
        pairs: word links made by hand.
        gold: where those links come from, as `sample-3`; None where the visitor drew them.
        against: what the page Compare sets against the selection.
        other: the sentence or translation that it compares with.
        key: the key that "Inside a head" looks at in self-attention.
        what_if: the other arithmetic of that page, and its number: a temperature, a radius, a head (from 0).
        part: the part of the model on the page Anatomy, of `PARTS`.
        layer: its layer.
        encoding: the positional encoding that the page of positions explains.
        d_model: dimensions of the table shown there.
        base: of its wavelengths.
        positions: how many positions it shows.
        first: the first of them, where they do not fit into one picture.
        dimension: the dimension drawn as a curve.
        offset: by how many positions the sentence, or the table, is moved.
        swap: the two words (from 0) that change places.
        twin_head: the head of all twins that is shown; None for each one's own previous-token head.
    """

    text: str | None = None
    model: str | None = None
    step: int | None = None
    source: int | None = None
    encoder: Head | None = None
    decoder: Head | None = None
    cross: Head | None = None
    view: str | None = None
    decode: str = "greedy"
    target: str | None = None
    batch: str | None = None
    order: str | None = None
    words: bool = False
    hide: tuple[str, ...] = ()
    rows: str | None = None
    scale: str = "linear"
    window: int = WINDOWS[0]
    show: str = "matrix"
    links: str = "mass-70"
    more: tuple[Head, ...] | None = None
    color: str | None = None
    kind: str | None = None
    mask: str | None = None
    statistic: str | None = None
    sentences: str | None = None
    member: int | None = None
    mean: tuple[int, int] | None = None
    rule: str | None = None
    pairs: HandLinks = frozenset()
    gold: str | None = None
    against: Against | None = None
    other: str | None = None
    key: int | None = None
    what_if: WhatIf | None = None
    part: str | None = None
    layer: int | None = None
    encoding: str | None = None
    d_model: int = 112
    base: int = 10_000
    positions: int = 64
    first: int | None = None
    dimension: int | None = None
    offset: int = 10
    swap: Head | None = None
    twin_head: Head | None = None


TEXTS = ("text", "target", "batch", "sentences", "other")
"""Values that may be too long for an address."""
PAGE_OWN = (
    "view",
    "more",
    "kind",
    "mask",
    "statistic",
    "sentences",
    "member",
    "mean",
    "rule",
    "against",
    "other",
    "key",
    "what_if",
    "part",
    "layer",
    "encoding",
    "d_model",
    "base",
    "positions",
    "first",
    "dimension",
    "offset",
    "swap",
    "twin_head",
)
"""Values that one page alone reads; links of the menu leave them out."""


FRESH: dict[str, Any] = {"step": None, "source": None, "pairs": frozenset(), "gold": None}
"""What belongs to one translation: another one starts without it."""


class _UnreadableError(ValueError):
    """A value in the address means nothing here."""


def _read_position(value: str) -> int:
    try:
        number = float(value)
    except ValueError as error:
        raise _UnreadableError from error
    if math.isnan(number):
        raise _UnreadableError
    return int(min(max(number, 1), 1e6)) - 1


def _read_head(value: str) -> Head:
    layer, dot, head = value.partition(".")
    if not dot:
        raise _UnreadableError
    return _read_position(layer), _read_position(head)


def _write_head(head: Head) -> str:
    return f"{head[0] + 1}.{head[1] + 1}"


def _read_decode(value: str) -> str:
    if value == "greedy":
        return value
    for start, low, high in ((BEAM, 2, LARGEST_BEAM), (SAMPLE, 0, 2**31 - 1)):
        number = value.removeprefix(start)
        if value.startswith(start) and number.isascii() and number.isdigit():
            return f"{start}{min(max(int(number[:10]), low), high)}"
    raise _UnreadableError


def _read_layers(value: str) -> tuple[int, int]:
    first, _, last = value.partition("-")
    ends = _read_position(first), _read_position(last or first)
    return min(ends), max(ends)


def _read_rule(value: str) -> str:
    least = value.removeprefix(ABOVE)
    if value == "mutual":
        return value
    if value == least or not math.isfinite(share := float(least)):
        raise _UnreadableError
    return f"{ABOVE}{min(max(share, 0.01), 1):.2f}"


def _read_pairs(value: str) -> HandLinks:
    found = [_PAIR.fullmatch(each) for each in value.split(",")][:MOST_PAIRS]
    if not all(found):
        raise _UnreadableError
    return frozenset((_read_position(m[1]), _read_position(m[3]), m[2] == "-") for m in found if m)


def _write_pairs(pairs: HandLinks) -> str:
    return ",".join(f"{i + 1}{'-' if sure else 'p'}{j + 1}" for i, j, sure in sorted(pairs))


def _read_gold(value: str) -> str:
    name, _, number = value.partition("-")
    if name not in GOLD:
        raise _UnreadableError
    return f"{name}-{_read_position(number) + 1}"


def _read_seed(value: str) -> int:
    return min(_read_position(value) + 1, MOST_SEED)


def _read_against(value: str) -> Against:
    name, _, detail = value.partition("-")
    if name == "model" and detail:
        return name, detail
    readers: dict[str, Callable[[str], Any]] = {
        "head": _read_head,
        "decode": _read_decode,
        "untrained": _read_seed,
    }
    if name in readers:
        return name, readers[name](detail)
    if detail or name not in {"uniform", "forced", "sentence"}:
        raise _UnreadableError
    return name, None


def _write_against(against: Against) -> str:
    name, detail = against
    if detail is None:
        return name
    return f"{name}-{_write_head(detail) if name == 'head' else detail}"


def _one_of(*names: str) -> Callable[[str], str]:
    """Reads one of the given names."""

    def read(value: str) -> str:
        if value not in names:
            raise _UnreadableError
        return value

    return read


def _whole(low: int, high: int, step: int = 1) -> Callable[[str], int]:
    """Reads a whole number, moved between two ends and down to a multiple of a step."""

    def read(value: str) -> int:
        if math.isnan(number := float(value)):
            raise _UnreadableError
        return int(min(max(number, low), high)) // step * step

    return read


def _read_hide(value: str) -> tuple[str, ...]:
    asked = value.split(".")
    if not set(asked) <= set(HIDEABLE):
        raise _UnreadableError
    return tuple(name for name in HIDEABLE if name in asked)


def _read_links(value: str) -> str:
    name, _, number = value.partition("-")
    if name not in {"mass", "weight"} or not (number.isascii() and number.isdigit()):
        raise _UnreadableError
    return f"{name}-{min(int(number[:4]), 100)}"


def _read_more(value: str) -> tuple[Head, ...]:
    return tuple(dict.fromkeys(map(_read_head, value.split("_"))))[:3]


def _read_what_if(value: str) -> WhatIf:
    if value in WHAT_IFS:
        return value, None
    name, dash, written = value.rpartition("-")
    low, high = WHAT_IFS.get(name) or (0.0, 0.0)
    if not dash or not high or not math.isfinite(number := float(written)):
        raise _UnreadableError
    number = min(max(number, low), high)
    if name == "temperature":
        return name, number
    return name, float(int(number) - (name == "pair"))


def _write_what_if(value: WhatIf) -> str:
    name, number = value
    return name if number is None else f"{name}-{number + (name == 'pair'):g}"


@dataclass(frozen=True)
class Parameter:
    """How one value is read from the address (raising ValueError) and written to it."""

    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str


_POSITION = Parameter(_read_position, lambda value: str(value + 1))
_HEAD = Parameter(_read_head, _write_head)
PARAMETERS: dict[str, Parameter] = {
    "text": Parameter(),
    "model": Parameter(),
    "step": _POSITION,
    "source": _POSITION,
    "encoder": _HEAD,
    "decoder": _HEAD,
    "cross": _HEAD,
    "view": Parameter(_one_of("batch", "trained", "alignment", "relations", "sentence", "results")),
    "decode": Parameter(_read_decode),
    "target": Parameter(),
    "batch": Parameter(),
    "order": Parameter(_one_of(*ORDERS)),
    "words": Parameter(lambda value: _one_of("yes", "no")(value) == "yes", lambda value: "yes"),
    "hide": Parameter(_read_hide, ".".join),
    "rows": Parameter(_one_of("read", "predicted")),
    "scale": Parameter(_one_of(*SCALES)),
    "window": Parameter(lambda value: int(_one_of(*map(str, WINDOWS))(value)), str),
    "show": Parameter(_one_of("matrix", "lines", "strongest")),
    "links": Parameter(_read_links),
    "more": Parameter(_read_more, lambda heads: "_".join(map(_write_head, heads))),
    "color": Parameter(_one_of(*ORDERS)),
    "kind": Parameter(_one_of("encoder", "decoder", "cross")),
    "mask": Parameter(_one_of("zero", "after")),
    "statistic": Parameter(_one_of(*STATISTICS)),
    "sentences": Parameter(),
    "member": _POSITION,
    "mean": Parameter(_read_layers, lambda ends: f"{ends[0] + 1}-{ends[1] + 1}"),
    "rule": Parameter(_read_rule),
    "pairs": Parameter(_read_pairs, _write_pairs),
    "against": Parameter(_read_against, _write_against),
    "other": Parameter(),
    "gold": Parameter(_read_gold),
    "key": _POSITION,
    "what_if": Parameter(_read_what_if, _write_what_if),
    "part": Parameter(_one_of(*PARTS)),
    "layer": _POSITION,
    "encoding": Parameter(_one_of(*REGISTRY)),
    "d_model": Parameter(_whole(*WIDTHS, step=2), str),
    "base": Parameter(_whole(*BASES), str),
    "positions": Parameter(_whole(*COUNTS), str),
    "first": _POSITION,
    "dimension": _POSITION,
    "offset": Parameter(_whole(*OFFSETS), str),
    "swap": _HEAD,
    "twin_head": _HEAD,
}


_NUMBERS = ("d_model", "base", "positions", "offset")
"""Values that are moved between two ends; where that changed them, the page says so."""


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def parse(params: Mapping[str, list[str]]) -> tuple[State, list[str]]:
    """Reads a state out of an address.

    Args:
        params: every value of every parameter; of repeated ones the last counts.

    Returns:
        The state, and the names of the parameters that could not be read.
    """
    values, unreadable = {}, []
    for name, parameter in PARAMETERS.items():
        given = params.get(name) or []
        if not given:
            continue
        try:
            values[name] = parameter.read(given[-1])
        except ValueError:
            unreadable.append(name)
        if len(given) > 1 or (name in _NUMBERS and values.get(name) != _number(given[-1])):
            unreadable.append(name)
    return State(**values), list(dict.fromkeys(unreadable))


def carried(state: State) -> bool:
    """Whether an address can carry the texts of this state: proxies cut longer ones."""
    texts = (getattr(state, name) or "" for name in TEXTS)
    return sum(len(quote(text, safe="", errors="replace")) for text in texts) <= LONGEST_LINK


def as_params(state: State) -> dict[str, str]:
    """Writes a state as parameters of an address; texts that are too long stay out."""
    left_out = () if carried(state) else TEXTS
    return {
        field.name: PARAMETERS[field.name].write(value)
        for field in fields(State)
        if (value := getattr(state, field.name)) is not None
        and field.name not in left_out
        and value != field.default
    }


# --- the session --------------------------------------------------------------------------------------------


def current() -> State:
    """The state of this visitor."""
    state: State = st.session_state.setdefault("state", State())
    return state


def adopt() -> None:
    """Takes over the address where it is not the one this session wrote last: a link, the menu, Back."""
    params = {name: st.query_params.get_all(name) for name in st.query_params}
    if params == st.session_state.get("written"):
        return
    state, unreadable = parse(params)
    before = current()
    if not carried(before) and "text" not in params:
        state = replace(state, **{name: getattr(before, name) for name in TEXTS})
    st.session_state["state"] = state
    st.session_state["written"] = params
    if unreadable:
        notice(f"Not readable in the address, so left at the nearest valid value: {', '.join(unreadable)}.")


def change(**values: Any) -> State:
    """Changes the state and writes the address once: one entry of the browser's history."""
    state = replace(current(), **values)
    st.session_state["state"] = state
    params = as_params(state)
    st.session_state["written"] = {name: [value] for name, value in params.items()}
    st.query_params.from_dict(params)
    return state


def resolve(**values: Any) -> State:
    """Fills in what the app chose, without a new entry of the browser's history."""
    state = replace(current(), **values)
    st.session_state["state"] = state
    return state


def links() -> dict[str, str]:
    """The parameters that a menu link carries, so that the next page opens with the same state."""
    left_out: dict[str, Any] = dict.fromkeys(PAGE_OWN)
    return as_params(replace(current(), **left_out))


def notice(text: str) -> None:
    """Keeps a sentence for the next page run."""
    st.session_state.setdefault("notices", []).append(text)


def take_notices() -> list[str]:
    """The sentences kept so far, each once."""
    return list(dict.fromkeys(st.session_state.pop("notices", [])))


def imported() -> dict[str, Any]:
    """What this visitor opened from files, by name, oldest first."""
    files: dict[str, Any] = st.session_state.setdefault("imported", {})
    return files


def visitor() -> str:
    """A name for this session, so that shared work knows who waits for it."""
    name: str = st.session_state.setdefault("visitor", uuid4().hex)
    return name


def own_sentences() -> tuple[str, tuple[Any, ...]] | None:
    """The visitor's own file for the page of heads over many sentences: its name and its lines."""
    kept: tuple[str, tuple[Any, ...]] | None = st.session_state.get("own_sentences")
    return kept


def keep_sentences(name: str, lines: tuple[Any, ...]) -> None:
    """Keeps such a file for this visit; without lines the bundled sample comes back."""
    st.session_state["own_sentences"] = (name, lines) if lines else None


def link(**values: Any) -> dict[str, str]:
    """The parameters of a link to another page that shows the same with other values."""
    left_out: dict[str, Any] = dict.fromkeys(PAGE_OWN)
    return as_params(replace(current(), **left_out | values))


def control(name: str, value: object) -> str:
    """The session key of a widget, new whenever something else than the widget changed its value.

    Args:
        name: the widget.
        value: what it should show.
    """
    shown = st.session_state.setdefault("shown", {})
    version, before = shown.get(name, (0, value))
    if before != value:
        version += 1
    shown[name] = (version, value)
    return f"{name}.{version}"


def on_control(name: str, key: str, apply: Callable[[Any], object]) -> None:
    """Callback of a widget: passes its value on, unless the event belongs to an outdated version.

    Args:
        name: the widget.
        key: the key that `control` gave it.
        apply: what to do with the value.
    """
    version, _ = st.session_state.setdefault("shown", {}).get(name, (0, None))
    if key != f"{name}.{version}" or key not in st.session_state:
        return
    value = st.session_state[key]
    st.session_state["shown"][name] = (version, value)
    apply(value)


def on_pick(key: str, apply: Callable[[Any], object]) -> None:
    """Callback of a chart or table that answers clicks: passes on what was picked; nothing picked is ignored.

    Args:
        key: its session key.
        apply: gets the `customdata` of the point, or the number of the row (from 0).
    """
    picked = st.session_state.get(key, {}).get("selection", {})
    points, rows = picked.get("points") or [], picked.get("rows") or []
    if points:
        apply(points[0].get("customdata"))
    elif rows:
        apply(rows[0])


def opened_gold() -> list[Any]:
    """The gold alignments that this visitor opened from a file."""
    pairs: list[Any] = st.session_state.setdefault("gold", [])
    return pairs


def keep_gold(pairs: list[Any]) -> None:
    """Keeps the gold alignments of a file for this visit."""
    st.session_state["gold"] = pairs


# --- the cursor ---------------------------------------------------------------------------------------------


def cursor() -> Cursor:
    """Where the visitor stands, with the number of the last event taken from the browser."""
    state = current()
    return Cursor(state.step or 0, state.source, st.session_state.get("ack", 0))


def view_key(view: str) -> str:
    """The session key of a linked view."""
    return f"linked.{view}"


def on_linked_view(view: str, limits: Limits, sizes: Mapping[str, Head]) -> None:
    """Callback of a linked view: moves the cursor as its event says, or opens the head it picked."""
    event = st.session_state.get(view_key(view), {}).get("at")
    before = cursor()
    after = reduce(before, event, limits)
    st.session_state["ack"] = after.ack
    if after.ack != before.ack:
        change(step=after.step, source=after.source, **picked_head(event, limits, sizes))

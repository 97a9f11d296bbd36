"""The parameters of an address that carry a state: every field of `State` has a row in `PARAMETERS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import quote

from figures.base.style import SCALES
from transformer.interventions import read_text, write_text
from transformer.model.config import SCORE_RULES
from transformer.model.encodings.table import ENCODINGS
from ui.address.listed import read_off, write_off
from ui.address.state import TEXTS, State, elsewhere
from ui.address.values import (
    BASES,
    COUNTS,
    DEPTHS,
    DRAWS,
    LARGEST_SEED,
    LENGTH_OFFSETS,
    MODEL_WIDTHS,
    OFFSETS,
    ORDERS,
    OWN,
    PARTS,
    PENALTIES,
    SMOOTHINGS,
    SNAPSHOTS,
    STATISTICS,
    TEMPERATURES,
    TEXT_LENGTHS,
    TOP_KS,
    TOP_PS,
    UPDATES,
    VIEWS,
    WARMUPS,
    WIDTHS,
    WINDOWS,
    decimal,
    one_of,
    read_against,
    read_decode,
    read_gold,
    read_head,
    read_hide,
    read_language,
    read_layers,
    read_links,
    read_more,
    read_pairs,
    read_position,
    read_rule,
    read_what_if,
    read_word,
    whole,
    write_against,
    write_head,
    write_pairs,
    write_what_if,
)

LONGEST_LINK = 4_000
"""Most characters that the texts in an address may take, in URL encoding."""
KEEP = {"keep": "session"}
"""The query of the menu's links: the page opens with the state of this session, which replaces it at once."""


@dataclass(frozen=True)
class Parameter:
    """How to read one value from the address (raising ValueError) and write it there."""

    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str


_POSITION = Parameter(read_position, lambda value: str(value + 1))
_HEAD = Parameter(read_head, write_head)
_YES = Parameter(lambda value: one_of("yes", "no")(value) == "yes", lambda value: "yes")
PARAMETERS: dict[str, Parameter] = {
    "text": Parameter(),
    "model": Parameter(),
    "language": Parameter(read_language),
    "step": _POSITION,
    "source": _POSITION,
    "encoder": _HEAD,
    "decoder": _HEAD,
    "cross": _HEAD,
    "view": Parameter(one_of(*VIEWS)),
    "decode": Parameter(read_decode),
    "target": Parameter(),
    "changes": Parameter(read_text, write_text),
    "off": Parameter(read_off, write_off),
    "batch": Parameter(),
    "order": Parameter(one_of(*ORDERS)),
    "words": _YES,
    "hide": Parameter(read_hide, ".".join),
    "rows": Parameter(one_of("read", "predicted")),
    "scale": Parameter(one_of(*SCALES)),
    "window": Parameter(lambda value: int(one_of(*map(str, WINDOWS))(value)), str),
    "show": Parameter(one_of("matrix", "lines", "strongest")),
    "links": Parameter(read_links),
    "more": Parameter(read_more, lambda heads: "_".join(map(write_head, heads))),
    "color": Parameter(one_of(*ORDERS)),
    "kind": Parameter(one_of("encoder", "decoder", "cross")),
    "mask": Parameter(one_of("zero", "after")),
    "statistic": Parameter(one_of(*STATISTICS)),
    "sentences": Parameter(),
    "member": _POSITION,
    "aligner": Parameter(one_of(OWN)),
    "mean": Parameter(read_layers, lambda ends: f"{ends[0] + 1}-{ends[1] + 1}"),
    "rule": Parameter(read_rule),
    "pairs": Parameter(read_pairs, write_pairs),
    "against": Parameter(read_against, write_against),
    "other": Parameter(),
    "scored": _POSITION,
    "gold": Parameter(read_gold),
    "key": _POSITION,
    "what_if": Parameter(read_what_if, write_what_if),
    "notation": Parameter(one_of("paper", "lecture")),
    "part": Parameter(one_of(*PARTS)),
    "layer": _POSITION,
    "encoding": Parameter(one_of(*ENCODINGS)),
    "d_model": Parameter(whole(*WIDTHS, step=2), str),
    "base": Parameter(whole(*BASES), str),
    "positions": Parameter(whole(*COUNTS), str),
    "first": _POSITION,
    "dimension": _POSITION,
    "offset": Parameter(whole(*OFFSETS), str),
    "swap": _HEAD,
    "twin_head": _HEAD,
    "present": _YES,
    "temperature": Parameter(decimal(*TEMPERATURES), "{:g}".format),
    "top_k": Parameter(whole(*TOP_KS), str),
    "top_p": Parameter(decimal(*TOP_PS), "{:g}".format),
    "penalty": Parameter(decimal(*PENALTIES), "{:g}".format),
    "length_offset": Parameter(lambda value: int(one_of(*map(str, LENGTH_OFFSETS))(value)), str),
    "node": _POSITION,
    "draws": Parameter(whole(*DRAWS), str),
    "seed": Parameter(whole(0, LARGEST_SEED), str),
    "smoothing": Parameter(decimal(*SMOOTHINGS), "{:g}".format),
    "width": Parameter(whole(*MODEL_WIDTHS, step=16), str),
    "warmup": Parameter(whole(*WARMUPS, step=100), str),
    "update": Parameter(whole(*UPDATES), str),
    "depth": Parameter(lambda value: int(one_of(*map(str, DEPTHS))(value)), str),
    "run": Parameter(),
    "snapshot": Parameter(whole(*SNAPSHOTS), str),
    "born": _HEAD,
    "play": _YES,
    "prompt": Parameter(),
    "word": Parameter(read_word),
    "tokens": Parameter(whole(*TEXT_LENGTHS), str),
    "score": Parameter(one_of(*SCORE_RULES)),
}


_NUMBERS = (
    *("d_model", "base", "positions", "offset"),
    *("temperature", "top_k", "top_p", "penalty", "draws", "seed"),
    *("smoothing", "width", "warmup", "update", "snapshot", "tokens"),
)
"""Values that are clamped to a range; if that changes a value, the page says so."""


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def parse(
    # every value of every parameter; if a parameter is repeated, the last value counts
    params: Mapping[str, list[str]],
) -> tuple[State, list[str]]:
    """Reads a state out of an address.

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
    """Whether an address can carry the texts of this state: proxies cut longer addresses."""
    texts = (getattr(state, name) or "" for name in TEXTS)
    return sum(len(quote(text, safe="", errors="replace")) for text in texts) <= LONGEST_LINK


def as_params(state: State) -> dict[str, str]:
    """Writes a state as parameters of an address; texts that are too long are left out."""
    left_out = () if carried(state) else TEXTS
    return {
        field.name: PARAMETERS[field.name].write(value)
        for field in fields(State)
        if (value := getattr(state, field.name)) is not None
        and field.name not in left_out
        and value != field.default
    }


def link(
    state: State,  # what is shown here
    **values: Any,  # what the other page shows instead
) -> dict[str, str]:
    """The parameters of a link to another page, so that it opens with the same state."""
    return as_params(replace(elsewhere(state), **values))

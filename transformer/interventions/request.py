"""The request that changes are checked against, and the kinds of their fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from transformer.config import AttentionKind, ModelConfig, Side, Sublayer, SublayerName
from transformer.interventions.codec import (
    MOST_ITEMS,
    InterventionError,
    Kind,
    many,
    must,
    number,
    read_count,
    several,
    whole,
    write_count,
)
from transformer.text import kinds

Token = int | str
"""A token by its id, or by its piece, such as "▁ist"."""
By = Literal["zero", "mean", "uniform", "previous", "first"]
Cell = tuple[int | None, int | None]
"""A query and a key, from 0; None stands for every one."""
Cells = str | tuple[Cell, ...]
"""The name of a region, or cells one by one."""
REGIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "all": ("every key", lambda queries, keys: (queries >= 0) & (keys >= 0)),
    "future": ("later keys", lambda queries, keys: keys > queries),
    "next": ("the key after the query", lambda queries, keys: keys == queries + 1),
    "self": ("the query's own key", lambda queries, keys: keys == queries),
    "past": ("earlier keys", lambda queries, keys: keys < queries),
}
"""Regions by name: in words, and from positions of queries and keys (numbers, or arrays that fit)."""
SUM_LIMIT = 1e-6
"""Excess above 1 that the sum of given weights may have."""
SITES = {
    AttentionKind.ENCODER: "encoder self-attention",
    AttentionKind.DECODER: "decoder self-attention",
    AttentionKind.CROSS: "cross-attention",
}
PARTS: dict[SublayerName, str] = {
    "self_attention": "self-attention",
    "cross_attention": "cross-attention",
    "feed_forward": "feed-forward network",
}
BY_WORDS = {
    "zero": "gives no output",
    "mean": "gives its mean output",
    "uniform": "looks at all keys alike",
    "previous": "looks at the key before the query",
    "first": "looks at the first key",
}
SHORT = {"self_attention": "self", "cross_attention": "cross", "feed_forward": "feed"}
LONGEST_TEXT = 100_000


@dataclass(frozen=True)
class RunShape:
    """The request that a change is checked against: the model and the lengths of both sides."""

    config: ModelConfig
    typed: int  # number of source tokens as typed, ``</s>`` included
    source: int  # number of source tokens as the model reads them
    target: int  # most tokens of the output
    forced: int | None = None  # number of tokens of the output in a forced pass; None while decoding
    # whether another change lifts a cell (query, key) of the decoder's causal mask
    lifted: Callable[[int, int], bool] = field(default=lambda query, key: False, repr=False)

    def most(self, side: Side) -> int:
        """Most tokens of a side."""
        return self.source if side == "encoder" else self.target

    def exact(self, side: Side) -> int | None:
        """Number of tokens of a side; None if it is not known before the output is."""
        return self.source if side == "encoder" else self.forced

    def lengths(self, kind: AttentionKind) -> tuple[int, int]:
        """Most queries and keys of an attention."""
        site = self.config.sites[kind]
        return self.most(site.query_side), self.most(site.key_side)

    def layers(self, kind: AttentionKind) -> int:
        """Layers with an attention; InterventionError if the model has no such attention."""
        if kind not in self.config.sites:
            raise InterventionError(f"This model has no {SITES[kind]}.")
        return self.config.sites[kind].n_layers


def index(
    what: str,  # the field, at the beginning of a sentence
    noun: str,  # what is counted
    count: Callable[[Any, RunShape], int],  # (change, shape) → how many there are
    where: str,  # where; and in ``bound`` how many there are; both may name what ``check`` knows
    bound: str,
) -> Kind:
    """A whole number from 0 that a request must have."""

    def check(at: int, change: Any, shape: RunShape) -> None:
        n, kind, side = count(change, shape), getattr(change, "kind", None), getattr(change, "side", None)
        if at >= n:
            limit = "is limited to" if shape.forced is None else "has"
            words = f"{where}: {bound}".format(
                n=n, site=SITES.get(kind or AttentionKind.CROSS), side=side, limit=limit
            )
            raise InterventionError(f"There is no {noun} {at + 1}{words}, counted from 1.")

    return whole(what, check)


def has_side(side: Side, _change: Any, shape: RunShape) -> None:
    if side not in shape.config.stacks:
        raise InterventionError(f"This model has no {side}.")


def has_sublayer(place: Sublayer | Side, _change: Any, shape: RunShape) -> None:
    """A side stands for the norm at the end of its stack."""
    side = place if isinstance(place, str) else place.side
    stack = shape.config.stacks.get(side)
    if isinstance(place, Sublayer):
        if stack is None or place.name not in stack.sublayers:
            raise InterventionError(f"A layer of the {side} has no {PARTS[place.name]}.")
        if place.layer >= stack.n_layers:
            raise InterventionError(
                f"The {side} has no layer {place.layer + 1}: it has {stack.n_layers}, counted from 1."
            )
    elif stack is None or not stack.passed():
        raise InterventionError(f"This model has no norm in the {side}.")
    elif shape.config.norm != "pre":
        raise InterventionError(f"The {side} of this model ends without a norm of its own (post-norm).")


# Words.


def counted(noun: str, numbers: Sequence[int]) -> str:
    """Numbers as people read them, from 1: "heads 3 and 5"."""
    *before, last = [str(number + 1) for number in numbers]
    return f"{noun}s {', '.join(before)} and {last}" if before else f"{noun} {last}"


def quoted(token: Token) -> str:
    """A token as people read it."""
    return f"“{token}”" if isinstance(token, str) else f"token {token}"


def sublayer_name(sublayer: Sublayer, between: str = ", ") -> str:
    """A sub-layer as people read it."""
    return f"{sublayer.side} layer {sublayer.layer + 1}{between}{PARTS[sublayer.name]}"


def _first(words: Sequence[str], separator: str, count: int = 4) -> str:
    return separator.join(words[:count]) + " …" * (len(words) > count)


def cells_name(cells: Cells) -> str:
    """Cells as people read them."""
    if isinstance(cells, str):
        return REGIONS[cells][0]

    def name(noun: str, at: int | None) -> str:
        return f"every {noun}" if at is None else f"{noun} {at + 1}"

    pairs = [f"{name('query', query)} → {name('key', key)}" for query, key in cells]
    return ", ".join(pairs[:3]) + (f", … ({len(pairs)} cells)" if len(pairs) > 3 else "")


# Kinds of fields.


def _token(value: Any) -> Token:
    if isinstance(value, str) and not 1 <= len(value) <= 200:
        raise InterventionError("A token is a piece such as '▁ist', or its id.")
    return value if isinstance(value, str) else int(whole("The token's id").convert(value))


def _write_token(value: Token) -> str:
    """A piece follows a dot if it could be taken for an id."""
    return f".{value}" if isinstance(value, str) and re.fullmatch(r"[0-9]+|\..*", value) else str(value)


def _read_token(text: str) -> Token:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else text.removeprefix(".")


def _side(value: Any) -> Side:
    side: Side = kinds.one_of("encoder", "decoder").check("The side", value, InterventionError)
    return side


def sublayer_of(side: object, layer: object, sublayer: object) -> Sublayer:
    name: Any = kinds.one_of(*PARTS).check("The sub-layer", sublayer, InterventionError)
    return Sublayer(_side(side), whole("The layer").convert(layer), name)


def _sublayer_json(value: Sublayer | Side) -> Any:
    if isinstance(value, str):
        return value
    return {"side": value.side, "layer": value.layer, "sublayer": value.name}


def _write_sublayer(value: Sublayer | Side) -> list[str]:
    return [value if isinstance(value, str) else f"{value.side}.{value.layer + 1}.{SHORT[value.name]}"]


def _read_sublayer(parts: list[str]) -> Any:
    side, *place = ".".join(parts).split(".")
    if not place:
        return side
    layer, name = place
    return {"side": side, "layer": read_count(layer), "sublayer": {v: k for k, v in SHORT.items()}[name]}


def _weight(item: Any) -> tuple[int, float]:
    key, weight = item
    return KEY.convert(key), number("The weight", 0.0, 1.0).convert(weight)


def _row(pairs: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(dict(pairs)) != len(pairs):
        raise InterventionError(_ROW)
    if sum(weight for _, weight in pairs) > 1 + SUM_LIMIT:
        raise InterventionError("The weights of a row sum to more than 1.")
    return tuple(sorted(pairs))


_ROW = "A row is set by 1 to 4,096 weights, one for each key."
_WEIGHTS = many(
    Kind(_weight), "The weights of a row are numbers, or a map from keys to numbers.", _ROW, finish=_row
)


def _weights(value: Any) -> Any:
    """Keys with their weights: pairs, a map, or the weights of keys 0, 1, …."""
    if isinstance(value, Iterable) and not isinstance(value, Mapping | str):
        value = [item if isinstance(item, tuple) else (at, item) for at, item in enumerate(value)]
    return _WEIGHTS.convert(value)


def _pairs_of_json(value: Any) -> dict[int, float]:
    if len(pairs := dict(value)) != len(value):
        raise InterventionError("A row is set by one weight for each key.")
    return pairs


def _read_weights(parts: list[str]) -> dict[int, float]:
    return _pairs_of_json(list(zip(map(read_count, parts[::2]), map(float, parts[1::2]), strict=True)))


def _cell(value: Any) -> Cell:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InterventionError("Cells are pairs of a query and a key.")
    query, key = (None if at is None else whole("A masked position").convert(at) for at in value)
    return query, key


_CELLS = many(
    Kind(
        _cell,
        write=lambda cell: ".".join("x" if at is None else write_count(at) for at in cell),
        read=lambda text: tuple(None if at == "x" else read_count(at) for at in text.split(".")),
    ),
    "Cells are pairs of a query and a key.",
    f"A mask is changed by at most {MOST_ITEMS:,} cells.",
    "-",
    least=0,
)


def _region(value: Any) -> Cells:
    if isinstance(value, str) and value not in REGIONS:
        raise InterventionError(f"A region of a map is {', '.join(REGIONS)}, not {value!r:.40}.")
    cells: Cells = value if isinstance(value, str) else _CELLS.convert(value)
    return cells


def has_cells(value: Cells, change: Any, shape: RunShape) -> None:
    site, lengths = SITES[change.kind], shape.lengths(change.kind)
    if isinstance(value, str):
        if value != "all" and not shape.config.sites[change.kind].own_keys:
            raise InterventionError(
                f"Queries and keys of {site} belong to two sentences, so “{value}” names none of its cells."
            )
    elif any(at is not None and at >= n for cell in value for at, n in zip(cell, lengths, strict=True)):
        raise InterventionError(
            f"A masked cell lies outside {site}, which has at most "
            f"{lengths[0]:,} queries and {lengths[1]:,} keys here."
        )


_PAIRS = "Positions are 1 to 4,096 whole numbers, or a map from here to there."


def _pair(item: Any) -> tuple[int, int]:
    pair = item if isinstance(item, tuple | list) else (item, item)
    if len(pair) != 2:
        raise InterventionError(_PAIRS)
    here, there = map(POSITION.convert, pair)
    return here, there


def _one_source(pairs: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(dict(pairs)) != len(pairs):
        raise InterventionError("A position can be patched from one position only.")
    return tuple(sorted(pairs))


_PREFIX = "A prefix is a list of 1 to 4,096 tokens."
_IDS = "The other run's output must have from 1 to 4,096 tokens."

STEP = index("The step", "step", lambda _, shape: shape.target, "", "the output {limit} {n:,} tokens")
TYPED = index("The position", "source token", lambda _, shape: shape.typed, "", "the text has {n:,}")
SOURCE = index("The source token", "source token", lambda _, shape: shape.source, "", "the model reads {n:,}")
LAYER = index(
    "The layer", "layer", lambda at, shape: shape.layers(at.kind), " of {site}", "this model has {n}"
)
HEAD = index("The head", "head", lambda _, shape: shape.config.n_heads, " of {site}", "a layer has {n}")
_QUERIES = "query", lambda at, shape: shape.lengths(at.kind)[0], " in {site}", "there are at most {n:,}"
QUERY, ROW = index("The query", *_QUERIES), index("The row", *_QUERIES)
KEY = index("The key", "key", lambda at, shape: shape.lengths(at.kind)[1], " in {site}", "there are {n:,}")
POSITION = index(
    "A position",
    "position",
    lambda at, shape: shape.most(at.side),
    " in the {side}",
    "there are at most {n:,}",
)
HEADS = several("The head", HEAD.check, lambda value: counted("head", value) if value else "every head")
ROWS = several("The row", ROW.check, lambda value: f" in {counted('row', value)}" if value else "")
FACTOR, TEMPERATURE = number("The factor"), number("The temperature", 0.001, 1000.0)
TOKEN = Kind(_token, write=_write_token, read=_read_token, words=quoted)
TOKENS = many(
    TOKEN,
    _PREFIX,
    _PREFIX,
    check=lambda value, change, shape: STEP.check(len(value) - 1, change, shape),
    words=lambda value: f"{len(value)} given tokens: {_first([*map(quoted, value)], ' ')}",
)
_one_kind = kinds.one_of(*AttentionKind)
ATTENTION = Kind(
    lambda value: AttentionKind(_one_kind.check("The kind", value, InterventionError)),
    words=SITES.__getitem__,
)
BY = Kind(
    must(
        lambda value: value in list(BY_WORDS),  # it may be no key at all
        f"A head is ablated by {', '.join(BY_WORDS)}, not by {{!r:.40}}.",
    ),
    words=BY_WORDS.__getitem__,
)
SIDE = Kind(_side, has_side)
SUBLAYER = Kind(
    lambda value: value if isinstance(value, Sublayer) else sublayer_of(**value),
    has_sublayer,
    _write_sublayer,
    _read_sublayer,
    _sublayer_json,
    words=sublayer_name,
    rest=True,
)
NORM = replace(
    SUBLAYER,
    convert=lambda value: SUBLAYER.convert(value) if isinstance(value, Sublayer | dict) else _side(value),
    words=lambda value: (
        f"the {value} without its last norm"
        if isinstance(value, str)
        else f"{sublayer_name(value)} without its norm"
    ),
)
WEIGHTS = Kind(
    _weights,
    write=lambda value: [part for key, weight in value for part in (write_count(key), repr(weight))],
    read=_read_weights,
    from_json=_pairs_of_json,
    words=lambda value: _first([f"{weight:g} on key {key + 1}" for key, weight in value], ", "),
    rest=True,
)
CELLS = Kind(
    _region,
    has_cells,
    lambda value: value if isinstance(value, str) else _CELLS.write(value) or "none",
    lambda text: () if text == "none" else text if text in REGIONS else _CELLS.read(text),
)
PAIRS = many(  # (here, there); a number is the same in both
    Kind(
        _pair,
        write=lambda pair: ".".join(map(write_count, pair)),
        read=lambda text: tuple(map(read_count, text.split("."))),
    ),
    "Positions are whole numbers, or a map from positions here to there.",
    _PAIRS,
    "-",
    alone=True,
    finish=_one_source,
    words=lambda value: (
        f" at {_first([str(a + 1) if a == b else f'{a + 1} ← {b + 1}' for a, b in value], ', ')}"
        if value
        else ""
    ),
)
IDS = many(Kind(whole("A target id").convert, read=int), _IDS, _IDS, ".")
TEXT = Kind(
    must(
        lambda value: isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT,
        "The other run has no text, or one that is too long.",
    )
)

Attention = Annotated[AttentionKind, ATTENTION]
"""Which attention: "encoder", "decoder" or "cross"."""
Step = Annotated[int, STEP]
"""A step of the output, from 0."""
Typed = Annotated[int, TYPED]
"""A position of the source as typed, from 0."""
TokenField = Annotated[Token, TOKEN]
"""A piece such as "▁ist", or its id."""
CellsField = Annotated[Cells, CELLS]
"""Cells (query, key), from 0, with None for every one; or "all", "future", "next", "self" or "past"."""
Heads = Annotated[tuple[int, ...] | None, HEADS, ""]
"""Heads of it, from 0; None for all."""
Layer = Annotated[int, LAYER]
"""A layer of it, from 0."""
Rows = Annotated[tuple[int, ...] | None, ROWS]
"""Queries, from 0; None for all."""

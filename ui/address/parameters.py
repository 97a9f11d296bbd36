"""What the visitor sees, as one value, and the table of parameters that carry this value in an address.

Every field of `State` has a row in `PARAMETERS`. Programs count from 0; the address, for people, from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import quote

from figures.base.style import SCALES
from transformer.model.config import ENCODINGS, SCORE_RULES
from transformer.model.interventions import Intervention, read_text, write_text
from ui.address.listed import Off, read_off, write_off
from ui.address.values import (
    BASES,
    COUNTS,
    DEPTHS,
    DRAWS,
    LARGEST_SEED,
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
    Against,
    HandLinks,
    WhatIf,
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
from ui.linked_view.events import Head

LONGEST_LINK = 4_000
"""Most characters that the texts in an address may take, in URL encoding."""


@dataclass(frozen=True)
class State:
    """Everything that an address carries. Positions, layers and heads count from 0; None lets the app choose.

    Attributes:
        text: the sentence.
        model: the name of the model.
        language: the target language, such as `>>fra<<`, for a model with several.
        step: the decode step.
        source: the source token that was clicked.
        encoder: the chosen head of encoder self-attention.
        decoder: the chosen head of masked decoder self-attention.
        cross: the chosen head of cross-attention.
        view: the variant of a page, from `VIEWS`.
        decode: `greedy`, `beam-4`, `sample-7`.
        target: the visitor's own translation.
        changes: what is changed in the run of the model, in the order of acting.
        off: changes that are switched off, each with its place in the list: `2.hide_3` stands second.
        batch: the second sentence on the encoder page.
        order: the statistic by which the grids of heads are ordered.
        words: whether sub-words are merged into words.
        hide: what the maps leave out, from `HIDEABLE`.
        rows: whether decoder rows are named by the token `read` or `predicted`; None for the kind's default.
        scale: how weights become colours: `linear`, `sqrt`, `log`.
        window: most rows and columns that a map shows.
        show: how the page of an attention kind draws a head: `matrix`, `lines`, `strongest`.
        links: which lines are drawn: `mass-70`, the links that carry 70 % of each row; `weight-10`, those
            of at least 0.10.
        more: further heads of the same kind, drawn as lines together with the chosen head.
        color: the statistic that colours the grids of heads.
        kind: the attention kind shown by a page that offers all three: encoder, decoder or cross.
        mask: a different mask to try on the Masks page: `zero`, `after`; None for the real mask.
        statistic: the statistic that colours the page "Heads over sentences", as named in `heads.json`.
        sentences: the batch of the Masks page, one sentence per line.
        member: the sentence of that batch to show.
        aligner: `own` if the visitor chose the head, mean or row of an alignment; None for the model's best.
        mean: the layers (first and last, from 0) over whose heads an alignment averages; None for one head.
        rule: how attention becomes links: `mutual`, `above-0.3`; None for each word's strongest link.
        pairs: word links made by hand.
        gold: source of those links, such as `sample-3`; None if the visitor drew them.
        against: what the page Compare compares the selection with.
        other: the other sentence or translation on the page Compare; the second sentence of a causal trace.
        scored: the step whose token a causal trace scores; None for the whole translation.
        key: the key that "Inside a head" shows in self-attention.
        what_if: the alternative arithmetic on "Inside a head", and its number: a temperature, a radius, a
            head (from 0).
        notation: whose symbols "Inside a head" writes: `paper`, `lecture`.
        part: the part of the model on the page Anatomy, from `PARTS`.
        layer: the layer of that part.
        encoding: the positional encoding that the page Positions explains.
        d_model: dimensions of the table on the page Positions.
        base: base of the wavelengths in that table.
        positions: how many positions that table shows.
        first: the first position or step shown, if not all of them fit into one picture.
        dimension: the dimension drawn as a curve.
        offset: by how many positions the sentence, or the table, is shifted.
        swap: the two words (from 0) that swap places.
        twin_head: the head shown for all twins; None for each twin's own previous-token head.
        present: whether the linked view of the home page fills the window, in large type.
        temperature: the temperature of sampling.
        top_k: how many of the most probable tokens sampling draws from; None for all.
        top_p: what the probabilities of these tokens must reach together; None for all tokens.
        penalty: α of the score on the page Search; None for the model's own.
        node: the token chosen in the tree on the page Search.
        draws: how many samples that page draws.
        seed: the seed of the first of them; None for that of `decode`.
        smoothing: the label smoothing ε on the page Training; the paper's is the default.
        width: d_model of the schedule on that page.
        warmup: warm-up steps of that schedule.
        depth: layers of each stack of the untrained models on that page.
        update: the step of the run in which that page follows one weight, from 1.
        run: the training run whose snapshots that page shows; None for the chosen model's or the bundled one.
        snapshot: the training step of the snapshot shown; None for the last one.
        born: the head of that run.
        play: whether its snapshots are shown one after the other.
        prompt: the text on the page Language model; there, the first sentence of a pair (`other` the second).
        word: the word in space that the page Language model looks at.
        tokens: the length of text at which that page measures attention.
        score: the score of the recurrent twin on the page Recurrent; None lets the app choose.
    """

    text: str | None = None
    model: str | None = None
    language: str | None = None
    step: int | None = None
    source: int | None = None
    encoder: Head | None = None
    decoder: Head | None = None
    cross: Head | None = None
    view: str | None = None
    decode: str = "greedy"
    target: str | None = None
    changes: tuple[Intervention, ...] = ()
    off: Off = ()
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
    aligner: str | None = None
    mean: tuple[int, int] | None = None
    rule: str | None = None
    pairs: HandLinks = frozenset()
    gold: str | None = None
    against: Against | None = None
    other: str | None = None
    scored: int | None = None
    key: int | None = None
    what_if: WhatIf | None = None
    notation: str = "paper"
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
    present: bool = False
    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    penalty: float | None = None
    node: int | None = None
    draws: int = 8
    seed: int | None = None
    smoothing: float = 0.1
    width: int = 512
    warmup: int = 4000
    depth: int = 6
    update: int = 28
    run: str | None = None
    snapshot: int | None = None
    born: Head | None = None
    play: bool = False
    prompt: str | None = None
    word: str | None = None
    tokens: int = 2048
    score: str | None = None


TEXTS = ("text", "target", "batch", "sentences", "other", "prompt")
"""Values that may be too long for an address."""
PAGE_OWN = (
    "view",
    "more",
    "kind",
    "mask",
    "statistic",
    "sentences",
    "member",
    "aligner",
    "mean",
    "rule",
    "against",
    "other",
    "scored",
    "key",
    "what_if",
    "notation",
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
    "present",
    "penalty",
    "node",
    "draws",
    "seed",
    "smoothing",
    "width",
    "warmup",
    "depth",
    "update",
    "run",
    "snapshot",
    "born",
    "play",
    "prompt",
    "word",
    "tokens",
    "score",
)
"""Values that only one page reads; the links of the menu leave them out."""
PLACE = ("model", "step", "source", "encoder", "decoder", "cross", "changes", "off", "target", "prompt")
"""Values that belong to models of one sort: a page of another sort has its own."""
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


def parse(params: Mapping[str, list[str]]) -> tuple[State, list[str]]:
    """Reads a state out of an address.

    Args:
        params: every value of every parameter; if a parameter is repeated, the last value counts.

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


def elsewhere(state: State) -> State:
    """The state with which another page opens: values that one page alone reads are left out."""
    names = [field.name for field in fields(State) if field.name not in PAGE_OWN]
    return State(**{name: getattr(state, name) for name in names})


def link(state: State, **values: Any) -> dict[str, str]:
    """The parameters of a link to another page, so that it opens with the same state.

    Args:
        state: what is shown here.
        values: what the other page shows instead.
    """
    return as_params(replace(elsewhere(state), **values))

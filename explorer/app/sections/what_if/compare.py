"""Two maps side by side, and the first minus the second: the visitor's selection (A), and another (B)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import (
    LINE,
    Kind,
    UnreadableError,
    read_decode,
    read_head,
    read_position,
    write_head,
)
from explorer.app.address.state import own
from explorer.app.controls import options, panel, part, pickers, plain, seen
from explorer.app.maps import measures
from explorer.app.maps.looking import cells_of, lacking
from explorer.app.server import catalogue, models, per_run, runs
from explorer.app.server.view import View
from explorer.app.shell import fitting
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.base.grid import lowered
from explorer.figures.base.quantity import QUANTITIES
from explorer.figures.maps.difference import ROOM, difference_map, merged_names, scale_end
from explorer.figures.maps.heatmap import axis_titles
from explorer.lenses.what_if.two_runs import Difference, Map, Pair, difference, uniform_weights
from explorer.lenses.words.reading import Axis, Reading, ReadView, read_axis, read_map, read_tokens
from explorer.linked.view import window_around
from transformer import AttentionKind, Translation, Window
from transformer.config import Head
from transformer.text.typed import clean
from transformer.view import AuditReport, HeadMap

MOST_SEED = 1_000
Against = tuple[str, Any]
"""What is compared with the selection: `uniform`, `untrained` with its seed, `head` with layer and head,
`decode` with a way of decoding, `model` with a name; `forced` and `sentence`, whose text is in `other`;
`unchanged`, the run without changes."""
SEEING = (
    "The maps show A, B and A − B: purple where A has more weight, amber where B has more. Edit distance "
    "aligns the tokens. Tokens on one side only are hatched and never compared. TV is the total variation "
    "distance of two rows: the share of weight that must move to turn one row into the other."
)
FORMULA = r"\mathrm{TV}(a, b) = \tfrac12 \sum_j |a_j - b_j| \in [0, 1]"
MEASURES = {name: QUANTITIES[name].name for name in ("weight", "carried")}
MOST = {"weight": "puts most weight on", "carried": "carries most from"}
CELLS_SAY = {"weight": "weights", "carried": "shares of what keys carried"}
SIZE, CELLS = 330, 40
"""Px of a map, and its most rows and columns."""
WIDER = round((ROOM - labels.ROOM) * 10)
"""Extra width in px of the map of differences, because it holds names from both sides."""
SAME = 0.0005
AS_IT_IS = "as it is"
OTHER_SENTENCE = "The man who wrote the letter is my brother."
DECODINGS = {"greedy": "greedy", "beam-4": "beam, 4 hypotheses", "sample-1": "sampling, seed 1"}
TRIED = ("beam-4", "greedy", *(f"sample-{seed}" for seed in range(1, 6)))
"""Ways of decoding, in the order in which they are tried until one writes something else."""
MODES = {
    "unchanged": ("the run without changes", 0),
    "uniform": ("uniform attention (a control)", 0),
    "untrained": ("an untrained twin (a control)", 140),
    "head": ("another head", 220),
    "decode": ("another way of decoding", 220),
    "forced": ("a translation of your own", 500),
    "sentence": ("another sentence", 500),
    "model": ("another model", 315),
}
"""Ways of comparing: the label, and the px of a second control; 0 if there is none."""


def _read_seed(value: str) -> int:
    return min(read_position(value) + 1, MOST_SEED)


def _read_against(value: str) -> Against:
    name, _, detail = value.partition("-")
    if name == "model" and detail:
        return name, detail
    readers: dict[str, Callable[[str], Any]] = {
        "head": read_head,
        "decode": read_decode,
        "untrained": _read_seed,
    }
    if name in readers:
        return name, readers[name](detail)
    if detail or name not in {"uniform", "forced", "sentence", "unchanged"}:
        raise UnreadableError
    return name, None


def _write_against(against: Against) -> str:
    name, detail = against
    if detail is None:
        return name
    return f"{name}-{write_head(detail) if name == 'head' else detail}"


own("against", Kind(_read_against, _write_against))
own("other", LINE, long=True)  # the other sentence or translation


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str  # the name of the side, for the visitor
    run: Translation  # the translation that the side shows
    kind: str  # encoder, decoder or cross
    head: Head  # layer and head, from 0
    opened: View | None = None  # the sentence, if what its keys carried can be measured
    is_uniform: bool = False  # whether the weights are 1 / visible keys instead of those of the head
    measure: str = "weight"  # what the cells say: `weight` or `carried`
    words: bool = False  # whether the map is read by words

    @cached_property
    def axes(self) -> tuple[tuple[tuple[str, ...], Axis], ...]:
        """Pieces that name rows (predicted in cross-attention, else read) and columns, and their reading."""
        named = self.run.labels(self.kind)
        rows = named.queries if self.kind == "decoder" else named.predicted or named.queries
        return tuple((each, read_axis(each, Reading(words=self.words))) for each in (rows, named.keys))

    @cached_property
    def map(self) -> Map:
        """The whole map."""
        weights, mask = runs.whole(self.run, self.kind, self.head)
        if self.is_uniform:
            weights = uniform_weights(mask)
        elif self.measure == "carried" and self.opened is not None:
            weights = measures.whole_carried(self.opened, self.kind, self.head)
        (rows, down), (columns, across) = self.axes
        weights, mask, _ = read_map(weights, mask, down, across)
        return Map(read_tokens(rows, down), read_tokens(columns, across), weights, mask)

    def place(self, cell: tuple[int, int]) -> list[int]:
        """The row and column of the map that hold a cell of pieces."""
        return [
            next((i for i, group in enumerate(axis.groups) if at < group.stop), len(axis.groups) - 1)
            for (_, axis), at in zip(self.axes, cell, strict=True)
        ]

    def view(self, window: Window) -> HeadMap:
        """A window of the map; of a formula, or read by words, there are no scores."""
        if not self.is_uniform and self.measure == "weight" and not self.words:
            return self.run.head(self.kind, *self.head, window=window)
        cells = window.queries, window.keys
        rows, keys = tuple(self.map.rows[cells[0]]), tuple(self.map.columns[cells[1]])
        cross = self.kind == "cross"
        return ReadView(
            *(AttentionKind(self.kind), *self.head, self.run.model, self.run.config.norm),
            *(rows, rows if cross else None, keys, window),
            *(None, self.map.mask[cells], self.map.weights[cells], AuditReport(())),
            hidden=np.zeros(len(rows), np.float32),
            rows=(),
            columns=(),
            named="predicted" if cross else "read",
            derived=True,
        )

    def origin(self) -> str:
        """Part of the caption on the source of the numbers, or on their checks."""
        if self.is_uniform:
            return "a formula, 1 / visible keys: no model computed this"
        audit = self.run.map(self.kind, *self.head).audit
        return str(captions.badge(audit, self.measure != "weight" or self.words)["text"])


# --- with what the selection is compared --------------------------------------------------------------------


def decoded(opened: View, way: str) -> str:
    """Output of a way of decoding; the translation on the screen if this run cannot be decoded again."""
    try:
        return runs.translate(replace(opened.asked, decode=way, target=None)).text
    except ValueError:
        return opened.translation.text


def other_decoding(opened: View) -> str:
    """A way of decoding that writes another translation; if none of those tried does, merely another way."""
    ways = [way for way in TRIED if way != opened.asked.decode]
    return next((way for way in ways if decoded(opened, way) != opened.translation.text), ways[0])


def usual_text(opened: View, mode: str) -> str:
    """The text to start from: another translation of the sentence, or a sentence that differs in a word."""
    if mode == "forced":
        return decoded(opened, other_decoding(opened))
    return OTHER_SENTENCE if opened.example is None else opened.example.other


def first_value(opened: View, kind: str, head: Head, mode: str) -> Any:
    """The value with which a way of comparing opens: a seed, the next head, another decoding or model."""
    if mode == "untrained":
        return 1
    if mode == "head":
        return head[0], (head[1] + 1) % opened.source.sizes[kind][1]
    if mode == "decode":
        return other_decoding(opened)
    names = catalogue.available() if mode == "model" else ()
    return next((name for name in names if name != opened.asked.model), opened.asked.model if names else None)


def against_of(opened: View, now: State) -> Against:
    """The comparison of a state; an example opens with its other sentence, another text with the control."""
    return now.against or (("uniform", None) if opened.example is None else ("sentence", None))


def second_side(own: Side, opened: View, mode: str, value: Any, text: str | None) -> tuple[str, Side]:
    """The name of side A, and side B; ValueError, in a sentence, if B cannot be made."""
    here, method, asked = labels.head_phrase(*own.head), opened.translation.method, opened.asked
    if mode == "uniform":
        return here, replace(own, name="uniform attention", is_uniform=True)
    if mode == "head":
        other = fitting.fit_head(own.kind, value, opened.source.sizes[own.kind], value)[0]
        return here, replace(own, name=labels.head_phrase(*other), head=other)
    if mode == "untrained":
        twin = per_run.untrained(opened, value)
        name = f"untrained twin, seed {value}"
        return f"{asked.model}, trained", replace(own, name=name, run=twin, opened=None)
    if mode == "model" and value not in catalogue.available():
        raise ValueError("The address names a model that is not available; choose a model from the list.")
    typed = clean(text or usual_text(opened, mode)) if mode in ("forced", "sentence") else ""
    names, more = {
        "model": ((asked.model, str(value)), {}),
        "decode": ((method, str(value)), {"decode": str(value), "target": None}),
        "forced": ((method, "your translation"), {"target": typed}),
        "unchanged": (("changed", AS_IT_IS), {"changes": ()}),
        "sentence": (("your sentence", "the other sentence"), {"text": typed, "target": None}),
    }[mode]
    source = models.find(str(value)) if mode == "model" else asked.source
    asked = replace(asked, source=source, **more)  # type: ignore[arg-type]
    run = runs.translate(asked)
    head = fitting.fit_head(own.kind, own.head, source.sizes[own.kind], own.head)[0]
    return names[0], Side(names[1], run, own.kind, head, View(asked, run, None))


def sides(opened: View, now: State, kind: str) -> tuple[Side, Side]:
    """Both sides, in the measure that both can show; raises as `second_side`."""
    own = Side("", opened.translation, kind, getattr(now, kind), opened)
    mode, value = against_of(opened, now)
    name, second = second_side(own, opened, mode, value, now.other)
    pair = replace(own, name=name), second
    words = mode == "model" and own.run.source_tokens != second.run.source_tokens
    measure = "weight" if unmeasured(pair, now.measure) else now.measure
    one, other = (replace(each, measure=measure, words=words) for each in pair)
    return one, other


def unmeasured(pair: tuple[Side, Side], measure: str) -> str | None:
    """Why two sides cannot be compared in a measure, in one sentence; None if they can."""
    if measure == "weight":
        return None
    if measure == "effect":
        return "Effects are nats and no shares of a row, so this page compares weights or what they carried."
    if any(each.is_uniform for each in pair):
        return "Uniform attention is a formula that carries nothing; the maps show weights."
    if any(each.opened is None for each in pair):
        return "What keys carried is not measured in an untrained twin; the maps show weights."
    reasons = (lacking(each.opened, measure) for each in pair if each.opened is not None)
    return next((why for why in reasons if why), None)


def notes(opened: View, now: State, other: Side) -> Iterator[str]:
    """Remarks on side B: a cut, the same as A, another head than asked for."""
    own, run, (mode, value) = opened.translation, other.run, against_of(opened, now)
    yield from (f"B: {each}" for each in (run.notes if run is not own else ()))
    if other.words:
        yield "The two models have different pieces, so both maps are read by words."
    if mode in ("decode", "forced"):
        if other.kind == "encoder":
            yield "The encoder reads the source alone, and A and B have the same one: nothing can differ."
        elif run.text == own.text:
            yield "A and B are the same translation."
    elif mode == "model" and value == opened.asked.model:
        yield "A and B are the same model, so nothing can differ."
    elif mode == "sentence" and run.source_text == own.source_text:
        yield "A and B are the same sentence."
    elif mode == "unchanged" and not now.changes:
        yield "Nothing is changed, so A and B are the same run."
    elif mode == "head":
        if other.head == getattr(now, other.kind):
            yield "A and B are the same head, so nothing can differ."
        size = own.config.sizes[other.kind]
        yield from (f"B: {each}" for each in fitting.fit_head(other.kind, value, size, value)[1])


# --- the page -----------------------------------------------------------------------------------------------


@part
def show(opened: View) -> None:
    """Both maps, their difference, and what there is to notice."""
    now = session.current()
    kind = opened.source.kind(now.kind)
    cell = cells_of(opened, now)[kind]
    controls(opened, now, kind, cell[0])
    pair = first, second = sides(opened, now, kind)
    for note in filter(None, (unmeasured(pair, now.measure), *notes(opened, now, second))):
        st.caption(plain(note))
    both = difference(first.map, second.map)
    names = [
        merged_names(first.map.rows, second.map.rows, both.rows),
        merged_names(first.map.columns, second.map.columns, both.columns),
    ]
    row, column = map(merged, (both.rows, both.columns), first.place(cell))
    st.markdown(f"{summary(both, names[0], pair)} {of_row(row, both, names, MOST[first.measure])}")
    if first.run.text != second.run.text:
        st.markdown(f"A: {plain(first.run.text)}  \nB: {plain(second.run.text)}")
    with st.container(horizontal=True, gap="small"):
        for number, side in enumerate(pair):
            one_map(number, side, both, (row, column))
        difference_of(pair, both, names, (row, column))


def controls(opened: View, now: State, kind: str, row: int) -> None:
    """What is compared with what, and what the cells say."""
    mode, value = against = against_of(opened, now)
    head = getattr(now, kind)

    def take(name: str, chosen: Any, **more: Any) -> None:
        session.change(against=(name, chosen), **more)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.kind_picker(kind, opened.kinds, against=None if mode == "head" else against)
        with st.container(width=220):
            pickers.head_picker(kind, head, opened.source)
        with st.container(width=230):
            pickers.row_picker(opened, kind, row)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width=315):
            # without changes, a run is compared with itself only if the address says so
            offered = [name for name in MODES if name != "unchanged" or now.changes or mode == name]
            pickers.choose(
                "against",
                "Compare with",
                {name: f"against {MODES[name][0]}" for name in offered},
                mode,
                lambda name: take(name, first_value(opened, kind, head, name), other=None),
                texts=True,
            )
        shown = now.measure if now.measure in MEASURES else "weight"
        pickers.switch("measure", "Cells say", MEASURES, shown, width="content")
        if MODES[mode][1]:
            with st.container(width=MODES[mode][1]):
                detail(opened, kind, now, mode, value)
        seen(SEEING, FORMULA)


def detail(opened: View, kind: str, now: State, mode: str, value: Any) -> None:
    """The second control: a head, a model, a way of decoding, a text or a seed."""
    name = f"against.{mode}"
    if mode in ("forced", "sentence"):
        text = now.other or usual_text(opened, mode)
        control = pickers.control(name, text, lambda other: session.change(other=other.strip() or None))
        st.text_input("The other text", text, label_visibility="collapsed", **control)
        return
    if mode == "untrained":
        control = pickers.control(name, value, lambda seed: session.change(against=(mode, int(seed))))
        st.number_input("Seed of the twin", 1, MOST_SEED, value, label_visibility="collapsed", **control)
        return
    layers, heads = opened.source.sizes[kind]
    offers: dict[str, dict[Any, str]] = {
        "head": {(i, j): labels.head_phrase(i, j) for i in range(layers) for j in range(heads)},
        "decode": options.decodings(str(value), DECODINGS),
        "model": {each: each for each in catalogue.available()},
    }
    label = {"decode": "way of decoding"}.get(mode, mode)
    shown = value if value in offers[mode] else next(iter(offers[mode]))
    take = lambda chosen: session.change(against=(mode, chosen))  # noqa: E731
    pickers.choose(name, f"The other {label}", offers[mode], shown, take, texts=True)


def short(name: str) -> str:
    """A token in a sentence of the page."""
    return plain(labels.shorten(name, 24))


def summary(both: Difference, rows: list[str], pair: tuple[Side, Side]) -> str:
    """How far the two maps are apart."""
    cells, apart = int(both.compared.sum()), both.distances
    if not cells or np.isnan(apart).all():
        return "The two sides have no row and column in common, so nothing can be compared."
    left_out = sum(None in each for each in (*both.rows, *both.columns))
    alone = f" Rows and columns that only one side has are left out: {left_out}." if left_out else ""
    sizes, (a, b) = np.abs(both.values), (f"**{plain(each.name)}**" for each in pair)
    if sizes.max() < SAME:
        unreached = pair[1].name == AS_IT_IS and not sizes.any()
        why = " No change reaches the weights of this head." * unreached
        return f"A ({a}) against B ({b}): **no difference** in any of {cells} cells.{why}{alone}"
    most = int(np.nanargmax(apart))
    return (
        f"A ({a}) against B ({b}): mean |difference| **{sizes[both.compared].mean():.2f}** over {cells} "
        f"cells; the rows are **{np.nanmean(apart):.2f}** apart (mean total variation distance), most at "
        f"“{short(rows[most])}” ({apart[most]:.2f}).{alone}"
    )


def of_row(row: int, both: Difference, names: list[list[str]], most: str) -> str:
    """What both sides do in the row of the cursor."""
    name = short(names[0][row])
    if None in both.rows[row]:
        return f"The row of the cursor, “{name}”, is on side A only."
    largest = []
    for side, weights in (("A", both.first[row]), ("B", both.second[row])):
        key = int(weights.argmax())
        largest.append(f"{side} {most} “{short(names[1][key])}” ({weights[key]:.2f})")
    apart = f"A and B are {both.distances[row]:.2f} apart"
    return f"In the row of the cursor, “{name}”, {apart}: {', '.join(largest)}."


def merged(pairs: tuple[Pair, ...], position: int) -> int:
    """The index of a token of side A among the aligned tokens."""
    return next(index for index, (i, _) in enumerate(pairs) if i == position)


def one_map(number: int, side: Side, both: Difference, at: tuple[int, int]) -> None:
    """A side, in a window around the counterpart of the cursor's cell."""
    lengths = len(side.map.rows), len(side.map.columns)
    spans: list[int] = []
    for pairs, place, length in zip((both.rows, both.columns), at, lengths, strict=True):
        near = [i for i in (each[number] for each in pairs[: place + 1]) if i is not None]
        spans += window_around(length, near[-1] if near else 0, CELLS)
    window, letter, row = Window(*spans), "AB"[number], both.rows[at[0]][number]
    view, phrase = side.view(window), labels.head_phrase(*side.head)
    named = "" if side.is_uniform or side.name == phrase else f" · {phrase}"
    panel(
        f"compare.{letter}",
        lambda: lowered(heatmap(view, SIZE), WIDER),
        f"{letter} · {side.name} · {captions.KIND_NAMES[side.kind]}{named} · "
        f"{CELLS_SAY[side.measure]}{', by words' * side.words}, colour from 0 to 1"
        f"{captions.window_note(window, lengths)} · {side.run.model} · {side.origin()}",
        heading=f"**{plain(f'{letter} · {side.name}')}**",
        place=st.container(width=SIZE, gap="xsmall"),
        width="content",
        row=None if row is None else row - window.query_start,
    )


def difference_of(
    pair: tuple[Side, Side], both: Difference, names: list[list[str]], at: tuple[int, int]
) -> None:
    """A − B, around the cursor's cell."""
    cells = rows, columns = (
        slice(*window_around(len(names[0]), at[0], CELLS)),
        slice(*window_around(len(names[1]), at[1], CELLS)),
    )
    end = scale_end(float(np.abs(both.values).max(initial=0.0)))
    part_of = f" · rows {rows.start + 1}–{rows.stop}, columns {columns.start + 1}–{columns.stop}"
    window = part_of if max(map(len, names)) > CELLS else ""
    origin = "uniform attention is a formula" if pair[1].is_uniform else "difference of the two maps above"
    arrays = both.first[cells], both.second[cells], both.compared[cells]
    named = names[0][rows], names[1][columns], both.distances[rows]
    titles = axis_titles(pair[0].view(Window(0, 1, 0, 1)))
    panel(
        "compare.difference",
        partial(difference_map, *arrays, *named, end, titles, SIZE),
        f"A − B · {pair[0].name} − {pair[1].name} · {captions.KIND_NAMES[pair[0].kind]} · difference of "
        f"{CELLS_SAY[pair[0].measure]}, from −{end:.1f} to {end:.1f}{window} · {origin}",
        heading="**A − B**",
        place=st.container(width=SIZE + WIDER + 36, gap="xsmall"),
        width="content",
        row=at[0] - rows.start,
    )

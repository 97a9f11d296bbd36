"""From this token back: the logit as sums, from place to place, to the source words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from figures.base import labels
from figures.pages.way_back import Place, WayLine, way_graph
from lenses.again.way_back import audit_way_back
from lenses.measures.stream import Writer
from lenses.measures.way_back import Edge, WayBack, WayGraph, WayNode
from linked.view import ways
from transformer import Translation, Translator
from transformer.model.sites import Head
from transformer.trace.report import AuditReport
from ui.address import session
from ui.controls import Table, panel, plain
from ui.maps import measures
from ui.server.opened import Opened

_KINDS = {"cross_attention": "cross", "self_attention": "decoder"}
"""The kind of attention of a head that wrote in the decoder."""
_READS = 12
"""Reads that can be chosen without the graph."""
_SEEING = (
    "Right to left: the logit is the sum of what wrote the decoder's last stream; a head is the sum of "
    "what it read at each position; what a source position holds is the sum of what wrote the encoder's "
    "stream there; a head of the encoder is the sum of the words that it read. The numbers of a place's "
    "lines add up to its own number. That is exact with the attention weights and the σ of every norm "
    "held fixed: how the weights came about is no part of it. A feed-forward network is not linear in "
    "what it read, so its part ends there, as do biases, the prefix, and what a column does not show. "
    "Parts are of direct paths: what a later layer makes of a writer counts for the later layer. A click on "
    "a head, a position or a line chooses that read; below stands why the head reads there."
)
_FORMULA = (
    r"z = \sum_w \mathrm{part}_w, \qquad "
    r"\mathrm{part}_{h} = \sum_j \alpha_{h,j}\, x_j W_V^h W_O^h \cdot g_h + b, \qquad x_j = \sum_u x_j^{(u)}"
)


class ReadCell(NamedTuple):
    """One key that one head read."""

    kind: str  # encoder, decoder or cross
    head: Head
    row: int  # the query, from 0
    key: int

    def data(self) -> list[Any]:
        """It as the `customdata` of a point; a list in it would come back as a mapping."""
        return [self.kind, *self.head, self.row, self.key]

    def choose(self) -> None:
        """Moves the cursor to it."""
        at = {
            "encoder": {"source": self.row, "key": self.key},
            "decoder": {"key": self.key},
            "cross": {"source": self.key},
        }
        session.change(kind=self.kind, **{self.kind: self.head}, **at[self.kind])


def show(opened: Opened, found: WayBack, step: int, against: int, pair: str) -> AuditReport:
    """Draws the way back of a difference of two logits; returns its checks."""
    run = opened.translation
    picture = WayGraph(found)
    st.markdown(ways.strongest(run, found, "**", plain))
    reads = [_read(found, each, step) for each in picture.nodes]
    places = [
        place._replace(data=read and read.data())
        for place, read in zip(ways.places(run, picture, pair), reads, strict=True)
    ]
    lines = [
        line._replace(data=(read := _along(picture, reads, each)) and read.data())
        for line, each in zip(ways.lines(picture), picture.edges, strict=True)
    ]

    def proof(model: Translator, again: Translation) -> AuditReport:
        own = audit_way_back(model.model, again, step, (run.steps[step].token_id, against), found)
        return replace(found.audit, claim="").joined(own)

    drawn = [
        found.source,
        found.prefix,
        found.encoder,
        found.words,
        np.array([each.value for each in places]),
    ]
    audit = measures.checked(opened, ("way", step, against), drawn, proof)
    panel(
        "way back",
        lambda: way_graph(ways.TITLES, places, lines),
        f"{pair} at step {labels.count(step)}, back to the source words; the {len(places)} largest places, "
        f"others of a column as one · {run.model}",
        lambda: _table(places, lines),
        seeing=_SEEING,
        formula=_FORMULA,
        audit=audit,
        take=_choose,
        scrolls=760,
    )
    return audit


def _choose(data: list[Any] | None) -> None:
    if data:
        kind, layer, head, row, key = data
        ReadCell(kind, (layer, head), row, key).choose()


def reads(found: WayBack, step: int) -> list[ReadCell]:
    """The reads of the strongest ways, the strongest first."""
    kept = dict[ReadCell, None]()
    for way in found.ways:
        kept[_of(way.head, step, way.position)] = None
        if way.writer is not None and way.writer.head is not None and way.word is not None:
            kept[_of(way.writer, way.position, way.word, encoder=True)] = None
    return [*kept][:_READS]


def _of(writer: Writer, row: int, key: int, encoder: bool = False) -> ReadCell:
    assert writer.layer is not None
    assert writer.head is not None
    kind = "encoder" if encoder else _KINDS[writer.what]
    return ReadCell(kind, (writer.layer, writer.head), row, key)


def _read(found: WayBack, node: WayNode, step: int) -> ReadCell | None:
    """The largest read at a place; None where nothing is read."""
    writer, at = node.writer, node.position
    if node.column == 1 and writer is not None and writer.head is not None:
        values = found.source if writer.what == "cross_attention" else found.prefix
        return _of(writer, step, int(np.argmax(np.abs(values[writer.layer, writer.head]))))
    if node.column == 3 and writer is not None and writer.head is not None and at is not None:
        key = int(np.argmax(np.abs(found.words[writer.layer, writer.head, at])))
        return _of(writer, at, key, encoder=True)
    if node.column in (2, 4) and at is not None:
        values = (found.prefix if node.prefix else found.source)[..., at]
        layer, head = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
        return ReadCell("decoder" if node.prefix else "cross", (int(layer), int(head)), step, at)
    return None


def _along(picture: WayGraph, reads: list[ReadCell | None], line: Edge) -> ReadCell | None:
    """The read that a line stands for: that of the head at its start, at the position where it ends."""
    head, position = reads[line.start], picture.nodes[line.end].position
    if picture.nodes[line.start].column in (1, 3) and head is not None and position is not None:
        return head._replace(key=position)
    return reads[line.end] if picture.nodes[line.start].column == 2 else None


def name(run: Translation, read: ReadCell) -> str:
    """`cross 6.3 reads ▁white`, `encoder 4.1 at ▁big reads ▁white`."""
    named, place = run.labels(read.kind), ".".join(str(each + 1) for each in read.head)
    at = f" at {labels.piece(named.queries[read.row])}" if read.kind == "encoder" else ""
    kind = "self" if read.kind == "decoder" else read.kind
    return f"{kind} {place}{at} reads {labels.piece(named.keys[read.key])} ({labels.count(read.key)})"


def _table(places: list[Place], lines: list[WayLine]) -> Table:
    rows = ((places[each.end].name, places[each.start].name, each.value) for each in lines)
    return [("from", "to", "nats"), *rows]

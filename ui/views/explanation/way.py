"""From this token back: the logit as sums, from place to place, to the source words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from figures.base import labels
from figures.base.labels import number
from figures.maps.measures import Row, measures_map
from figures.pages.way_back import Line, Place, way_graph
from lenses.again.way_back import audit_hidden, audit_way_back
from lenses.measures.stream import Writer
from lenses.measures.way_back import Node, Picture, Way, WayBack
from transformer import Translation, Translator
from transformer.trace.report import AuditReport
from ui.controls import Table, panel, word
from ui.maps import measures
from ui.server.opened import Opened

_TITLES = ("logit", "written by", "read at", "written there by", "source words")
_SHORT = {"cross_attention": "cross", "self_attention": "self", "feed_forward": "ff"}
_SEEING = (
    "Right to left: the logit is the sum of what wrote the decoder's last stream; a head is the sum of "
    "what it read at each position; what a source position holds is the sum of what wrote the encoder's "
    "stream there; a head of the encoder is the sum of the words that it read. The numbers of a place's "
    "lines add up to its own number. That is exact with the attention weights and the σ of every norm "
    "held fixed: how the weights came about is no part of it. A feed-forward network is not linear in "
    "what it read, so its part ends there, as do biases, the prefix, and what a column does not show. "
    "Parts are of direct paths: what a later layer makes of a writer counts for the later layer."
)
_FORMULA = (
    r"z = \sum_w \mathrm{part}_w, \qquad "
    r"\mathrm{part}_{h} = \sum_j \alpha_{h,j}\, x_j W_V^h W_O^h \cdot g_h + b, \qquad x_j = \sum_u x_j^{(u)}"
)


def show(opened: Opened, step: int, against: int, pair: str) -> None:
    """Draws the way back of a difference of two logits."""
    run = opened.translation
    found = measures.back(opened.asked, run, step, against)
    picture = Picture(found)
    st.markdown(_ways(run, found))
    places = [Place(each.column, _name(run, each, pair), each.value) for each in picture.nodes]
    lines = [Line(each.start, each.end, each.value) for each in picture.edges]

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
    panel(
        "way back",
        lambda: way_graph(_TITLES, places, lines),
        f"{pair} at step {labels.count(step)}, back to the source words; the {len(places)} largest places, "
        f"others of a column as one · {run.model}",
        lambda: _table(places, lines),
        seeing=_SEEING,
        formula=_FORMULA,
        audit=measures.checked(opened.asked, run, ("way", step, against), drawn, proof),
        scrolls=760,
    )
    _effects(opened, found, step, pair)


def _effects(opened: Opened, found: WayBack, step: int, pair: str) -> None:
    """What stands at each source position, and what happens without it: two numbers."""
    run = opened.translation
    if len(run.source_tokens) > measures.MOST_TOKENS:
        return
    parts, effects = found.source.sum((0, 1)), measures.without_source(opened.asked, run, step)
    names = labels.names(run.source_tokens)
    most, needs = int(np.argmax(np.abs(parts))), int(np.argmin(effects))
    token, read, needed = map(
        word, (run.target_tokens[step], run.source_tokens[most], run.source_tokens[needs])
    )
    same = "It is the same position" if most == needs else f"The model needs {needed} most instead"
    st.markdown(
        f"**A part is no effect.** The largest part is read at {read} "
        f"({number(float(parts[most]), '+.2f')}). {same}: without it, log p of {token} changes by "
        f"{number(float(effects[needs]), '+.2f')} nats, as the model then also attends elsewhere."
    )
    rows = [Row("part, read there", parts, True), Row("effect, without it", effects, True)]

    def proof(model: Translator, again: Translation) -> AuditReport:
        return audit_hidden(model, again, step, effects)

    panel(
        "part and effect",
        lambda ink: measures_map(rows, names, ink),
        f"{pair} at step {labels.count(step)}, by source position: its part, without b_V, which belongs to "
        f"no position, and Δ log p of the token with the position hidden from all heads "
        f"of cross-attention, in nats · {run.model}",
        lambda: [["measure", *names], *([row.name, *map(float, row.values)] for row in rows)],
        audit=measures.checked(opened.asked, run, ("part and effect", step), [effects, parts], proof),
        inked=True,
        scrolls=160 + 40 * len(names) if len(names) > 8 else False,
    )


def _ways(run: Translation, found: WayBack) -> str:
    """The three strongest ways, in words."""
    told = "; ".join(_way(run, each) for each in found.ways[:3])
    return f"Its strongest single ways through heads: {told}."


def _way(run: Translation, way: Way) -> str:
    read = run.source_tokens if way.writer is not None else run.decoder_input_tokens
    ends = ""
    if way.writer is not None:
        itself = way.writer.head is None
        ends = f" ← {_writer(way.writer)}" + (
            "" if itself or way.word is None else f" ← {word(run.source_tokens[way.word])}"
        )
    return f"{_writer(way.head)} ← {word(read[way.position])}{ends} (**{number(way.value, '+.2f')}**)"


def _writer(writer: Writer | None) -> str:
    """`cross 6.3`, `ff 2`, `token`."""
    assert writer is not None
    what, layer, head = writer
    places = ".".join(str(each + 1) for each in (layer, head) if each is not None)
    return f"{_SHORT.get(what, what)} {places}".strip()


def _name(run: Translation, node: Node, pair: str) -> str:
    if node.rest:
        return {"heads": "other heads", "others": "all else" if node.column in (1, 3) else "others, biases"}[
            node.rest
        ]
    if node.column == 0:
        return pair
    if node.column == 1:
        return _writer(node.writer)
    tokens = run.decoder_input_tokens if node.prefix else run.source_tokens
    name = labels.piece(tokens[node.position or 0])
    if node.column == 3:
        return f"{_writer(node.writer)} at {name}"
    return f"{name} (written)" if node.prefix else name


def _table(places: list[Place], lines: list[Line]) -> Table:
    rows = ((places[each.end].name, places[each.start].name, each.value) for each in lines)
    return [("from", "to", "nats"), *rows]

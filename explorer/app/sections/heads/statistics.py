"""Results of a survey of heads: a map of all heads, the chosen head in detail, the roles, the table."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import session
from explorer.app.controls import panel, pickers, plain
from explorer.app.sections.heads import profile
from explorer.app.sections.heads.choice import Found, written
from explorer.app.server import models
from explorer.app.server.source import Source
from explorer.app.server.surveys import named
from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.pages.heads import Cell, Marks, head_grid, plane
from explorer.lenses.heads.measures import Statistic
from explorer.lenses.heads.roles import ALIGNMENT, MIXED, MIXED_DEFINITION, ROLES, THRESHOLDS, role
from explorer.lenses.heads.survey import Survey
from transformer.config import Head

_SHORT = {
    ALIGNMENT: "align",
    "previous token": "prev",
    "next token": "next",
    "same word": "word",
    "first or last": "edge",
    "sink": "sink",
    "content": "content",
    MIXED: "–",
}
_SEEING = (
    "Every cell is a head. Its number shows one statistic over all sentences, and its colour is strongest "
    "where the value stands out: the largest, or the smallest error, entropy or distance. Its word names "
    "the role that the head plays. A role is the name of a measured pattern with a threshold, not an "
    "explanation. Statistics are means over rows; rows that can see only one key are left out."
)


def show(found: Found, source: Source) -> None:
    """Draws everything for one kind."""
    st.markdown(_sentence(found))
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        _map(found)
        _roles(found.survey, source.guided)
    with right:
        _detail(found, source)
    _table(found)


def grid(found: Found, color: str | None = None) -> go.Figure:
    """The map of all heads by the chosen statistic, with a frame around the chosen head."""
    return head_grid(_cells(found), found.kind, found.head, color, found.statistic.falling)


def _cells(found: Found) -> list[list[Cell]]:
    names, statistic = found.roles, found.statistic
    layers, heads = names.shape

    def cell(head: Head) -> Cell:
        value, name = found.value(head, statistic), str(names[head])
        text = written(value, statistic)
        phrase = f"layer {labels.count(head[0])}, head {labels.count(head[1])}"
        return Cell(
            value, text, _SHORT[name], f"{phrase}\n{statistic.label}: {text}\nrole: {found.role(head)}"
        )

    return [[cell((layer, head)) for head in range(heads)] for layer in range(layers)]


def _sentence(found: Found) -> str:
    survey, kind, names = found.survey, found.kind, found.roles
    counts = Counter(names.ravel().tolist())
    mixed = counts.pop(MIXED, 0)
    heads = f"the {names.size} heads of {KIND_NAMES[kind].lower()}"
    over = f"Over {survey.sentences} sentence{'s' * (survey.sentences != 1)}"
    if not counts:
        return f"{over}, none of {heads} plays one of the roles: all are mixed."
    playing = [head for head in found.heads if names[head] != MIXED]
    best = max(playing, key=lambda head: survey.stability(kind, *head))
    kept = percent(survey.stability(kind, *best))
    shown = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return (
        f"{over}, {heads} show: **{shown}**, {mixed} mixed. The steadiest is {labels.head_phrase(*best)}: "
        f"*{found.role(best)}* in {kept} of the {_of_what(str(names[best]), survey)}."
    )


def _of_what(name: str, survey: Survey) -> str:
    return f"{survey.pairs} pairs with links made by hand" if name == ALIGNMENT else "sentences"


def _map(found: Found) -> None:
    kind, statistic = str(found.kind), found.statistic
    names = {each.name: each.label for each in found.known}
    as_points = found.now.heads_as == "points"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pickers.switch("heads_as", "All heads", {"tiles": "tiles", "points": "points"}, found.now.heads_as)
        pickers.choose(
            f"heads.statistic.{kind}",
            "Colour" if as_points else "Statistic",
            names,
            statistic.name,
            "statistic",
            width=260,
            labelled=as_points,
        )
        across, up = (
            next((each for each in found.known if each.name == asked), usual)
            for asked, usual in ((found.now.across, found.entropy), (found.now.up, found.known[0]))
        )
        if as_points:
            pickers.choose("across", "Across", names, across.name, width=220, labelled=True)
            pickers.choose("up", "Up", names, up.name, width=220, labelled=True)
    panel(
        f"heads-{kind}-{statistic.name}{'-points' * as_points}",
        partial(_points, found, across, up) if as_points else partial(grid, found),
        caption(found),
        key=f"heads.map.{kind}{'.points' * as_points}",
        seeing=_SEEING,
        alt=f"All heads by {statistic.label}; the table below says the same",
        take=lambda head: session.change(**{kind: tuple(head)}),
        inked=not as_points,
        sentence=False,
    )


def _points(found: Found, across: Statistic, up: Statistic) -> go.Figure:
    """All heads in the plane of two statistics, shaded by the chosen one."""
    x, y, shade = (
        np.array([found.value(head, each) for head in found.heads]) for each in (across, up, found.statistic)
    )
    notes = [
        f"{labels.head_name(*head)}, {found.role(head)}\n"
        + "\n".join(
            f"{each.label}: {written(found.value(head, each), each)}"
            for each in (across, up, found.statistic)
        )
        for head in found.heads
    ]
    ends = tuple(written(float(each), found.statistic) for each in (shade.min(), shade.max()))
    here = found.heads.index((found.head[0], found.head[1]))
    marks = Marks("", x, y, style.HUES[str(found.kind)], notes, found.heads, values=shade)
    ring = float(x[here]), float(y[here])
    return plane(
        [marks], (across.label, up.label), ring, ends=(ends[0], ends[1]), falling=found.statistic.falling
    )


def caption(found: Found) -> str:
    """Caption of the map: kind, statistic, scale, sentences, model."""
    survey, statistic = found.survey, found.statistic
    values = [found.value(head, statistic) for head in found.heads]
    span = f"{written(min(values), statistic)} to {written(max(values), statistic)}"
    forced = survey.forced
    how = {survey.sentences: "each with a given translation", 0: "translated greedily"}.get(
        forced, f"{forced} with a given translation, the rest translated greedily"
    )
    left_out = f" · {survey.skipped} left out, too long for this model" if survey.skipped else ""
    data = (
        f"sample of {named(models.known(survey.model))}"
        if found.file is None
        else f"your file {labels.shorten(found.file, 24)}"
    )
    sentences = f"{survey.sentences} sentence{'s' * (survey.sentences != 1)} ({data})"
    return (
        f"{KIND_NAMES[found.kind]} · all heads · {statistic.label}, colour from {span} · {sentences}, "
        f"{how}{left_out} · {survey.model} · derived from recorded traces; to see one verified, open an "
        "example"
    )


def _detail(found: Found, source: Source) -> None:
    survey, kind, chosen = found.survey, found.kind, found.head
    name = str(found.roles[chosen])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"##### {labels.head_name(*chosen)} · {found.role(chosen)}", width="content")
        with st.container(width=220):
            pickers.head_picker(kind, chosen, source)
    kept = f"taken one by one, **{percent(survey.stability(kind, *chosen))}** of the"
    if name == MIXED:
        st.markdown(f"This head reaches the threshold of no role; {kept} sentences show no role either.")
    else:
        told = f"{kept[0].upper()}{kept[1:]} {_of_what(name, survey)} show it."
        st.markdown(f"{_escaped(role(name).definition)} {told}")
    profile.show(found, source)
    with st.expander("All statistics of this head"):
        rows = (
            (each.label, written(found.value(chosen, each), each), each.definition) for each in found.known
        )
        lines = (f"| {' | '.join(map(plain, row))} |" for row in rows)
        st.markdown("\n".join(["| statistic | value | meaning |", "|---|---:|---|", *lines]))


def _roles(survey: Survey, guided: str) -> None:
    st.markdown("##### The roles")
    counts = {kind: Counter(survey.roles(kind).ravel().tolist()) for kind in survey.means}
    lines = [f"| role | definition | heads: {' / '.join(counts)} |", "|---|---|---:|"]
    for each in ROLES:
        found = (str(counts[kind][each.name]) if kind in each.kinds else "–" for kind in counts)
        name = f"{each.name} ({_SHORT[each.name]})"
        lines.append(f"| {name} | {_escaped(each.definition)} | {' / '.join(found)} |")
    mixed = (str(counts[kind][MIXED]) for kind in counts)
    lines.append(f"| {MIXED} ({_SHORT[MIXED]}) | {MIXED_DEFINITION} | {' / '.join(mixed)} |")
    st.markdown("\n".join(lines))
    st.caption(
        "A head has the first role, from the top, whose threshold it reaches. The last column counts heads. "
        f"{THRESHOLDS} The alignment error comes from {survey.pairs} pairs of the sample, whose links were "
        f"made by hand. {plain(guided)}".rstrip()
    )


def _escaped(text: str) -> str:
    return text.replace("<", "\\<")


def _table(found: Found) -> None:
    with st.expander("All heads and statistics as a table"):
        known = found.known
        rows = [
            {"head": labels.head_name(*head), "role": found.role(head)}
            | {each.label: found.value(head, each) for each in known}
            for head in found.heads
        ]
        formats = {
            each.label: st.column_config.NumberColumn(format="%.2f", help=each.definition) for each in known
        }
        st.dataframe(
            rows,
            hide_index=True,
            column_config=formats,
            alt=f"Statistics of every head of {KIND_NAMES[found.kind].lower()}",
        )

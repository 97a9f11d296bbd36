"""All heads of a kind over the sentences: the map, the roles, the table; and beside them the chosen head."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import session
from explorer.app.controls import panel, pickers, plain
from explorer.app.sections.heads import head
from explorer.app.sections.heads.head import Found, written
from explorer.app.server import models
from explorer.app.server.source import Source
from explorer.app.server.surveys import named
from explorer.figures.base import labels, style
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.pages.heads import Cell, Marks, head_grid, plane
from explorer.lenses.heads.measures import Statistic
from explorer.lenses.heads.roles import MIXED, MIXED_DEFINITION, ROLES, THRESHOLDS

_SHORT = {each.name: each.short for each in ROLES} | {MIXED: "–"}
_SEEING = (
    "Every cell is a head. Its number is one statistic, a mean over the rows of all sentences that see more "
    "than one key, and its colour is strongest where the value stands out: the largest, or the smallest "
    "error, entropy or distance. Its word names the role that the head plays: a measured pattern with a "
    "threshold, not an explanation."
)


def show(found: Found, source: Source) -> None:
    """Draws everything for one kind."""
    st.markdown(_sentence(found))
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        _map(found)
        _roles(found, source.guided)
    with right:
        head.show(found, source)
    known, places = found.known.values(), [*np.ndindex(found.roles.shape)]
    rows = {"head": [labels.head_name(*each) for each in places], "role": [*map(found.role, places)]}
    with st.expander("All heads and statistics as a table"):
        st.dataframe(
            rows | {each.label: found.values(each).ravel().astype(float) for each in known},
            hide_index=True,
            column_config={
                each.label: st.column_config.NumberColumn(format="%.2f", help=each.definition)
                for each in known
            },
            alt=f"Statistics of every head of {KIND_NAMES[found.kind].lower()}",
        )


def grid(found: Found, color: str | None = None) -> go.Figure:
    """The map of all heads by the chosen statistic, with a frame around the chosen head."""
    cells = [[Cell(0.0, "", "", "")] * found.roles.shape[1] for _ in found.roles]
    for place, value in np.ndenumerate(found.values(found.statistic)):
        text, role = written(value, found.statistic), _SHORT[str(found.roles[place])]
        cells[place[0]][place[1]] = Cell(float(value), text, role, _note(found, place, found.statistic))
    return head_grid(cells, found.kind, found.head, color, found.statistic.falling)


def _note(found: Found, place: tuple[int, ...], *statistics: Statistic) -> str:
    """The hover text of a head."""
    lines = [f"{each.label}: {written(found.values(each)[place], each)}" for each in statistics]
    layer, number = place
    return "\n".join([labels.head_phrase(layer, number), *lines, f"role: {found.role((layer, number))}"])


def _points(found: Found, across: Statistic, up: Statistic) -> go.Figure:
    """All heads in the plane of two statistics, shaded by the chosen one."""
    x, y, shade = (found.values(each) for each in (across, up, found.statistic))
    places = [*np.ndindex(x.shape)]
    notes = [_note(found, place, across, up, found.statistic) for place in places]
    hue = style.HUES[str(found.kind)]
    marks = Marks("", x.ravel(), y.ravel(), hue, notes, places, values=shade.ravel())
    low, high = (written(each, found.statistic) for each in (shade.min(), shade.max()))
    ring, titles = (float(x[found.head]), float(y[found.head])), (across.label, up.label)
    return plane([marks], titles, ring, ends=(low, high), falling=found.statistic.falling)


def _sentence(found: Found) -> str:
    survey, counts = found.survey, Counter(found.roles.ravel().tolist())
    mixed = counts.pop(MIXED, 0)
    heads = f"the {found.roles.size} heads of {KIND_NAMES[found.kind].lower()}"
    over = f"Over {survey.sentences} sentence{'s' * (survey.sentences != 1)}"
    if not counts:
        return f"{over}, none of {heads} plays one of the roles: all are mixed."
    kept = np.where(found.roles == MIXED, -1, survey.profiles[found.kind].kept)
    best = divmod(int(kept.argmax()), kept.shape[1])
    shown = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return (
        f"{over}, {heads} show: **{shown}**, {mixed} mixed. The steadiest is {labels.head_phrase(*best)}: "
        f"*{found.role(best)}* in {found.keeping(best)}."
    )


def _map(found: Found) -> None:
    kind, statistic, now = str(found.kind), found.statistic, found.now
    names = {each.name: each.label for each in found.known.values()}
    as_points = now.heads_as == "points"
    across, up = found.choice(now.across, "entropy"), found.choice(now.up, next(iter(names)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pickers.switch("heads_as", "All heads", {"tiles": "tiles", "points": "points"}, now.heads_as)
        label, key = "Colour" if as_points else "Statistic", f"heads.statistic.{kind}"
        pickers.choose(key, label, names, statistic.name, "statistic", width=260, labelled=as_points)
        if as_points:
            pickers.choose("across", "Across", names, across.name, width=220, labelled=True)
            pickers.choose("up", "Up", names, up.name, width=220, labelled=True)
    panel(
        f"heads-{kind}-{statistic.name}{'-points' * as_points}",
        partial(_points, found, across, up) if as_points else partial(grid, found),
        caption(found),
        key=f"heads.map.{kind}{'.points' * as_points}",
        seeing=f"{_SEEING} **{statistic.label}**: {statistic.definition}".replace("<", "\\<"),
        alt=f"All heads by {statistic.label}; the table below says the same",
        take=lambda place: session.change(**{kind: tuple(place)}),
        inked=not as_points,
        sentence=False,
    )


def caption(found: Found) -> str:
    """Caption of the map: kind, statistic, scale, sentences, model."""
    survey, values = found.survey, found.values(found.statistic)
    low, high = (written(each, found.statistic) for each in (values.min(), values.max()))
    some = f"{survey.forced} with a given translation, the rest translated greedily"
    how = {survey.sentences: "each with a given translation", 0: "translated greedily"}
    left_out = f" · {survey.skipped} left out, too long for this model" * bool(survey.skipped)
    sample = f"sample of {named(models.known(survey.model))}"
    data = sample if found.file is None else f"your file {labels.shorten(found.file, 24)}"
    return (
        f"{KIND_NAMES[found.kind]} · all heads · {found.statistic.label}, colour from {low} to {high} · "
        f"{survey.sentences} sentence{'s' * (survey.sentences != 1)} ({data}), {how.get(survey.forced, some)}"
        f"{left_out} · {survey.model} · derived from recorded traces; to see one verified, open an example"
    )


def _roles(found: Found, guided: str) -> None:
    survey = found.survey
    counts = {kind: Counter(survey.roles(kind).ravel().tolist()) for kind in survey.means}
    table = [(each.name, each.definition, each.kinds) for each in ROLES]
    lines = [f"| role | definition | heads: {' / '.join(counts)} |", "|---|---|---:|"]
    for name, definition, kinds in (*table, (MIXED, MIXED_DEFINITION, tuple(counts))):
        heads = " / ".join(str(counts[kind][name]) if kind in kinds else "–" for kind in counts)
        lines.append(f"| {name} ({_SHORT[name]}) | {definition} | {heads} |".replace("<", "\\<"))
    st.markdown("##### The roles")
    st.markdown("\n".join(lines))
    st.caption(
        "A head has the first role, from the top, whose threshold it reaches. The last column counts heads. "
        f"{THRESHOLDS} The alignment error comes from {survey.pairs} pairs of the sample, whose links were "
        f"made by hand. {plain(guided)}".rstrip()
    )

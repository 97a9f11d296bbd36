"""All heads of a kind over the sentences: the map, the roles, the table.

And beside them the chosen head.
"""

from collections import Counter
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import session
from explorer.app.controls import panel, pickers, plain
from explorer.app.sections.heads import head
from explorer.app.sections.heads.head import SurveyView, written
from explorer.app.server.source import Source
from explorer.app.server.surveys import named
from explorer.figures.base import labels
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.pages.heads import Cell, head_grid
from explorer.lenses.heads.roles import MIXED, MIXED_DEFINITION, ROLES, THRESHOLDS

_SHORT = {role.name: role.short for role in ROLES.values()} | {MIXED: "–"}
_SEEING = (
    "Every cell is a head. Its number is one statistic, a mean over the rows of all sentences "
    "that see more than one key, and its colour is strongest where the value stands out: the "
    "largest, or the smallest error, entropy or distance. Its word names the role that the head "
    "plays: a measured pattern with a threshold, not an explanation."
)


def show(view: SurveyView, source: Source) -> None:
    st.markdown(_sentence(view))
    left, right = st.columns([1.25, 1], gap="medium")
    kind = str(view.kind)
    statistic = view.statistic
    with left:
        names = {statistic.name: statistic.label for statistic in view.known.values()}
        pickers.choose(
            f"heads.statistic.{kind}", "Statistic", names, statistic.name, "statistic", width=260
        )
        panel(
            f"heads-{kind}-{statistic.name}",
            partial(grid, view),
            caption(view),
            key=f"heads.map.{kind}",
            seeing=f"{_SEEING} **{statistic.label}**: {statistic.definition}".replace("<", "\\<"),
            alt=f"All heads by {statistic.label}; the table below says the same",
            take=lambda place: session.change(**{kind: tuple(place)}),
            inked=True,
            sentence=False,
        )
        _roles(view, source.header.guided_alignment)
    with right:
        head.show(view, source)
    known = view.known.values()
    places = [*np.ndindex(view.roles.shape)]
    rows = {"head": [labels.head_name(*head) for head in places], "role": [*map(view.role, places)]}
    with st.expander("All heads and statistics as a table"):
        number = partial(st.column_config.NumberColumn, format="%.2f")
        columns = {value.label: number(help=value.definition) for value in known}
        values = {number.label: view.values(number).ravel().astype(float) for number in known}
        alt = f"Statistics of every head of {KIND_NAMES[view.kind].lower()}"
        st.dataframe(rows | values, hide_index=True, column_config=columns, alt=alt)


def grid(view: SurveyView, color: str | None = None) -> go.Figure:
    """The map of all heads by the chosen statistic, with a frame around the chosen head."""
    cells = [[Cell(0.0, "", "", "")] * view.roles.shape[1] for _ in view.roles]
    for place, value in np.ndenumerate(view.values(view.statistic)):
        text = written(value, view.statistic)
        role = _SHORT[str(view.roles[place])]
        layer, number = place
        note = f"{labels.head_phrase(layer, number)}\n{view.statistic.label}: {text}"
        note += f"\nrole: {view.role((layer, number))}"
        cells[layer][number] = Cell(float(value), text, role, note)
    return head_grid(cells, view.kind, view.head, color, view.statistic.falling)


def _sentence(view: SurveyView) -> str:
    survey = view.survey
    counts = Counter(view.roles.ravel().tolist())
    mixed = counts.pop(MIXED, 0)
    heads = f"the {view.roles.size} heads of {KIND_NAMES[view.kind].lower()}"
    over = f"Over {labels.counted(survey.sentences, 'sentence')}"
    if not counts:
        return f"{over}, none of {heads} plays one of the roles: all are mixed."
    fractions = np.where(view.roles == MIXED, -1, survey.profiles[view.kind].kept)
    best = divmod(int(fractions.argmax()), fractions.shape[1])
    totals = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    return (
        f"{over}, {heads} show: **{totals}**, {mixed} mixed. The steadiest is "
        f"{labels.head_phrase(*best)}: *{view.role(best)}* in {view.keeping(best)}."
    )


def caption(view: SurveyView) -> str:
    """Caption of the map: kind, statistic, scale, sentences, model."""
    survey = view.survey
    values = view.values(view.statistic)
    low, high = (written(end, view.statistic) for end in (values.min(), values.max()))
    words = view.words
    some = f"{survey.forced} {words.forced}, the rest {words.decoded}"
    how = {survey.sentences: f"each {words.forced}", 0: words.decoded}
    left_out = ""
    if survey.skipped:
        left_out = f" · {survey.skipped} left out, too long for this model"
    sample = f"sample of {named(view.source)}"
    data = sample if view.file is None else f"your file {labels.shorten(view.file, 24)}"
    return (
        f"{KIND_NAMES[view.kind]} · all heads · {view.statistic.label}, colour from {low} to "
        f"{high} · {labels.counted(survey.sentences, 'sentence')} ({data}), "
        f"{how.get(survey.forced, some)}{left_out} · {survey.model} · derived from recorded "
        "traces; to see one verified, open an example"
    )


def _roles(view: SurveyView, guided: str) -> None:
    survey = view.survey
    counts = {kind: Counter(survey.roles(kind).ravel().tolist()) for kind in survey.profiles}
    table = [(role.name, role.definition, role.kinds) for role in ROLES.values()]
    lines = [f"| role | definition | heads: {' / '.join(counts)} |", "|---|---|---:|"]
    for name, definition, kinds in (*table, (MIXED, MIXED_DEFINITION, tuple(counts))):
        heads = " / ".join(str(counts[kind][name]) if kind in kinds else "–" for kind in counts)
        lines.append(f"| {name} ({_SHORT[name]}) | {definition} | {heads} |".replace("<", "\\<"))
    st.markdown("##### The roles")
    st.markdown("\n".join(lines))
    st.caption(
        "A head has the first role, from the top, whose threshold it reaches. The last column "
        "counts heads. "
        f"{THRESHOLDS} The alignment error comes from {survey.pairs} pairs of the Tatoeba sample, "
        "whose "
        f"links were made by hand; *Word alignment* names the pairs of its own. {plain(guided)}".rstrip()
    )

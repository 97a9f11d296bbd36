"""Results of a survey of heads: a map of all heads, the chosen head in detail, the roles, the table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures.base import labels
from figures.base.bars import percent
from figures.base.captions import KIND_NAMES
from figures.pages.heads import Cell, head_grid
from lab.heads.measures import STATISTICS, Statistic
from lab.heads.shipped import Surveyed
from lab.heads.survey import Example
from lenses.heads.roles import ALIGNMENT, MIXED, MIXED_DEFINITION, ROLES, THRESHOLDS, role
from transformer.model.sites import AttentionKind, Head
from ui.address import State, session
from ui.address.parameters import link
from ui.controls import panel, pickers, plain
from ui.server import catalogue
from ui.server.background.surveys import named

PAGES = {
    "encoder": "pages/encoder_self_attention.py",
    "decoder": "pages/decoder_self_attention.py",
    "cross": "pages/cross_attention.py",
}
_FIRST = {"encoder": "previous", "decoder": "same_word", "cross": "aer"}
_ERROR = "AER of the implied word alignment on the links made by hand"
_KNOWN = (
    *STATISTICS,
    Statistic("aer", "alignment error", f"{_ERROR}.", falling=True),
    Statistic(
        "aer_read", "alignment error, row read", f"{_ERROR}, with the rows that read a word.", falling=True
    ),
    Statistic("keeps", "keeps its role", "Share of the sentences that show the head's role."),
)
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
    "Every cell is a head. Its colour and number show one statistic over all sentences; its word names the "
    "role that the head plays. A role is the name of a measured pattern with a threshold, not an "
    "explanation. Statistics are means over rows; rows that can see only one key are left out."
)


@dataclass(frozen=True)
class Found:
    """Results of a survey, and the visitor's choices among them."""

    survey: Surveyed  # statistics of every head over the sentences
    now: State  # what the visitor asked for
    kind: AttentionKind  # encoder, decoder or cross
    head: Head  # the chosen head, from 0
    known: tuple[Statistic, ...]  # the statistics that heads of the kind have
    statistic: Statistic  # the one that the visitor chose, or the usual one if the kind lacks it
    file: str | None  # the name of the visitor's own file of sentences; None for the sample

    @classmethod
    def of(cls, survey: Surveyed, kind: str, now: State, file: str | None) -> Found:
        """Choices of a state among a survey; the model must have the head that the state names."""
        names = {*survey.means[AttentionKind(kind)], "keeps"}
        known = tuple(each for each in _KNOWN if each.name in names)
        usual = next((each for each in known if each.name == _FIRST[kind]), known[0])
        statistic = next((each for each in known if each.name == now.statistic), usual)
        return cls(survey, now, AttentionKind(kind), getattr(now, kind), known, statistic, file)

    @property
    def roles(self) -> np.ndarray:
        """The role of every head, (layers, heads)."""
        return self.survey.roles(self.kind)

    @property
    def heads(self) -> list[Head]:
        """All heads of the kind, from 0."""
        layers, heads = self.roles.shape
        return [(layer, head) for layer in range(layers) for head in range(heads)]

    def value(self, head: Head, statistic: Statistic) -> float:
        """A statistic of a head."""
        if statistic.name == "keeps":
            return self.survey.stability(self.kind, *head)
        return float(self.survey.means[self.kind][statistic.name][head])


def show(found: Found, model: str) -> None:
    """Draws everything for one kind."""
    st.markdown(_sentence(found))
    left, right = st.columns([1.25, 1], gap="medium")
    with left:
        _map(found)
    with right:
        _detail(found, model)
    _roles(found.survey, catalogue.guided(model))
    _table(found)


def grid(found: Found, color: str | None = None) -> go.Figure:
    """The map of all heads by the chosen statistic, with a frame around the chosen head."""
    return head_grid(_cells(found), found.kind, found.head, color)


def written(value: float, statistic: Statistic) -> str:
    """A statistic as text: shares in per cent, others with two decimals."""
    shares = statistic.unit == "share" and statistic.name != "entropy"
    return percent(value) if shares else f"{value:.2f}"


def _cells(found: Found) -> list[list[Cell]]:
    names, statistic = found.roles, found.statistic
    layers, heads = names.shape

    def cell(head: Head) -> Cell:
        value, name = found.value(head, statistic), str(names[head])
        text = written(value, statistic)
        phrase = f"layer {labels.count(head[0])}, head {labels.count(head[1])}"
        return Cell(value, text, _SHORT[name], f"{phrase}\n{statistic.label}: {text}\nrole: {name}")

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
        f"*{names[best]}* in {kept} of the {_of_what(str(names[best]), survey)}."
    )


def _of_what(name: str, survey: Surveyed) -> str:
    return f"{survey.pairs} pairs with links made by hand" if name == ALIGNMENT else "sentences"


def _map(found: Found) -> None:
    kind, statistic = str(found.kind), found.statistic
    pickers.choose(
        f"heads.statistic.{kind}",
        "Statistic",
        {each.name: each.label for each in found.known},
        statistic.name,
        "statistic",
        width=300,
    )
    panel(
        f"heads-{kind}-{statistic.name}",
        partial(grid, found),
        caption(found),
        key=f"heads.map.{kind}",
        seeing=_SEEING,
        alt=f"All heads by {statistic.label}; the table below says the same",
        take=lambda head: session.change(**{kind: tuple(head)}),
        inked=True,
        sentence=False,
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
        f"sample of {named(survey.model)}"
        if found.file is None
        else f"your file {labels.shorten(found.file, 24)}"
    )
    sentences = f"{survey.sentences} sentence{'s' * (survey.sentences != 1)} ({data})"
    return (
        f"{KIND_NAMES[found.kind]} · all heads · {statistic.label}, colour from {span} · {sentences}, "
        f"{how}{left_out} · {survey.model} · derived from recorded traces; to see one verified, open an "
        "example"
    )


def _detail(found: Found, model: str) -> None:
    survey, kind, chosen = found.survey, found.kind, found.head
    name = str(found.roles[chosen])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"##### {labels.head_name(*chosen)} · {name}", width="content")
        with st.container(width=220):
            pickers.head_picker(kind, chosen, model)
    kept = f"taken one by one, **{percent(survey.stability(kind, *chosen))}** of the"
    if name == MIXED:
        st.markdown(f"This head reaches the threshold of no role; {kept} sentences show no role either.")
    else:
        told = f"{kept[0].upper()}{kept[1:]} {_of_what(name, survey)} show it."
        st.markdown(f"{_escaped(role(name).definition)} {told}")
    mixed = ("Farthest from any role", "Closest to one")
    titles = mixed if name == MIXED else ("Shows it most", "Shows it least")
    for title, examples in zip(titles, survey.examples(kind, *chosen), strict=True):
        if examples:
            st.caption(title)
        for each in examples:
            _link(each, _shown(survey, name, each), found)
    with st.expander("All statistics of this head"):
        rows = (
            (each.label, written(found.value(chosen, each), each), each.definition) for each in found.known
        )
        lines = (f"| {' | '.join(map(plain, row))} |" for row in rows)
        st.markdown("\n".join(["| statistic | value | meaning |", "|---|---:|---|", *lines]))


def _shown(survey: Surveyed, name: str, example: Example) -> str:
    """Strength of a role in a sentence, in the unit of that role."""
    if name == MIXED:
        return ""
    threshold = role(name).threshold
    if name == ALIGNMENT:
        diagonal = float(survey.means[AttentionKind.CROSS]["aer_diagonal"].flat[0])
        return f" · error {percent(round(threshold / example.strength * diagonal, 3))}"
    value = threshold * example.strength
    return f" · {percent(value)}" if role(name).share else f" · {value:.2f} times"


def _link(example: Example, shown: str, found: Found) -> None:
    """Links to a sentence in the view of its kind, which runs it as it was run here."""
    line, kind = example.line, str(found.kind)
    values = {"text": line.source, "target": line.target, kind: found.head, "decode": "greedy"}
    st.page_link(
        PAGES[kind],
        label=plain(labels.shorten(example.line.source, 60) + shown),
        help=plain(example.line.target or "translated greedily"),
        icon=":material/open_in_new:",
        query_params=link(found.now, step=None, source=None, **values),
    )


def _roles(survey: Surveyed, guided: str) -> None:
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
        known, names = found.known, found.roles
        rows = [
            {"head": labels.head_name(*head), "role": str(names[head])}
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

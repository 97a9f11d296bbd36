"""What the chosen head does over many sentences: its tokens, its distances, its sentences in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from explorer.app.controls import inform, panel, pickers, plain
from explorer.app.sections.heads import circuits
from explorer.app.sections.heads.choice import Found, link_to, written
from explorer.app.server.source import Source
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.pages.heads import distance_bars
from explorer.lenses.heads.measures import SORTED, UNITS
from explorer.lenses.heads.profile import FAR
from explorer.lenses.heads.roles import ALIGNMENT, MIXED, role
from explorer.lenses.heads.survey import SurveyExample, Token
from explorer.lenses.measures.stream import UnmeasuredError
from transformer.config import AttentionKind

_FIFTHS = ("Highest fifth", "Second fifth", "Middle fifth", "Fourth fifth", "Lowest fifth")
_ROWS = {"cross": "predict", "encoder": "are", "decoder": "read"}


def show(found: Found, source: Source) -> None:
    """What the chosen head does: one of three facets, and, folded, what is measured on a few sentences."""
    chosen = found.now.facet if found.now.facet in FACETS else "tokens"
    pickers.switch("facet", "What to see of the head", {name: name for name in FACETS}, chosen)
    if found.survey.brief and chosen in ("tokens", "sentences"):
        inform("The file of this model has statistics alone: let the model read the sentences here, below.")
    else:
        FACETS[chosen](found)
    for name, (title, draw) in FOLDED.items():
        fold = st.expander(title, found.now.facet == name, key=f"fold.{name}", on_change="rerun")
        if fold.open:
            with fold:
                try:
                    draw(found, source)
                except UnmeasuredError as error:
                    inform(plain(str(error)))


def _tokens(found: Found) -> None:
    now = found.now
    with st.container(horizontal=True):
        pickers.switch("unit", "Units", {unit: unit for unit in UNITS}, now.unit)
        orders = {"weight": "by weight", "lift": "by lift"}
        pickers.switch("keys_by", "Order of the keys", orders, now.keys_by)
    keys, queries = (
        found.survey.tokens(found.kind, *found.head, now.unit, by) for by in (now.keys_by, "selective")
    )
    st.markdown("**Keys that take most weight**")
    _table(keys, ("share of the weight", "lift", "seen"), lambda each: f"{100 * each.value:.1f}\u00a0%")
    st.markdown(f"**Queries that are most selective** (rows that {_ROWS[found.kind]} the {now.unit[:-1]})")
    _table(queries, ("selectivity", "to the head's mean", "seen"), lambda each: f"{each.value:.2f}")
    st.caption(
        "Lift: share of the weight over what even weights on the visible keys would give. Selectivity: 1 − "
        "entropy over the logarithm of the visible keys. The lists by lift and by selectivity leave out what "
        "was seen fewer than three times."
    )


def _table(tokens: list[Token], names: tuple[str, str, str], first: Callable[[Token], str]) -> None:
    if not tokens:
        st.caption("None was seen three times.")
        return
    rows = (
        f"| {plain(labels.display(each.text))} | {first(each)} | {each.ratio:.1f} times | {each.seen} |"
        for each in tokens
    )
    st.markdown("\n".join([f"| | {' | '.join(names)} |", "|---|---:|---:|---:|", *rows]))


def _distances(found: Found) -> None:
    profile = found.survey.profiles[found.kind]
    shares, chance = profile.distances[found.head], profile.chance[found.head[0]]
    most = int(np.argmax(shares - chance))
    where = {0: "at the same position"}.get(most - FAR, f"{abs(most - FAR)} {'before' * (most > FAR)}")
    where = where if most >= FAR else f"{FAR - most} after"
    st.markdown(
        f"Most above even weights: keys **{where}{'' if most == FAR else ' the query'}**, with "
        f"{percent(float(shares[most]))} of the weight instead of {percent(float(chance[most]))}."
        f"{_moved(found)}"
    )
    panel(
        f"distances-{found.kind}",
        lambda: distance_bars(shares, chance, str(found.kind)),
        f"{KIND_NAMES[found.kind]} · {labels.head_phrase(*found.head)} · weight by distance, over "
        f"{found.survey.sentences} sentences; the last bars hold {FAR} and more; line: even weights over the "
        f"visible keys · {found.survey.model}",
        lambda: [
            ["query - key", "share", "even"],
            *([at - FAR, *map(float, pair)] for at, pair in enumerate(zip(shares, chance, strict=True))),
        ],
        sentence=False,
    )


def _moved(found: Found) -> str:
    """What two exchanged words do to the pattern, in a sentence."""
    means = found.survey.means[found.kind]
    if "stays" not in means:
        return ""
    stays, follows = (float(means[name][found.head]) for name in ("stays", "follows"))
    where = "columns" if found.kind is AttentionKind.CROSS else "rows and columns"
    told = (
        f" When two words change places, {percent(stays)} of the weight in their {where} stays in place, and "
        f"{percent(follows)} goes along with them"
    )
    if found.kind is AttentionKind.DECODER:
        return f"{told}; where it can go is for the mask to decide."
    if "stays_error" not in means:
        return f"{told}."
    if abs(stays - follows) <= 2 * float(means["stays_error"][found.head]):
        return f"{told}: within two standard errors, neither is more."
    return f"{told}: it looks more **by {'position' if stays > follows else 'meaning'}**."


def _sentences(found: Found) -> None:
    known = {each.name: each.label for each in found.known}
    names = {name: known.get(name, "strength of its role") for name in SORTED if name in {*known, "role"}}
    order = found.now.sorted_by if found.now.sorted_by in names else "role"
    pickers.choose("sorted_by", "Order of the sentences", names, order, labelled=True)
    shown: set[str] = set()
    for title, examples in zip(_FIFTHS, found.survey.fifths(found.kind, *found.head, order), strict=True):
        if examples:
            st.caption(title)
        for each in examples:
            value = _value(found, order, each)
            text = labels.shorten(each.line.source, 60) + (f" · {value}" if value else "")
            link_to(found, each.line, text, each.row)
            shown.add(each.line.source)
    if not shown:
        inform("No sentence of five words or more has a value.")
    st.caption("Each opens at the row of this head with the largest value; below the middle, the smallest.")


def _value(found: Found, order: str, example: SurveyExample) -> str:
    """The value that orders a sentence, in its unit."""
    if order != "role":
        return written(example.value, next(each for each in found.known if each.name == order))
    name = str(found.roles[found.head])
    if name == MIXED:
        return ""
    threshold = role(name).threshold
    if name == ALIGNMENT:
        diagonal = float(found.survey.means[AttentionKind.CROSS]["aer_diagonal"].flat[0])
        return f"error {percent(round(threshold / example.value * diagonal, 3))}"
    value = threshold * example.value
    return percent(value) if role(name).share else f"{value:.2f} times"


FACETS = {"tokens": _tokens, "distances": _distances, "sentences": _sentences}
"""What can be seen of a head, by the value in the address."""
FOLDED = {
    "points": ("What it compares: queries and keys as points", circuits.compares),
    "sink": ("What it costs to hide where it rests", circuits.rests),
}
"""What is measured on a few dozen sentences, only if somebody asks."""

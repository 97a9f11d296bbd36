"""A survey as a visitor chose to see it, and what the chosen head does over its sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, SupportsFloat

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.page_values import HeadFacts
from explorer.app.address.parameters import link
from explorer.app.controls import inform, panel, pickers, plain
from explorer.app.server import examples
from explorer.app.server.source import Source
from explorer.app.server.stores import remembered
from explorer.app.server.surveys import lines_of, runs_of
from explorer.app.shell.needs import PAGES
from explorer.figures.base import labels, style
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.base.labels import percent
from explorer.figures.maps.lines import SEVERAL
from explorer.figures.pages.heads import Marks, distance_bars, plane
from explorer.lenses.circuits import OUTLIER, Points, Sink, points, sink
from explorer.lenses.heads.roles import (
    ALIGNMENT,
    JUDGED,
    MIXED,
    PROFILED,
    ROLES,
    SORTED,
    STATISTICS,
    UNITS,
    Floats,
    Statistic,
    aligned_by,
)
from explorer.lenses.heads.statistics import FUNCTION_WORDS, content_pieces
from explorer.lenses.heads.survey import FAR, Line, Survey, SurveyExample, Token
from explorer.lenses.heads.surveyor import rows_of
from explorer.lenses.measures.stream import UnmeasuredError
from transformer import Translation
from transformer.config import AttentionKind, Head, PlacedHead
from transformer.text.words import is_punctuation, is_special, readable

_FIRST = {"encoder": "previous", "decoder": "same_word", "cross": "aer"}
_FIFTHS = ("Highest fifth", "Second fifth", "Middle fifth", "Fourth fifth", "Lowest fifth")
_ROWS = {"cross": "predict", "encoder": "are", "decoder": "read"}
_LISTS = (
    "Lift: share of the weight over what even weights on the visible keys would give. "
    "Selectivity: 1 − entropy over the logarithm of the visible keys. Lists hold what was seen "
    "three times or more."
)
_PLANE = (
    "Every point is a query or a key of this head in one of the sentences. A change of basis of q "
    "with the inverse one of k changes no score, so the axes are those of the product itself: "
    "singular values of W_Q W_Kᵀ, √S to each side. A key has a high score if it lies far from the "
    "centre in the query's direction. Biases stay in; the keys' mean is taken off, which adds the "
    "same to a whole row."
)


@dataclass(frozen=True, eq=False)
class SurveyView:
    """Results of a survey, and the visitor's choices among them."""

    survey: Survey  # statistics of every head over the sentences
    kind: AttentionKind  # encoder, decoder or cross
    now: State  # what the visitor asked for; the model has the head that it names
    file: str | None  # the name of the visitor's own file of sentences; None for the sample
    head: Head  # the chosen one, layer and head from 0
    title: str  # its kind and itself, as captions begin
    known: dict[str, Statistic]  # the statistics that heads of the kind have, by name
    statistic: Statistic  # the chosen one; that of the kind, if its heads lack it
    roles: np.ndarray  # the role of every head, (layers, heads)

    @classmethod
    def of(cls, survey: Survey, kind: AttentionKind) -> SurveyView:
        """The choices of the visitor's state in a survey."""
        now = session.current()
        own = session.visit().sentences
        names = {*survey.profiles[kind].means, "keeps"}
        known = {
            each.name: each for each in (*STATISTICS, *PROFILED, *JUDGED) if each.name in names
        }
        chosen = next(
            each
            for each in (now.values(HeadFacts).statistic, _FIRST[str(kind)], *known)
            if each in known
        )
        file = own and own[0]
        head = getattr(now, str(kind))
        roles = survey.roles(kind)
        title = f"{KIND_NAMES[kind]} · {labels.head_phrase(*head)}"
        return cls(survey, kind, now, file, head, title, known, known[chosen], roles)

    def role(self, head: Head) -> str:
        """The role of a head in words; of an alignment, with the row that implies it."""
        name = str(self.roles[head])
        row = (
            f" (row that {aligned_by(self.survey.profiles[self.kind].means)[head]})"
            if name == ALIGNMENT
            else ""
        )
        return name + row

    def keeping(self, head: Head, strong: str = "") -> str:
        """In how many of the sentences a head shows its role."""
        links = f"{self.survey.pairs} pairs with links made by hand"
        share = percent(float(self.survey.profiles[self.kind].kept[head]))
        return (
            f"{strong}{share}{strong} of the "
            f"{links if self.roles[head] == ALIGNMENT else 'sentences'}"
        )

    def values(self, statistic: Statistic) -> Floats:
        """A statistic of all heads, (layers, heads)."""
        means = self.survey.profiles[self.kind].means
        if statistic.name == "keeps":
            return self.survey.profiles[self.kind].kept
        if statistic.name == "aer":
            return np.fmin(means["aer"], means.get("aer_read", means["aer"]))
        return means[statistic.name]


def written(value: SupportsFloat, statistic: Statistic) -> str:
    """A statistic as text: shares in per cent, others with two decimals."""
    shares = statistic.unit == "share" and statistic.name != "entropy"
    return percent(float(value)) if shares else labels.number(float(value), ".2f")


def link_to(
    view: SurveyView, line: Line, label: str, row: int | None, source: int | None = None
) -> None:
    """Links to a sentence in the view of the kind, which runs it as it was run here, at a row of
    the head."""
    kind = str(view.kind)
    values = {"text": line.source, "sentence": examples.whole(line.source), "target": line.target}
    values |= (
        {"step": None, "source": row} if kind == "encoder" else {"step": row, "source": source}
    )
    st.page_link(
        PAGES[kind],
        label=plain(label),
        help=plain(line.target or "translated greedily"),
        icon=":material/open_in_new:",
        query_params=link(view.now, decode="greedy", **{kind: view.head}, **values),
    )


def show(view: SurveyView, source: Source) -> None:
    """The chosen head: its role, one of three facets, and, folded, what is measured on a few
    sentences."""
    name = str(view.roles[view.head])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"##### {labels.head_name(*view.head)} · {view.role(view.head)}", width="content"
        )
        pickers.head_picker(view.kind, view.head, source)
    kept = view.keeping(view.head, "**")
    if name == MIXED:
        st.markdown(
            f"It reaches the threshold of no role; taken one by one, {kept} show no role either."
        )
    else:
        definition = ROLES[name].definition.replace("<", "\\<")
        st.markdown(f"{definition} Taken one by one, {kept} show it.")
    chosen = view.now.values(HeadFacts).facet
    facet = chosen if chosen in FACETS else "tokens"
    pickers.switch("facet", "What to see of the head", {name: name for name in FACETS}, facet)
    if view.survey.brief and facet != "distances":
        inform(
            "The file of this model has statistics alone: let the model read the sentences here, "
            "below."
        )
    else:
        FACETS[facet](view)
    for name, (title, draw) in FOLDED.items():
        fold = st.expander(title, chosen == name, key=f"fold.{name}", on_change="rerun")
        if fold.open:
            with fold:
                try:
                    draw(view, source)
                except UnmeasuredError as error:
                    inform(plain(str(error)))


def _tokens(view: SurveyView) -> None:
    values = view.now.values(HeadFacts)
    with st.container(horizontal=True):
        pickers.switch("unit", "Units", {unit: unit for unit in UNITS}, values.unit)
        orders = {"weight": "by weight", "lift": "by lift"}
        pickers.switch("keys_by", "Order of the keys", orders, values.keys_by)

    def table(by: str, names: str, first: Callable[[Token], str]) -> None:
        rows = [
            (
                f"| {plain(labels.display(token.text))} | {first(token)} | {token.ratio:.1f} times "
                f"| {token.seen} |"
            )
            for token in view.survey.tokens(view.kind, *view.head, values.unit, by)
        ]
        heading = [f"| | {names} | seen |", "|---|---:|---:|---:|"]
        st.markdown("\n".join([*heading, *rows]) if rows else "None was seen three times.")

    st.markdown("**Keys that take most weight**")
    table(
        values.keys_by, "share of the weight | lift", lambda each: f"{100 * each.value:.1f}\u00a0%"
    )
    st.markdown(
        f"**Queries that are most selective** (rows that {_ROWS[view.kind]} the {values.unit[:-1]})"
    )
    table("selective", "selectivity | to the head's mean", lambda each: f"{each.value:.2f}")
    st.caption(_LISTS)


def _distances(view: SurveyView) -> None:
    profile = view.survey.profiles[view.kind]
    shares = profile.distances[view.head]
    chance = profile.chance[view.head[0]]
    most = int(np.argmax(shares - chance))
    away = f"{abs(most - FAR)} {'before' if most > FAR else 'after'}** the query"
    st.markdown(
        f"Most above even weights: keys **{away if most != FAR else 'at the same position**'}, "
        f"with {percent(float(shares[most]))} of the weight instead of "
        f"{percent(float(chance[most]))}."
    )
    panel(
        f"distances-{view.kind}",
        lambda: distance_bars(shares, chance, str(view.kind)),
        f"{view.title} · weight by distance, over {view.survey.sentences} sentences; the last "
        f"bars hold {FAR} and more; line: even weights over the visible keys · {view.survey.model}",
        lambda: [
            ["query - key", "share", "even"],
            *(
                [at - FAR, *map(float, pair)]
                for at, pair in enumerate(zip(shares, chance, strict=True))
            ),
        ],
        sentence=False,
    )


def _sentences(view: SurveyView) -> None:
    names = {"role": "strength of its role"} | {
        name: each.label for name, each in view.known.items()
    }
    names = {name: names[name] for name in SORTED if name in names}
    order = view.now.values(HeadFacts).sorted_by
    if order not in names:
        order = "role"
    pickers.choose("sorted_by", "Order of the sentences", names, order, labelled=True)
    fifths = view.survey.fifths(view.kind, *view.head, order)
    for title, sentences in zip(_FIFTHS, fifths, strict=True):
        if sentences:
            st.caption(title)
        for sentence in sentences:
            texts = (labels.shorten(sentence.line.source, 60), _value(view, order, sentence))
            link_to(view, sentence.line, " · ".join(filter(None, texts)), sentence.row)
    if not any(fifths):
        inform("No sentence of five words or more has a value.")
    st.caption(
        "Each opens at the row of this head with the largest value; below the middle, the smallest."
    )


def _value(view: SurveyView, order: str, example: SurveyExample) -> str:
    """The value that orders a sentence, in its unit."""
    name = str(view.roles[view.head])
    if order != "role":
        return written(example.value, view.known[order])
    if name == MIXED:
        return ""
    if name == ALIGNMENT:
        diagonal = float(view.survey.profiles[view.kind].means["aer_diagonal"].flat[0])
        return f"error {percent(round(ROLES[name].threshold / example.value * diagonal, 3))}"
    value = ROLES[name].threshold * example.value
    return percent(value) if ROLES[name].share else f"{value:.2f} times"


_SORTS = ("content words", "function words", "punctuation", "special tokens")


class _Point(NamedTuple):
    at: Head  # 0 for a query, 1 for a key; and its number
    run: int
    position: int
    text: str
    sort: str  # of `_SORTS`
    x: float
    y: float


def _runs(view: SurveyView, source: Source) -> list[Translation]:
    own = session.visit().sentences
    with st.spinner("Running a few dozen sentences"):
        return runs_of(source, lines_of(source, own and own[1], view.now.language))


def _of_side(
    drawn: Points, runs: list[Translation], kind: AttentionKind, side: int
) -> list[_Point]:
    found = list[_Point]()
    values = (drawn.queries, drawn.keys)[side]
    for number, run in enumerate(runs):
        site = run.config.sites[kind]
        tokens = _pieces(run, kind, side)
        words = FUNCTION_WORDS[site.key_side if side else site.query_side]
        for position, (token, content) in enumerate(
            zip(tokens, content_pieces(tokens, words), strict=True)
        ):
            text = readable(token)
            at = len(found)
            sort = 3 if is_special(token) else 2 if is_punctuation(text) else 1 - int(content)
            found.append(
                _Point((side, at), number, position, text, _SORTS[sort], *map(float, values[at]))
            )
    return found


def _pieces(run: Translation, kind: AttentionKind, side: int) -> tuple[str, ...]:
    return run.labels(kind).keys if side else rows_of(run.labels(kind), kind)


def _compares(view: SurveyView, source: Source) -> None:
    """Queries and keys of the head as points."""
    runs = _runs(view, source)
    kind = view.kind
    values = view.now.values(HeadFacts)
    drawn = points(source.translator().model, runs, (kind, *view.head))
    sides = [_of_side(drawn, runs, kind, side) for side in (0, 1)]
    st.markdown(
        f"These two directions of the balanced basis hold **{percent(drawn.share)}** of the "
        f"variance of q·k within rows. {drawn.left_out}"
    )
    names = {"side": "by side", "position": "by position", "class": "by class of token"}
    pickers.switch("colour_by", "Colour of the points", names, values.colour_by)
    chosen = next((piece for side in sides for piece in side if piece.at == values.point), None)
    marks = list[Marks]()
    texts = list[tuple[float, float, str]]()
    for side, most, colour in zip(sides, (4, 6), (style.HUES[str(kind)], "#999999"), strict=True):
        key = int(side is sides[1])
        name = ("queries", "keys")[key] + (" (target)", " (source)")[key] * (
            kind is AttentionKind.CROSS
        )
        looks = dict(zip(_SORTS, (paint for paint, _ in SEVERAL), strict=False))
        for sort, paint in (looks if values.colour_by == "class" else {name: colour}).items():
            those = [each for each in side if values.colour_by != "class" or each.sort == sort]
            x, y, places = (
                np.array([getattr(p, of) for p in those]) for of in ("x", "y", "position")
            )
            notes = [f"{p.text}\n{('query', 'key')[key]}, token {p.position + 1}" for p in those]
            symbol = "circle" if key else "diamond"
            shade = places if values.colour_by == "position" else None
            legend = sort * (key or int(values.colour_by != "class"))
            marks.append(
                Marks(
                    name=legend,
                    x=x,
                    y=y,
                    colour=paint,
                    notes=notes,
                    data=[p.at for p in those],
                    symbol=symbol,
                    values=shade,
                )
            )
        # the words farthest from the centre, each once
        centre = np.mean([each[-2:] for each in side], axis=0)
        far = sorted(side, key=lambda each: -float(np.hypot(*(each[-2:] - centre))))
        words = {each.text: each for each in reversed(far)}
        texts += [(each.x, each.y, each.text) for each in far if words[each.text] is each][:most]
    last = max(each.position for side in sides for each in side)
    first, second = (f"direction {labels.count(axis)}" for axis in drawn.axes)
    ends = ("first token", f"token {last + 1}") if values.colour_by == "position" else None
    panel(
        f"points-{kind}",
        lambda: plane(marks, (first, second), chosen and chosen[-2:], texts, ends),
        f"{view.title} · {len(sides[0])} queries (diamonds) and {len(sides[1])} keys (circles) of "
        f"{len(runs)} sentences · {view.survey.model}",
        lambda: [
            ["side", "sentence", "position", "token", "x", "y"],
            *(
                [("query", "key")[p.at[0]], p.run + 1, p.position + 1, p.text, p.x, p.y]
                for p in (*sides[0], *sides[1])
            ),
        ],
        seeing=_PLANE,
        alt="Queries and keys of the head in a plane; the numbers are in the export",
        take=lambda data: session.change(point=tuple(data)),
        sentence=False,
    )
    if chosen is None:
        st.caption("Click a point to see its token in its sentence.")
        return
    run = runs[chosen.run]
    key = chosen.at[0]
    pieces = [plain(readable(piece)) for piece in _pieces(run, kind, key)]
    pieces[chosen.position] = f"**{pieces[chosen.position]}**"
    st.markdown(f"As a {('query', 'key')[key]}: {' '.join(pieces)}")
    row = None if key and kind is AttentionKind.CROSS else chosen.position
    read = chosen.position if key and run.config.sites[kind].key_side == "encoder" else None
    link_to(view, Line(run.source_text, run.text), labels.shorten(run.source_text, 60), row, read)


@remembered(64)
def _sunk(
    source: Source,
    place: PlacedHead,
    _runs: tuple[int, ...],
    *,
    runs: list[Translation],
    tell: Callable[[float], object],
) -> Sink:
    return sink(source.translator(), runs, place, tell)


def _rests(view: SurveyView, source: Source) -> None:
    """What the token costs on which the head rests."""
    bar = st.progress(0.0, "Running the sentences without this key")
    runs = _runs(view, source)
    place = (view.kind, *view.head)
    which = tuple(map(id, runs))
    seen = _sunk(source, place, which, runs=runs, tell=bar.progress)
    bar.empty()
    dims = ", ".join(str(labels.count(outlier)) for outlier in seen.outliers[:6])
    more = f" and {len(seen.outliers) - 6} more" if len(seen.outliers) > 6 else ""
    outliers = (
        f"dimension{'s' * (len(seen.outliers) > 1)} {dims}{more}"
        if seen.outliers
        else "no dimension"
    )
    st.markdown(
        f"It puts **{percent(seen.weight)}** of its weight on {plain(labels.display(seen.token))}. "
        f"The value there writes **{seen.value:.2f} times** as much as the other keys' do. The "
        f"stream there is {seen.stream:.2f} times as long, with {outliers} at least {OUTLIER:.0f} "
        "times the mean size. Without this key in this head, a token "
        f"{'loses' if seen.lost >= 0 else 'gains'} **{abs(seen.lost):.3f} nats**, the mean of "
        f"{seen.rows}."
    )
    short = " A short value lets a head write almost nothing where it finds nothing." * (
        seen.value < 0.5
    )
    st.caption(
        f"{len(runs)} sentences. The other keys share its weight, and the model runs again.{short}"
    )


FACETS = {"tokens": _tokens, "distances": _distances, "sentences": _sentences}
"""What can be seen of a head, by the value in the address."""
FOLDED = {
    "points": ("What it compares: queries and keys as points", _compares),
    "sink": ("What it costs to hide where it rests", _rests),
}

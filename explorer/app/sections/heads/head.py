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
from explorer.figures.base.tasks import WORDS, TaskWords
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


@dataclass(frozen=True, eq=False, kw_only=True)
class SurveyView:
    """Results of a survey, and the visitor's choices among them."""

    survey: Survey  # statistics of every head over the sentences
    source: Source  # the model
    kind: AttentionKind  # encoder, decoder or cross
    now: State  # what the visitor asked for; the model has the head that it names
    file: str | None  # the name of the visitor's own file of sentences; None for the sample
    head: Head  # the chosen one, layer and head from 0
    title: str  # its kind and itself, as captions begin
    known: dict[str, Statistic]  # the statistics that heads of the kind have, by name
    statistic: Statistic  # the chosen one; that of the kind, if its heads lack it
    roles: np.ndarray  # the role of every head, (layers, heads)

    @property
    def words(self) -> TaskWords:
        """Words for what the model does with a sentence."""
        return WORDS[self.source.task]

    @classmethod
    def of(cls, survey: Survey, kind: AttentionKind, source: Source) -> SurveyView:
        """The choices of the visitor's state in a survey."""
        now = session.current()
        sentences = session.visit().sentences
        names = {*survey.profiles[kind].means, "keeps"}
        every = (*STATISTICS, *PROFILED, *JUDGED)
        known = {statistic.name: statistic for statistic in every if statistic.name in names}
        wanted = (now.values(HeadFacts).statistic, _FIRST[str(kind)], *known)
        chosen = next(name for name in wanted if name in known)
        head = getattr(now, str(kind))
        return cls(
            survey=survey,
            source=source,
            kind=kind,
            now=now,
            file=sentences and sentences[0],
            head=head,
            title=f"{KIND_NAMES[kind]} · {labels.head_phrase(*head)}",
            known=known,
            statistic=known[chosen],
            roles=survey.roles(kind),
        )

    def role(self, head: Head) -> str:
        """The role of a head in words; of an alignment, with the row that implies it."""
        name = str(self.roles[head])
        if name == ALIGNMENT:
            name += f" (row that {aligned_by(self.survey.profiles[self.kind].means)[head]})"
        return name

    def keeping(self, head: Head, strong: str = "") -> str:
        """In how many of the sentences a head shows its role."""
        sentences = "sentences"
        if self.roles[head] == ALIGNMENT:
            sentences = f"{self.survey.pairs} pairs with links made by hand"
        share = percent(float(self.survey.profiles[self.kind].kept[head]))
        return f"{strong}{share}{strong} of the {sentences}"

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
    if statistic.unit == "share" and statistic.name != "entropy":
        return percent(float(value))
    return labels.number(float(value), ".2f")


def link_to(
    view: SurveyView, line: Line, label: str, row: int | None, source: int | None = None
) -> None:
    """Links to a sentence in the view of the kind, run as it was run here, at a row of the head."""
    kind = str(view.kind)
    values = {"text": line.source, "sentence": examples.whole(line.source), "target": line.target}
    if kind == "encoder":
        values |= {"step": None, "source": row}
    else:
        values |= {"step": row, "source": source}
    st.page_link(
        PAGES[kind],
        label=plain(label),
        help=plain(line.target or view.words.decoded),
        icon=":material/open_in_new:",
        query_params=link(view.now, decode="greedy", **{kind: view.head}, **values),
    )


def show(view: SurveyView, source: Source) -> None:
    """The chosen head: its role, one of three facets, and, folded, measures on a few sentences."""
    name = str(view.roles[view.head])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"##### {labels.head_name(*view.head)} · {view.role(view.head)}", width="content"
        )
        pickers.head_picker(view.kind, view.head, source)
    halves = view.keeping(view.head, "**")
    if name == MIXED:
        st.markdown(
            f"It reaches the threshold of no role; taken one by one, {halves} show no role either."
        )
    else:
        definition = ROLES[name].definition.replace("<", "\\<")
        st.markdown(f"{definition} Taken one by one, {halves} show it.")
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
        if rows:
            st.markdown("\n".join([f"| | {names} | seen |", "|---|---:|---:|---:|", *rows]))
        else:
            st.markdown("None was seen three times.")

    st.markdown("**Keys that take most weight**")
    table(
        values.keys_by,
        "share of the weight | lift",
        lambda token: f"{100 * token.value:.1f}\u00a0%",
    )
    st.markdown(
        f"**Queries that are most selective** (rows that {_ROWS[view.kind]} the {values.unit[:-1]})"
    )
    table("selective", "selectivity | to the head's mean", lambda token: f"{token.value:.2f}")
    st.caption(_LISTS)


def _distances(view: SurveyView) -> None:
    profile = view.survey.profiles[view.kind]
    shares = profile.distances[view.head]
    chance = profile.chance[view.head[0]]
    most = int(np.argmax(shares - chance))
    where = "at the same position**"
    if most > FAR:
        where = f"{most - FAR} before** the query"
    elif most < FAR:
        where = f"{FAR - most} after** the query"
    st.markdown(
        f"Most above even weights: keys **{where}, with {percent(float(shares[most]))} of the "
        f"weight instead of {percent(float(chance[most]))}."
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
        name: statistic.label for name, statistic in view.known.items()
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
    if ROLES[name].share:
        return percent(value)
    return f"{value:.2f} times"


_SORTS = ("content words", "function words", "punctuation", "special tokens")


class _Point(NamedTuple):
    at: Head  # 0 for a query, 1 for a key; and its number
    run: int
    position: int
    text: str
    sort: str  # of `_SORTS`
    x: float
    y: float

    @property
    def side(self) -> str:
        """What it is a point of."""
        return ("query", "key")[self.at[0]]


def _runs(view: SurveyView, source: Source) -> list[Translation]:
    sentences = session.visit().sentences
    with st.spinner("Running a few dozen sentences"):
        return runs_of(source, lines_of(source, sentences and sentences[1], view.now.language))


def _of_side(
    drawn: Points, runs: list[Translation], kind: AttentionKind, side: int
) -> list[_Point]:
    points_of_side = list[_Point]()
    values = (drawn.queries, drawn.keys)[side]
    for number, run in enumerate(runs):
        site = run.config.sites[kind]
        tokens = _pieces(run, kind, side)
        words = FUNCTION_WORDS[site.key_side if side else site.query_side]
        for position, (token, content) in enumerate(
            zip(tokens, content_pieces(tokens, words), strict=True)
        ):
            place = len(points_of_side)
            x, y = map(float, values[place])
            points_of_side.append(
                _Point(
                    at=(side, place),
                    run=number,
                    position=position,
                    text=readable(token),
                    sort=_sort(token, content),
                    x=x,
                    y=y,
                )
            )
    return points_of_side


def _sort(token: str, content: bool) -> str:
    """What sort of token it is, one of `_SORTS`."""
    if is_special(token):
        return "special tokens"
    if is_punctuation(readable(token)):
        return "punctuation"
    return "content words" if content else "function words"


def _pieces(run: Translation, kind: AttentionKind, side: int) -> tuple[str, ...]:
    """The tokens of a side: those of the rows, or the keys."""
    if side:
        return run.labels(kind).keys
    return rows_of(run.labels(kind), kind)


def _compares(view: SurveyView, source: Source) -> None:
    """Queries and keys of the head as points."""
    runs = _runs(view, source)
    kind = view.kind
    values = view.now.values(HeadFacts)
    projected = points(source.load().model, runs, (kind, *view.head))
    queries = _of_side(projected, runs, kind, 0)
    keys = _of_side(projected, runs, kind, 1)
    st.markdown(
        f"These two directions of the balanced basis hold **{percent(projected.share)}** of the "
        f"variance of q·k within rows. {projected.left_out}"
    )
    names = {"side": "by side", "position": "by position", "class": "by class of token"}
    pickers.switch("colour_by", "Colour of the points", names, values.colour_by)
    chosen = next((point for point in (*queries, *keys) if point.at == values.point), None)
    marks = [*_marks(queries, kind, values.colour_by), *_marks(keys, kind, values.colour_by)]
    texts = [*_farthest(queries, 4), *_farthest(keys, 6)]
    first, second = (f"direction {labels.count(axis)}" for axis in projected.axes)
    ends: tuple[str, str] | None = None
    if values.colour_by == "position":
        last = max(point.position for point in (*queries, *keys))
        ends = ("first token", f"token {last + 1}")
    ring = None if chosen is None else (chosen.x, chosen.y)
    panel(
        f"points-{kind}",
        lambda: plane(marks, (first, second), ring, texts, ends),
        f"{view.title} · {len(queries)} queries (diamonds) and {len(keys)} keys (circles) of "
        f"{len(runs)} sentences · {view.survey.model}",
        lambda: [
            ["side", "sentence", "position", "token", "x", "y"],
            *([p.side, p.run + 1, p.position + 1, p.text, p.x, p.y] for p in (*queries, *keys)),
        ],
        seeing=_PLANE,
        alt="Queries and keys of the head in a plane; the numbers are in the export",
        take=lambda data: session.change(point=tuple(data)),
        sentence=False,
    )
    if chosen is None:
        st.caption("Click a point to see its token in its sentence.")
    else:
        _in_sentence(view, chosen, runs[chosen.run])


def _marks(side: list[_Point], kind: AttentionKind, colour_by: str) -> list[Marks]:
    """The points of a side: in one colour, shaded by position, or a colour for each sort."""
    is_key = side[0].side == "key"
    if colour_by == "class":
        return [
            # the legend names a sort once, at the keys
            _marks_of(
                [point for point in side if point.sort == sort],
                name=sort if is_key else "",
                colour=colour,
                shaded=False,
            )
            for sort, (colour, _) in zip(_SORTS, SEVERAL, strict=False)
        ]
    name = "keys" if is_key else "queries"
    if kind is AttentionKind.CROSS:
        name += " (source)" if is_key else " (target)"
    colour = "#999999" if is_key else style.HUES[str(kind)]
    return [_marks_of(side, name=name, colour=colour, shaded=colour_by == "position")]


def _marks_of(side: list[_Point], *, name: str, colour: str, shaded: bool) -> Marks:
    """Points of one look: queries are diamonds, keys circles."""
    positions = np.array([point.position for point in side])
    return Marks(
        name=name,
        x=np.array([point.x for point in side]),
        y=np.array([point.y for point in side]),
        colour=colour,
        notes=[f"{point.text}\n{point.side}, token {point.position + 1}" for point in side],
        data=[point.at for point in side],
        symbol="circle" if side and side[0].side == "key" else "diamond",
        values=positions if shaded else None,
    )


def _farthest(side: list[_Point], most: int) -> list[tuple[float, float, str]]:
    """The words farthest from the centre, each once."""
    centre = np.mean([(point.x, point.y) for point in side], axis=0)
    distances = {
        point.at: float(np.hypot(point.x - centre[0], point.y - centre[1])) for point in side
    }
    words = dict[str, _Point]()
    for point in sorted(side, key=lambda point: -distances[point.at]):
        words.setdefault(point.text, point)
    return [(point.x, point.y, text) for text, point in [*words.items()][:most]]


def _in_sentence(view: SurveyView, chosen: _Point, run: Translation) -> None:
    """A point's token in its sentence, and a link to it."""
    key = chosen.at[0]
    pieces = [plain(readable(piece)) for piece in _pieces(run, view.kind, key)]
    pieces[chosen.position] = f"**{pieces[chosen.position]}**"
    st.markdown(f"As a {chosen.side}: {' '.join(pieces)}")
    row = None if key and view.kind is AttentionKind.CROSS else chosen.position
    read = chosen.position if key and run.config.sites[view.kind].key_side == "encoder" else None
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
    return sink(source.load(), runs, place, tell)


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
    outliers = "no dimension"
    if len(seen.outliers) == 1:
        outliers = f"dimension {dims}"
    elif seen.outliers:
        outliers = f"dimensions {dims}{more}"
    st.markdown(
        f"It puts **{percent(seen.weight)}** of its weight on {plain(labels.display(seen.token))}. "
        f"The value there writes **{seen.value:.2f} times** as much as the other keys' do. The "
        f"stream there is {seen.stream:.2f} times as long, with {outliers} at least {OUTLIER:.0f} "
        "times the mean size. Without this key in this head, a token "
        f"{'loses' if seen.lost >= 0 else 'gains'} **{abs(seen.lost):.3f} nats**, the mean of "
        f"{seen.rows}."
    )
    short = ""
    if seen.value < 0.5:
        short = " A short value lets a head write almost nothing where it finds nothing."
    st.caption(
        f"{len(runs)} sentences. The other keys share its weight, and the model runs again.{short}"
    )


FACETS = {"tokens": _tokens, "distances": _distances, "sentences": _sentences}
"""What can be seen of a head, by the value in the address."""
FOLDED = {
    "points": ("What it compares: queries and keys as points", _compares),
    "sink": ("What it costs to hide where it rests", _rests),
}

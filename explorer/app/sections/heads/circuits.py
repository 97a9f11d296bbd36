"""What the chosen head compares and where it rests, on a few dozen of the sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import streamlit as st

from explorer.app.address import session
from explorer.app.controls import panel, pickers, plain
from explorer.app.sections.heads.choice import Found, link_to
from explorer.app.server.source import Source, per_model
from explorer.app.server.surveys import runs_of
from explorer.figures.base import labels, style
from explorer.figures.base.bars import percent
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.maps.lines import SEVERAL
from explorer.figures.pages.heads import Marks, plane
from explorer.lenses.circuits.balanced import Points, points
from explorer.lenses.circuits.sinks import OUTLIER, Sink, sink
from explorer.lenses.heads.statistics import FUNCTION_WORDS, content_pieces
from explorer.lenses.heads.survey import Line, rows_of
from transformer import Translation, Translator
from transformer.config import AttentionKind, PlacedHead, Side
from transformer.text.words import is_punctuation, is_special, readable

_CLASSES = ("content words", "function words", "punctuation", "special tokens")
_SEEING = (
    "Every point is a query or a key of this head in one of the sentences. A change of basis of q with the "
    "inverse one of k changes no score, so the axes are those of the product itself: singular values of "
    "W_Q W_Kᵀ, √S to each side. A key has a high score if it lies far from the centre in the query's "
    "direction. Biases stay in; the keys' mean is taken off, which adds the same to a whole row."
)


class _Place(NamedTuple):
    """A point: a token in one of the runs."""

    run: int
    position: int
    text: str
    sort: str  # of `_CLASSES`


def _runs(found: Found, source: Source) -> tuple[Translator, list[Translation]]:
    own = session.own_sentences()
    with st.spinner("Running a few dozen sentences"):
        runs = runs_of(source, None if own is None else own[1], found.now.language)
    translator = source.translator()
    assert isinstance(translator, Translator)
    return translator, runs


def compares(found: Found, source: Source) -> None:
    """Draws queries and keys of the head as points."""
    translator, runs = _runs(found, source)
    drawn = points(translator.model, runs, (found.kind, *found.head))
    sides = [[*_places(runs, found.kind, keys)] for keys in (False, True)]
    first, second = (labels.count(axis) for axis in drawn.axes)
    st.markdown(
        f"These two directions of the balanced basis hold **{percent(drawn.share)}** of the variance of q·k "
        f"within rows. {drawn.left_out}"
    )
    names = {"side": "by side", "position": "by position", "class": "by class of token"}
    pickers.switch("colour_by", "Colour of the points", names, found.now.colour_by)
    chosen = found.now.point
    if chosen is not None and (chosen[0] > 1 or chosen[1] >= len(sides[chosen[0]])):
        chosen = None
    ring = None
    if chosen is not None:
        x, y = (drawn.queries, drawn.keys)[chosen[0]][chosen[1]]
        ring = float(x), float(y)
    marks = _marks(found, drawn, sides)
    longest = max((place.position for side in sides for place in side), default=0)
    ends = ("first token", f"token {longest + 1}") if found.now.colour_by == "position" else None
    texts = _farthest(drawn, sides)
    panel(
        f"points-{found.kind}",
        lambda: plane(marks, (f"direction {first}", f"direction {second}"), ring, texts, ends, even=True),
        f"{KIND_NAMES[found.kind]} · {labels.head_phrase(*found.head)} · {len(sides[0])} queries (diamonds) "
        f"and {len(sides[1])} keys (circles) of {len(runs)} sentences · {found.survey.model}",
        lambda: [
            ["side", "sentence", "position", "token", "x", "y"],
            *(
                [("query", "key")[side], place.run + 1, place.position + 1, place.text, *map(float, xy)]
                for side, values in enumerate((drawn.queries, drawn.keys))
                for place, xy in zip(sides[side], values, strict=True)
            ),
        ],
        seeing=_SEEING,
        alt="Queries and keys of the head in a plane; the numbers are in the export",
        take=lambda data: session.change(point=tuple(data)),
        sentence=False,
    )
    if chosen is None:
        st.caption("Click a point to see its token in its sentence.")
    else:
        _sentence(found, runs, chosen[0] == 1, sides[chosen[0]][chosen[1]])


def _places(runs: list[Translation], kind: AttentionKind, keys: bool) -> Iterator[_Place]:
    for number, run in enumerate(runs):
        tokens, side = _tokens(run, kind, keys)
        content = content_pieces(tokens, FUNCTION_WORDS[side])
        for position, (token, whole) in enumerate(zip(tokens, content, strict=True)):
            text = readable(token)
            sort = 3 if is_special(token) else 2 if is_punctuation(text) else 1 - bool(whole)
            yield _Place(number, position, text, _CLASSES[sort])


def _tokens(run: Translation, kind: AttentionKind, keys: bool) -> tuple[tuple[str, ...], Side]:
    names, site = run.labels(kind), run.config.sites[kind]
    return (names.keys, site.key_side) if keys else (rows_of(names, kind), site.query_side)


def _marks(found: Found, drawn: Points, sides: list[list[_Place]]) -> list[Marks]:
    hue = style.HUES[str(found.kind)]
    marks = []
    for side, (values, places) in enumerate(zip((drawn.queries, drawn.keys), sides, strict=True)):
        name, symbol = (("queries", "diamond"), ("keys", "circle"))[side]
        if found.kind is AttentionKind.CROSS:
            name += (" (target)", " (source)")[side]
        looks: list[tuple[str, str, np.ndarray]] = [
            (name, (hue, "#999999")[side], np.ones(len(places), bool))
        ]
        if found.now.colour_by == "class":
            sorts = np.array([place.sort for place in places])
            colours = [colour for colour, _ in SEVERAL]
            looks = [(sort * (side == 1), colours[i], sorts == sort) for i, sort in enumerate(_CLASSES)]
        for label, colour, of in looks:
            at = np.flatnonzero(of)
            shade = np.array([places[i].position for i in at])
            marks.append(
                Marks(
                    label,
                    values[at, 0],
                    values[at, 1],
                    colour,
                    [
                        f"{places[i].text}\n{('query', 'key')[side]}, token {places[i].position + 1}"
                        for i in at
                    ],
                    [(side, int(i)) for i in at],
                    symbol,
                    shade if found.now.colour_by == "position" else None,
                )
            )
    return marks


def _farthest(drawn: Points, sides: list[list[_Place]]) -> list[tuple[float, float, str]]:
    """Words at the points farthest from the centre, each word once."""
    found = []
    for values, places, most in zip((drawn.queries, drawn.keys), sides, (4, 6), strict=True):
        far = np.argsort(-np.linalg.norm(values - values.mean(0), axis=1))
        words = {places[i].text: i for i in far[::-1]}
        shown = sorted(words.values(), key=[*far].index)[:most]
        found += [(float(values[i, 0]), float(values[i, 1]), places[i].text) for i in shown]
    return found


def _sentence(found: Found, runs: list[Translation], key: bool, place: _Place) -> None:
    run = runs[place.run]
    tokens, side = _tokens(run, found.kind, key)
    shown = [
        f"**{plain(readable(each))}**" if i == place.position else plain(readable(each))
        for i, each in enumerate(tokens)
    ]
    st.markdown(f"As a {'key' if key else 'query'}: {' '.join(shown)}")
    line = Line(run.source_text, run.text)
    row = None if key and found.kind is AttentionKind.CROSS else place.position
    source = place.position if side == "encoder" and key else None
    link_to(found, line, labels.shorten(line.source, 60), row, source)


@per_model(64)
def _sunk(
    source: Source,
    place: PlacedHead,
    _runs: tuple[int, ...],
    *,
    runs: list[Translation],
    tell: Callable[[float], object],
) -> Sink:
    return sink(source.translator(), runs, place, tell)


def rests(found: Found, source: Source) -> None:
    """Says what the token costs on which the head rests."""
    _, runs = _runs(found, source)
    bar = st.progress(0.0, "Running the sentences without this key")
    place, which = (found.kind, *found.head), tuple(map(id, runs))
    seen = _sunk(source, place, which, runs=runs, tell=lambda share: bar.progress(share))
    bar.empty()
    dims = ", ".join(str(labels.count(each)) for each in seen.outliers[:6])
    more = f" and {len(seen.outliers) - 6} more" if len(seen.outliers) > 6 else ""
    outliers = f"dimension{'s' * (len(seen.outliers) > 1)} {dims}{more}" if seen.outliers else "no dimension"
    st.markdown(
        f"It puts **{percent(seen.weight)}** of its weight on {plain(labels.display(seen.token))}. The value "
        f"there writes **{seen.value:.2f} times** as much as the other keys' do. The stream there is "
        f"{seen.stream:.2f} times as long, with {outliers} at least {OUTLIER:.0f} times the mean size. "
        f"Without this key in this head, a token {'loses' if seen.lost >= 0 else 'gains'} "
        f"**{abs(seen.lost):.3f} nats**, the mean of {seen.rows}."
    )
    short = " A short value lets a head write almost nothing where it finds nothing." * (seen.value < 0.5)
    st.caption(f"{len(runs)} sentences. The other keys share its weight, and the model runs again.{short}")

"""A query of one's own in the plane of two keys of a head: sliders, its row, the grade.

Lessons ask for it (`explorer.app.lessons.questions`, "build"); the weights that are drawn are the
answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st
from torch import Tensor

from explorer.app.address import State, session
from explorer.app.address.page_values import Build
from explorer.app.address.state import KEYS
from explorer.app.controls import options, panel, part, pickers, plain, seen
from explorer.app.controls.panels import Container
from explorer.app.maps.looking import cells_of
from explorer.app.sections.inside.look import BADGE, noted
from explorer.app.server import per_run
from explorer.app.server.view import View
from explorer.app.shell import strip
from explorer.figures.base import captions, labels, style
from explorer.figures.base.strips import Strip, strips_spec
from explorer.figures.pages.inside import built_row, key_plane
from explorer.lenses.what_if.build import COPY, DRAWS, HALF, NEAR, SAFE, Plane, short_of
from transformer.config import AttentionKind, Head
from transformer.view import Array

_GOALS = {"copy": "copy one key", "average": "average two keys"}
_WIDTHS = (1, 1.9)
_SEEING = (
    "The query is yours; keys, values and the softmax are the head's own. Every score is how far "
    "a key reaches along the query, times the query's length. A query twice as long doubles all "
    "scores and all distances between them; the softmax turns distances into ratios, so the row "
    "is sharper."
)
_FORMULA = r"q = l\,(a\,\hat k_i + b\,\hat k_j), \quad w = \mathrm{{softmax}}(q \cdot k{})"
_WHY = (
    "Two keys share the weight only while their scores are equal. A small change of a key changes "
    "its score by the query's length times that change: the longer the query, the more it tips "
    "the balance. But a short query does not keep the other keys out. A copy needs a lead and no "
    "balance: it stays as it is while its lead is larger than what a disturbance moves. So two "
    "heads can each copy one key, and the matrix $W^O$ can add their outputs, half of each."
)


@part()
def show(opened: View, kind: str) -> None:
    """Draws choices, sliders and grade, the row, the keys from above, values, disturbances."""
    now = session.current()
    values = now.values(Build)
    which = AttentionKind(kind)
    head: Head = getattr(now, kind)
    row = cells_of(opened, now)[kind][0]
    plane = per_run.plane(opened, (which, *head), row, values.two, values.goal)
    built = Built(
        opened=opened,
        kind=which,
        head=head,
        values=values,
        plane=plane,
        query=plane.query(values.a, values.b, values.length),
        tokens=opened.translation.labels(kind).keys,
    )
    _choices(built, row)
    first, second = built.pair_names
    left, right = st.columns(_WIDTHS, gap="medium")
    with left:
        _number("a", f"a · along {first}", values.a)
        _number("b", f"b · along {second}", values.b)
        _number("length", "l · length of the whole", values.length)
        _grade(built)
    _row(built, right)
    left, right = st.columns(_WIDTHS, gap="medium")
    _from_above(built, left)
    _output(built, right)
    copies = per_run.copies(opened, (which, *head), row, plane.pair, plane=plane)
    _disturb(now, plane, (first, second), copies)


@dataclass(frozen=True, kw_only=True, eq=False)
class Built:
    """A query that a visitor built, and what it gives."""

    opened: View
    kind: AttentionKind
    head: Head
    values: Build
    plane: Plane
    query: Tensor  # (d_head,)
    tokens: tuple[str, ...]  # the keys

    @cached_property
    def names(self) -> list[str]:
        """The keys, short."""
        return labels.names(self.tokens, 8)

    @cached_property
    def weights(self) -> Array:
        """(keys,) what the softmax makes of the scores."""
        return self.plane.weights(self.query)

    @property
    def pair_names(self) -> tuple[str, str]:
        """The two keys in quotes."""
        first, second = (f"“{plain(self.names[key])}”" for key in self.plane.pair)
        return first, second

    @property
    def place(self) -> str:
        """The head, as captions name it."""
        return f"{captions.KIND_NAMES[self.kind]} · {labels.head_name(*self.head)}"

    @property
    def copies(self) -> bool:
        """Whether the goal is a copy of the first key; else it is the average of both."""
        return self.values.goal == "copy"


def _choices(built: Built, row: int) -> None:
    """The goal, the head, the row, and the two keys."""
    kind = str(built.kind)
    i, j = built.plane.pair
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="build-top"):
        pickers.switch("goal", "Goal", _GOALS, built.values.goal, width="content")
        pickers.head_picker(kind, built.head, built.opened.source)
        if kind != "cross":
            pickers.row_picker(built.opened, kind, row)
        keys = options.keys(built.tokens)
        visible = {key: name for key, name in keys.items() if built.plane.mask[key]}
        _key_picker("i", i, visible, other=j, take=lambda key: _take_pair(key, j))
        _key_picker("j", j, visible, other=i, take=lambda key: _take_pair(i, key))


def _key_picker(
    name: str, key: int, visible: Mapping[int, str], *, other: int, take: Callable[[int], None]
) -> None:
    """Lets the visitor choose one of the two keys, but not the other one."""
    names = {place: f"{name} · {text}" for place, text in visible.items() if place != other}
    pickers.choose(f"build.{name}", f"Key {name}", names, key, take, texts=True, width=160)


def _take_pair(i: int, j: int) -> None:
    """Takes two keys, with the usual first query."""
    usual = {name: KEYS[name].default for name in ("a", "b", "length")}
    session.change(two=(i, j), **usual)


def _row(built: Built, place: Container) -> None:
    """The row that the query gives."""
    plane = built.plane
    scores = plane.scores(built.query).numpy()
    site = built.opened.translation.config.sites[built.kind]
    divisor = r" / \sqrt{d_k}" if site.score == "scaled_dot" else ""
    panel(
        "build row",
        lambda: built_row(
            str(built.kind),
            built.tokens,
            mask=plane.mask.numpy(),
            scores=scores,
            weights=built.weights,
            pair=plane.pair,
            goals=[COPY if built.copies else HALF],
        ),
        f"{built.place} · your query, |q| = {float(built.query.norm()):.1f} · {BADGE}",
        lambda: [
            ("key", "score", "weight"),
            *zip(built.names, scores.tolist(), built.weights.tolist(), strict=True),
        ],
        place=place,
        seeing=_SEEING,
        formula=_FORMULA.format(divisor),
    )


def _from_above(built: Built, place: Container) -> None:
    """The keys from above the plane, and the query's direction."""
    values = built.values
    plane = built.plane
    across = float(plane.units[1] @ plane.units[0])
    query = values.length * np.array(
        [values.a + values.b * across, values.b * max(1 - across**2, 0.0) ** 0.5]
    )
    panel(
        "build plane",
        lambda: key_plane(str(built.kind), built.tokens, plane.flat, query, plane.pair),
        "The keys, seen from above the plane of key i and key j, and the query’s direction · "
        f"{built.place}",
        place=place,
    )


def _output(built: Built, place: Container) -> None:
    """The values of the two keys, and the sum of all values, beside the goal."""
    plane = built.plane
    values = plane.record.values(plane.head).numpy()
    rows = [Strip(f"v of {built.names[key]}", values[key]) for key in plane.pair]
    if built.copies:
        goal = values[plane.pair[0]]
    else:
        goal = values[[*plane.pair]].sum(0) / 2
        rows.append(Strip("mean of both", goal))
    output = built.weights @ values
    rows.append(noted("Σ w v", output, True))
    away = float(np.linalg.norm(output - goal) / max(float(np.linalg.norm(goal)), 1e-9))
    panel(
        "build output",
        lambda: style.figure(strips_spec(rows, joint=True)),
        f"Values of the model, and their sum with these weights: {labels.number(away)} of the "
        "goal’s length away from the goal",
        place=place,
    )


def _number(name: str, label: str, value: float) -> None:
    """Draws a slider, and a box for typing the same number."""
    low, high = KEYS[name].kind.ends or (0.0, 0.0)
    typed = session.control(f"build.{name}", value, name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        pickers.slide(name, label, value)
        st.number_input(
            label, low, high, value, 0.01, label_visibility="collapsed", width=96, **typed
        )


def _grade(built: Built) -> None:
    """Says what the goal is, what the query gives, and what the plane's best one would give."""
    values = built.values
    first, second = (float(built.weights[key]) for key in built.plane.pair)
    first_name, second_name = built.pair_names
    if built.copies:
        goal = f"{first_name} gets at least {COPY}"
        gives = f"{first:.3f}"
    else:
        goal = f"{first_name} and {second_name} get {HALF} ± {NEAR} each"
        gives = f"{first:.3f} and {second:.3f}"
    reached = short_of(values.goal, first, second) <= 0
    verdict = ":material/check: **Reached.**" if reached else ":gray[Not yet.]"
    st.markdown(
        f"**Goal:** {goal}.  \n**Your query:** {gives}. {verdict}  \n"
        f":gray[The best query of this plane {_best(built)}.]"
    )
    if reached:
        keys = " and ".join(str(labels.count(key)) for key in built.plane.pair)
        a = labels.number(values.a, "g")
        b = labels.number(values.b, "g")
        chose = f"a = {a}, b = {b}, l = {values.length:g}, keys {keys}"
        strip.built(built.opened, str(built.kind), values.goal, chose, f"Weight: {gives}.")


def _best(built: Built) -> str:
    """What the best query of the plane gives; if that is too little, which key takes the rest."""
    plane = built.plane
    best, place = plane.best(built.values.goal)
    most = f"gives it {best:.2f}" if built.copies else f"gives each at least {best:.2f}"
    if short_of(built.values.goal, best, best) <= 0:
        return most
    rivals = plane.weights(plane.query(*place))
    rivals[plane.pair[0]] = 0
    if not built.copies:
        rivals[plane.pair[1]] = 0
    rival = plain(built.names[int(rivals.argmax())])
    return (
        f"{most}, with {rivals.max():.2f} on “{rival}”, which scores high where they do: choose "
        "other keys"
    )


def _disturb(
    now: State, plane: Plane, names: tuple[str, str], copies: tuple[Tensor, Tensor]
) -> None:
    """Moves the keys a little, and measures the weights then, for queries of several lengths."""
    values = now.values(Build)
    st.markdown("##### Disturb the keys")
    left, right = st.columns(_WIDTHS, gap="medium")
    with left:
        label = "By how many per cent of its length each key moves"
        pickers.slide("disturbance", label, values.disturbance)
        seen(_WHY, title="Why one head averages badly")
    queries: dict[str, Sequence[Tensor]] = {
        f"your query{size}": [plane.query(values.a, values.b, values.length * factor)]
        for factor, size in ((0.5, ", half as long"), (1, ""), (2, ", twice as long"))
    }
    queries["two heads, each copying one key"] = copies
    pair = [*plane.pair]
    lines = [
        f"| | length of q | weight of {names[0]} | of {names[1]} | change |",
        "|--|--|--|--|--|",
    ]
    for said, heads in queries.items():
        mean_weights = np.mean([plane.weights(head) for head in heads], axis=0)[pair]
        moved = np.mean(
            [plane.disturbed(head, values.disturbance / 100) for head in heads], axis=0
        )[:, pair]
        change = labels.telling(float(np.abs(moved - mean_weights).max(1).mean()))
        size = " · ".join(f"{float(head.norm()):.1f}" for head in heads)
        lines.append(
            f"| {said} | {size} | {mean_weights[0]:.2f} | {mean_weights[1]:.2f} | {change} |"
        )
    with right:
        st.markdown("\n".join(lines))
        st.caption(
            f"Change: of the two weights the one that moves more, in the mean over {DRAWS} "
            "disturbances, the same for every line. Two heads: the mean of both rows, each query "
            f"long enough for {SAFE}. {BADGE[0].upper()}{BADGE[1:]}."
        )

"""A query of one's own, built in the plane of two keys of a head: sliders, the row that it gives,
the grade.

Lessons ask for it (`explorer.app.lessons.questions`, "build"); the weights that are drawn are the
answer.
"""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from torch import Tensor

from explorer.app.address import State, session
from explorer.app.address.page_values import Build
from explorer.app.address.state import KEYS
from explorer.app.controls import options, panel, part, pickers, plain, seen
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
    """Draws the section: choices, sliders and grade, the row, the keys from above, values,
    disturbances."""
    now = session.current()
    values = now.values(Build)
    which = AttentionKind(kind)
    head: Head = getattr(now, kind)
    row = cells_of(opened, now)[kind][0]
    tokens = opened.translation.labels(kind).keys
    plane = per_run.plane(opened, (which, *head), row, values.two, values.goal)
    i, j = plane.pair
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="build-top"):
        pickers.switch("goal", "Goal", _GOALS, values.goal, width="content")
        pickers.head_picker(kind, head, opened.source)
        if kind != "cross":
            pickers.row_picker(opened, kind, row)
        usual = {name: KEYS[name].default for name in ("a", "b", "length")}  # of the first query
        visible = {key: name for key, name in options.keys(tokens).items() if plane.mask[key]}
        for name, key, opposite in (("i", i, j), ("j", j, i)):
            offered = {
                place: f"{name} · {text}" for place, text in visible.items() if place != opposite
            }
            pair = (lambda each: (each, j)) if name == "i" else (lambda each: (i, each))
            take = lambda each, pair=pair: session.change(two=pair(each), **usual)  # noqa: E731
            pickers.choose(
                f"build.{name}", f"Key {name}", offered, key, take, texts=True, width=160
            )
    query = plane.query(values.a, values.b, values.length)
    names = labels.names(tokens, 8)
    weights = plane.weights(query)
    scores = plane.scores(query).numpy()
    mask = plane.mask.numpy()
    first = f"“{plain(names[i])}”"
    second = f"“{plain(names[j])}”"
    place = f"{captions.KIND_NAMES[kind]} · {labels.head_name(*head)}"
    left, right = st.columns(_WIDTHS, gap="medium")
    with left:
        _number("a", f"a · along {first}", values.a)
        _number("b", f"b · along {second}", values.b)
        _number("length", "l · length of the whole", values.length)
        _grade(opened, kind, now=now, plane=plane, weights=weights, names=names)
    divides = opened.translation.config.sites[which].score == "scaled_dot"
    goals = [COPY if values.goal == "copy" else HALF]
    panel(
        "build row",
        lambda: built_row(
            kind, tokens, mask=mask, scores=scores, weights=weights, pair=plane.pair, goals=goals
        ),
        f"{place} · your query, |q| = {float(query.norm()):.1f} · {BADGE}",
        lambda: [
            ("key", "score", "weight"),
            *zip(names, scores.tolist(), weights.tolist(), strict=True),
        ],
        place=right,
        seeing=_SEEING,
        formula=_FORMULA.format(r" / \sqrt{d_k}" * divides),
    )
    left, right = st.columns(_WIDTHS, gap="medium")
    across = float(plane.units[1] @ plane.units[0])
    flat = values.length * np.array(
        [values.a + values.b * across, values.b * max(1 - across**2, 0.0) ** 0.5]
    )
    panel(
        "build plane",
        lambda: key_plane(kind, tokens, plane.flat, flat, plane.pair),
        (
            "The keys, seen from above the plane of key i and key j, and the query’s direction · "
            f"{place}"
        ),
        place=left,
    )
    value = plane.record.values(plane.head).numpy()
    output = weights @ value
    goal = value[i] if values.goal == "copy" else (value[i] + value[j]) / 2
    rows = [Strip(f"v of {names[i]}", value[i]), Strip(f"v of {names[j]}", value[j])]
    rows += [Strip("mean of both", goal)] if values.goal == "average" else []
    rows.append(noted("Σ w v", output, True))
    away = float(np.linalg.norm(output - goal) / max(float(np.linalg.norm(goal)), 1e-9))
    panel(
        "build output",
        lambda: style.figure(strips_spec(rows, joint=True)),
        f"Values of the model, and their sum with these weights: {labels.number(away)} of the "
        "goal’s length away from the goal",
        place=right,
    )
    copies = per_run.copies(opened, (which, *head), row, plane.pair, plane=plane)
    _disturb(now, plane, (first, second), copies)


def _number(name: str, label: str, value: float) -> None:
    """Draws a slider, and a box for typing the same number."""
    low, high = KEYS[name].kind.ends or (0.0, 0.0)
    typed = session.control(f"build.{name}", value, name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        pickers.slide(name, label, value)
        st.number_input(
            label, low, high, value, 0.01, label_visibility="collapsed", width=96, **typed
        )


def _grade(
    opened: View, kind: str, now: State, plane: Plane, weights: Array, names: Sequence[str]
) -> None:
    """Says what is asked for, what the query gives, and what the best one of the plane would
    give."""
    values = now.values(Build)
    first, second = (float(weights[key]) for key in plane.pair)
    one, other = (f"“{plain(names[key])}”" for key in plane.pair)
    best, at = plane.best(values.goal)
    done = short_of(values.goal, first, second) <= 0
    able = short_of(values.goal, best, best) <= 0
    if values.goal == "copy":
        goal = f"{one} gets at least {COPY}"
        gives = f"{first:.3f}"
        most = f"gives it {best:.2f}"
    else:
        goal = f"{one} and {other} get {HALF} ± {NEAR} each"
        gives = f"{first:.3f} and {second:.3f}"
        most = f"gives each at least {best:.2f}"
    if not able:
        disturbed = plane.weights(plane.query(*at))
        disturbed[[*plane.pair][: 1 if values.goal == "copy" else 2]] = 0
        rival = plain(names[int(disturbed.argmax())])
        most += (
            f", with {disturbed.max():.2f} on “{rival}”, which scores high where they do: choose "
            "other keys"
        )
    verdict = ":material/check: **Reached.**" if done else ":gray[Not yet.]"
    st.markdown(
        f"**Goal:** {goal}.  \n**Your query:** {gives}. {verdict}  \n"
        f":gray[The best query of this plane {most}.]"
    )
    if done:
        at_keys = " and ".join(str(labels.count(key)) for key in plane.pair)
        a = labels.number(values.a, "g")
        b = labels.number(values.b, "g")
        chose = f"a = {a}, b = {b}, l = {values.length:g}, keys {at_keys}"
        strip.built(opened, kind, values.goal, chose, f"Weight: {gives}.")


def _disturb(
    now: State, plane: Plane, names: tuple[str, str], copies: tuple[Tensor, Tensor]
) -> None:
    """Moves the keys a little, and measures what becomes of the weights, for queries of several
    lengths."""
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

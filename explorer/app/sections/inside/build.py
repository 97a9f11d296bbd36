"""A query of one's own, built in the plane of two keys of a head: sliders, the row that it gives, the grade.

Lessons ask for it (`explorer.lenses.what_if.questions`, "build"); the weights that are drawn are the answer.
"""

from __future__ import annotations

import numpy as np
import streamlit as st
from torch import Tensor

from explorer.app.address import State, session
from explorer.app.address.kinds import HEAD, decimal, one_of, whole
from explorer.app.address.state import keys, own
from explorer.app.controls import options, panel, part, pickers, plain, seen
from explorer.app.maps.looking import cells_of
from explorer.app.sections.inside.arithmetic import BADGE
from explorer.app.sections.inside.look import length
from explorer.app.server import per_run
from explorer.app.server.view import View
from explorer.app.shell.lesson import strip
from explorer.figures.base import captions, labels
from explorer.figures.base.strips import Strip, strips
from explorer.figures.pages.build import built_row, key_plane
from explorer.lenses.what_if.build import COPY, DRAWS, HALF, NEAR, SAFE, Plane, short_of
from transformer.config import AttentionKind, Head
from transformer.view import Array

own("goal", one_of("copy", "average"), "copy")  # what a built query is to do with one key, or with two
own("two", HEAD)  # the two keys (from 0) in whose plane it lies; None lets the app choose
own("a", decimal(-10.0, 10.0), 1.0)  # it is length · (a k̂ + b k̂'), with the two keys as unit vectors
own("b", decimal(-10.0, 10.0), 0.0)
own("length", decimal(0.0, 10.0), 1.0)
own("disturbance", whole(0, 10), 3)  # by how many per cent of its length each key is moved
_GOALS = {"copy": "copy one key", "average": "average two keys"}
_WIDTHS = (1, 1.9)
_SEEING = (
    "The query is yours; keys, values and the softmax are the head's own. Every score is how far a key "
    "reaches along the query, times the query's length{divided}. A query twice as long doubles all "
    "scores and all distances between them; the softmax turns distances into ratios, so the row is sharper."
)
_UNDIVIDED = r"q = l\,(a\,\hat k_i + b\,\hat k_j), \quad w = \mathrm{softmax}(q \cdot k)"
_FORMULA = r"q = l\,(a\,\hat k_i + b\,\hat k_j), \quad w = \mathrm{softmax}(q \cdot k / \sqrt{d_k})"
_WHY = (
    "Two keys share the weight only while their scores are equal. A small change of a key changes its score "
    "by the query's length times that change: the longer the query, the more it tips the balance. But a "
    "short query does not keep the other keys out. A copy needs a lead and no balance: it stays as it is "
    "while its lead is larger than what a disturbance moves. So two heads can each copy one key, and the "
    "matrix $W^O$ can add their outputs, half of each."
)


@part
def show(opened: View, kind: str) -> None:
    """Draws the section."""
    now = session.current()
    head: Head = getattr(now, kind)
    row = cells_of(opened, now)[kind][0]
    tokens = opened.translation.labels(kind).keys
    which = AttentionKind(kind), *head
    found = per_run.plane(opened, which, row, now.two, now.goal)
    i, j = found.pair
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="build-top"):
        pickers.switch("goal", "Goal", _GOALS, now.goal, width="content")
        with st.container(width=200):
            pickers.head_picker(kind, head, opened.source)
        if kind != "cross":
            with st.container(width=200):
                pickers.row_picker(opened, kind, row)
        visible = {key: name for key, name in options.keys(tokens).items() if found.mask[key]}
        for name, key, other in (("i", i, j), ("j", j, i)):
            with st.container(width=160):
                offered = {each: f"{name} · {text}" for each, text in visible.items() if each != other}
                take = lambda each, name=name: _take((each, j) if name == "i" else (i, each))  # noqa: E731
                pickers.choose(f"build.{name}", f"Key {name}", offered, key, take, texts=True)
    _built(opened, kind, now, found, labels.names(tokens, 8))


def _take(pair: tuple[int, int]) -> None:
    usual = {name: keys()[name].default for name in ("a", "b", "length")}
    session.change(two=pair, **usual)


def _built(opened: View, kind: str, now: State, found: Plane, names: list[str]) -> None:
    i, j = found.pair
    query = found.query(now.a, now.b, now.length)
    weights, scores = found.weights(query), found.scores(query).numpy()
    size = float(query.norm())
    first, second = f"“{plain(names[i])}”", f"“{plain(names[j])}”"
    place = f"{captions.KIND_NAMES[kind]} · {labels.head_name(*getattr(now, kind))}"
    tokens = opened.translation.labels(kind).keys
    left, right = st.columns(_WIDTHS, gap="medium")
    with left:
        _number("a", f"a · along {first}", now.a)
        _number("b", f"b · along {second}", now.b)
        _number("length", "l · length of the whole", now.length)
        _grade(opened, kind, now, found, weights, (first, second))
    with right:
        goals = [COPY] if now.goal == "copy" else [HALF]
        mask = found.mask.numpy()
        divides = opened.translation.config.sites[AttentionKind(kind)].score == "scaled_dot"
        panel(
            "build row",
            lambda: built_row(kind, tokens, mask, scores, weights, found.pair, goals),
            f"{place} · your query, |q| = {size:.1f} · {BADGE}",
            lambda: [
                ("key", "score", "weight"),
                *zip(names, map(float, scores), map(float, weights), strict=True),
            ],
            seeing=_SEEING.format(divided=", divided by √d_k" if divides else ""),
            formula=_FORMULA if divides else _UNDIVIDED,
        )
    left, right = st.columns(_WIDTHS, gap="medium")
    with left:
        across = found.units[1] @ found.units[0]
        flat = np.array([now.a + now.b * float(across), now.b * float((1 - across**2).clamp(0).sqrt())])
        panel(
            "build plane",
            lambda: key_plane(kind, tokens, found.flat, now.length * flat, found.pair),
            f"The keys, seen from above the plane of key i and key j, and the query’s direction · {place}",
            saved=False,
        )
    with right:
        value, output = found.record.value[found.head].numpy(), found.output(weights)
        goal = value[i] if now.goal == "copy" else (value[i] + value[j]) / 2
        rows = [Strip(f"v of {names[i]}", value[i]), Strip(f"v of {names[j]}", value[j])]
        rows += [Strip("mean of both", goal)] if now.goal == "average" else []
        rows.append(Strip("Σ w v", output, length(output), True))
        away = float(np.linalg.norm(output - goal) / max(float(np.linalg.norm(goal)), 1e-9))
        panel(
            "build output",
            lambda: strips(rows, joint=True),
            f"Values of the model, and their sum with these weights: {labels.number(away)} of the goal’s "
            "length away from the goal",
            saved=False,
        )
    which = AttentionKind(kind), *getattr(now, kind)
    copies = per_run.copies(opened, which, found)
    _disturb(now, found, (first, second), copies)


def _number(name: str, label: str, value: float) -> None:
    """Draws a slider, and a box for typing the same number."""
    low, high = keys()[name].kind.ends or (0.0, 0.0)
    typed = pickers.control(f"build.{name}", value, name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        pickers.slide(name, label, value)
        st.number_input(label, low, high, value, 0.01, label_visibility="collapsed", width=96, **typed)


def _grade(opened: View, kind: str, now: State, found: Plane, weights: Array, names: tuple[str, str]) -> None:
    """Says what is asked for, what the query gives, and what the best one of the plane would give."""
    first, second = (float(weights[key]) for key in found.pair)
    best, at = found.best(now.goal)
    done, able = short_of(now.goal, first, second) <= 0, short_of(now.goal, best, best) <= 0
    if now.goal == "copy":
        asked, gives, most = f"{names[0]} gets at least {COPY}", f"{first:.3f}", f"gives it {best:.2f}"
    else:
        asked, gives = f"{names[0]} and {names[1]} get {HALF} ± {NEAR} each", f"{first:.3f} and {second:.3f}"
        most = f"gives each at least {best:.2f}"
    if not able:
        others = found.weights(found.query(*at))
        others[[*found.pair][: 1 if now.goal == "copy" else 2]] = 0
        rival = plain(labels.names(opened.translation.labels(kind).keys, 8)[int(others.argmax())])
        most += f", with {others.max():.2f} on “{rival}”, which scores high where they do: choose other keys"
    verdict = ":material/check: **Reached.**" if done else ":gray[Not yet.]"
    st.markdown(
        f"**Goal:** {asked}.  \n**Your query:** {gives}. {verdict}  \n"
        f":gray[The best query of this plane {most}.]"
    )
    if done:
        at_keys = " and ".join(str(labels.count(key)) for key in found.pair)
        a, b = labels.number(now.a, "g"), labels.number(now.b, "g")
        chose = f"a = {a}, b = {b}, l = {now.length:g}, keys {at_keys}"
        strip.built(opened, kind, now.goal, chose, f"Weight: {gives}.")


def _disturb(now: State, found: Plane, names: tuple[str, str], copies: tuple[Tensor, Tensor]) -> None:
    """Moves the keys a little, and measures what becomes of the weights, for queries of several lengths."""
    st.markdown("##### Disturb the keys")
    left, right = st.columns(_WIDTHS, gap="medium")
    with left:
        label = "By how many per cent of its length each key moves"
        pickers.slide("disturbance", label, now.disturbance)
        seen(_WHY, title="Why one head averages badly")
    share, pair = now.disturbance / 100, [*found.pair]
    queries = {
        f"your query{said}": [found.query(now.a, now.b, now.length * factor)]
        for factor, said in ((0.5, ", half as long"), (1, ""), (2, ", twice as long"))
    }
    queries["two heads, each copying one key"] = [*copies]
    lines = []
    for said, heads in queries.items():
        own = np.mean([found.weights(each) for each in heads], axis=0)[pair]
        moved = np.mean([found.disturbed(each, share) for each in heads], axis=0)[:, pair]
        change = float(np.abs(moved - own).max(1).mean())
        size = " · ".join(f"{float(each.norm()):.1f}" for each in heads)
        lines.append(f"| {said} | {size} | {own[0]:.2f} | {own[1]:.2f} | {labels.telling(change)} |")
    with right:
        st.markdown(
            f"| | length of q | weight of {names[0]} | of {names[1]} | change |\n|--|--|--|--|--|\n"
            + "\n".join(lines)
        )
        st.caption(
            f"Change: of the two weights the one that moves more, in the mean over {DRAWS} disturbances, "
            f"the same for every line. Two heads: the mean of both rows, each query long enough for {SAFE}. "
            f"{BADGE[0].upper()}{BADGE[1:]}."
        )

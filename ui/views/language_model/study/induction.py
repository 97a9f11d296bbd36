"""Induction heads: the score of each head, one sequence with a map, and what losing heads costs."""

from __future__ import annotations

from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures import heatmap
from figures.base import captions, labels, style
from figures.base.bars import percent
from figures.pages.heads import Cell, head_grid
from figures.pages.language.intervals import Dots, dots
from transformer.model.sites import Head
from ui.address import State, session
from ui.controls import Table, panel
from ui.server.language import live
from ui.views.language_model.study.shipped_part import Json, known, measured

KIND = "decoder"
_MAP = 470
_PATTERNS = {"induction": "induction", "previous": "previous token"}
_SEEING = (
    "Random pieces have no grammar, so only the repetition tells which comes next. An induction head looks "
    "from a piece back to what followed it the first time (framed in the map) and can copy that (Olsson et "
    "al. 2022). One way to it is a head in an earlier layer that looks at the previous token and so writes "
    "into each key what stands before it."
)
_COSTING = (
    "A head that is switched off gives zeros. Any head may cost something, so the same number of random "
    "other heads of the same layers is switched off too; each draw is a tick, their mean a square. Whiskers "
    "are 95 % intervals, over sequences on the left and over texts on the right."
)
_NEED = (
    "Switching a head off shows whether the model needs it, not that it needs the pattern. Induction pays "
    "in the texts that lm-en learned from: every second sentence was joined to others with which it shares "
    "a rare word."
)
_SETS = {"copies": "on the second copy of random pieces", "text": "on held-out text"}


def show(model: str, now: State) -> None:
    found = known(model, "induction")
    if found is None:
        return
    best = tuple(found["ablations"][0]["heads"][0])
    head = _head(found, now.decoder or (best[0], best[1]))
    st.markdown(told(found))
    left, right = st.columns([1, 1], gap="medium")
    with left:
        _tiles(model, found, head)
    with right:
        _sequence(model, head, now)
    st.markdown("##### What it costs to switch the best heads off")
    st.markdown(costing(found))
    for place, data in zip(st.columns(2, gap="medium"), _SETS, strict=True):
        with place:
            _costs(model, found, data)
    st.caption(_NEED)


def _head(found: Json, asked: Head) -> Head:
    """The head that is shown; one that the model lacks moves to the nearest."""
    grid = found["scores"]["induction"]
    return min(asked[0], len(grid) - 1), min(asked[1], len(grid[0]) - 1)


def told(found: Json) -> str:
    """The head that shows the pattern most, and how much the repetition helps."""
    layer, head = found["ablations"][0]["heads"][0]
    share, even = found["scores"]["induction"][layer][head], found["scores"]["even_induction"]
    gain = found["copying"]["gain"]
    none = "" if share > even else "So this model has no induction heads. "
    helps = (
        f"The second time, a piece costs {gain['value']:.2f} nats less than the first time "
        f"({gain['low']:.2f} to {gain['high']:.2f})."
        if gain["low"] > 0
        else "The second time, a piece costs the model no less than the first time."
    )
    return (
        f"On {found['sequences']} sequences of {found['length']} random pieces, said twice, "
        f"**{labels.head_phrase(layer, head)}** gives {percent(share)} of its weight to the piece that "
        f"followed the same piece before; weight spread evenly would give {percent(even)}. {none}{helps}"
    )


def costing(found: Json) -> str:
    """Cost of losing the best head, on copies and on text, beside its control."""
    first = found["ablations"][0]
    layer, head = first["heads"][0]
    name = labels.head_phrase(layer, head)
    copies, text, gain = first["copies"], first["text"], found["copying"]["gain"]["value"]
    share = f", {percent(copies['cost']['value'] / gain)} of what the repetition saves" if gain > 0 else ""
    verdict = (
        "So copying needs this head"
        if copies["control"] and copies["cost"]["low"] > copies["control"]["high"]
        else "So nothing shows that copying needs this head more than others"
    )
    return (
        f"Without {name}, the second copy costs **{copies['cost']['value']:+.2f} nats** per piece{share}; "
        f"{_against(copies)}. {verdict}.{_together(found)} On held-out text, losing {name} costs "
        f"{text['cost']['value']:+.3f}; {_against(text, 3)}."
    )


def _together(found: Json) -> str:
    """Cost of the next larger set of heads, as a share of the savings by repetition."""
    gain, more = found["copying"]["gain"]["value"], found["ablations"][1]
    if gain <= 0:
        return ""
    cost, count = more["copies"]["cost"]["value"], len(more["heads"])
    return (
        f" Without the {count} best heads, it costs {cost:+.2f} nats, {percent(cost / gain)} of that saving."
    )


def _against(costs: Json, digits: int = 2) -> str:
    if costs["control"] is None:
        return "there is no control"
    count = len(costs["controls"])
    return (
        f"without another head of its layer instead, {costs['control']['value']:+.{digits}f} on average, and "
        f"{costs['as_large']} of {count} such heads cost at least as much"
    )


def _tiles(model: str, found: Json, head: Head) -> None:
    """All heads by score; a click chooses one."""
    for name, label in _PATTERNS.items():
        even, grid = found["scores"][f"even_{name}"], found["scores"][name]
        st.markdown(f"**{label.capitalize()}** · spread evenly {percent(even)}")
        best = sorted(((value, at) for at, row in enumerate(grid) for value in row), reverse=True)[:1]
        spoken = f"at most {percent(best[0][0])}, in layer {labels.count(best[0][1])}"
        panel(
            f"{name} scores",
            partial(head_grid, _cells(grid, label), KIND, head),
            f"Mean weight on the pattern, by layer and head · {measured(model, found)}",
            lambda: scores_table(found),
            seeing=_SEEING,
            alt=f"The {label} score of every head, {model}: {spoken}",
            take=_choose,
            inked=True,
            sentence=False,
        )


def _choose(picked: object) -> None:
    if isinstance(picked, (list, tuple)) and len(picked) == 2:
        session.change(decoder=(int(picked[0]), int(picked[1])))


def _cells(grid: list[list[float]], label: str) -> list[list[Cell]]:
    return [
        [
            Cell(value, percent(value), "", f"{labels.head_phrase(i, j)}\n{label} score {value:.4f}")
            for j, value in enumerate(row)
        ]
        for i, row in enumerate(grid)
    ]


def _sequence(model: str, head: Head, now: State) -> None:
    """One sequence of random pieces, said twice, with the map of the chosen head on it."""
    seed = now.seed or 0
    found = live.repetition(model, seed)
    view = found.run.head(KIND, *head)
    weight = float((view.weights * found.followers)[found.again].sum(-1).mean())
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{labels.head_phrase(*head)}** on {live.LENGTH} random pieces, said twice")
        st.button(
            "Other pieces",
            icon=":material/casino:",
            type="tertiary",
            key="language.induction.again",
            on_click=_again,
            args=(seed,),
        )

    panel(
        "induction map",
        lambda: framed(heatmap(view, _MAP), found.followers),
        captions.caption(view).replace("{step}", ""),
        alt=captions.summary(view),
        note=f"{percent(weight)} of the weight of the second copy's rows is in the framed cells.",
        audit=view.audit,
        width="content",
        scrolls=True,
        sentence=False,
    )


def _again(seed: int) -> None:
    session.change(seed=seed + 1)


def framed(figure: go.Figure, places: np.ndarray) -> go.Figure:
    """Frames cells (rows, columns) of a map."""
    for row, column in np.argwhere(places):
        figure.add_shape(
            type="rect",
            x0=column - 0.5,
            x1=column + 0.5,
            y0=row - 0.5,
            y1=row + 0.5,
            line={"color": style.POSITIVE, "width": 2},
        )
    return figure


def _costs(model: str, found: Json, data: str) -> None:
    caption = f"Rise of the loss {_SETS[data]}, nats per piece · {measured(model, found)}"

    def make() -> go.Figure:
        rows = [_named(each["heads"]) for each in found["ablations"]]
        return dots(rows, cost_dots(found, data), "loss added, nats per piece", 0.0)

    panel(
        f"induction cost {data}",
        make,
        caption,
        lambda: costs_table(found, data),
        seeing=_COSTING,
        sentence=False,
    )


def _named(heads: list[list[int]]) -> str:
    names = ", ".join(labels.head_name(*head) for head in heads)
    return f"without {names}" if len(heads) == 1 else f"without these {len(heads)}: {names}"


def cost_dots(found: Json, data: str) -> list[Dots]:
    """The costs of the best heads and of their controls, by number of heads."""
    costs = [each[data] for each in found["ablations"]]
    own = [each["cost"] for each in costs]
    ends = [f"best heads off: {each['value']:+.3f} ({each['low']:.3f} to {each['high']:.3f})" for each in own]
    return [
        Dots("heads with the highest scores", own, ends, style.POSITIVE),
        Dots(
            "random other heads of the same layers",
            [each["control"] for each in costs],
            [_control_note(each) for each in costs],
            style.NEGATIVE,
            "square",
            [each["controls"] for each in costs],
        ),
    ]


def _control_note(costs: Json) -> str:
    if costs["control"] is None:
        return "no control: too few other heads"
    return f"{len(costs['controls'])} draws, mean {costs['control']['value']:+.3f}"


def scores_table(found: Json) -> Table:
    """Both scores of every head, for CSV."""
    scores = found["scores"]
    rows = [
        (labels.count(i), labels.count(j), value, scores["previous"][i][j])
        for i, row in enumerate(scores["induction"])
        for j, value in enumerate(row)
    ]
    return [("layer", "head", "induction", "previous token"), *rows]


def costs_table(found: Json, data: str) -> Table:
    """The costs with their intervals and every draw of the control, for CSV."""
    rows: list[tuple[object, ...]] = []
    for each in found["ablations"]:
        names = " ".join(labels.head_name(*head) for head in each["heads"])
        costs = each[data]
        rows.append((names, "best heads", *costs["cost"].values()))
        rows += [
            (names, f"control {labels.count(i)}", value, "", "") for i, value in enumerate(costs["controls"])
        ]
    return [("heads", "switched off", "loss added", "low", "high"), *rows]

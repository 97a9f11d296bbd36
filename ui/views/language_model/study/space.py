"""Words in space: embeddings on a map through training, and neighbours beside those by co-occurrence."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures.base import labels, style
from figures.base.bars import percent
from figures.pages.language.words import Plane, word_map
from figures.pages.training.birth import Trend, over_snapshots
from ui.address import State, session
from ui.controls import Table, panel, pickers, plain
from ui.views.language_model.study.shipped_part import Json, known, measured

_SEEING = (
    "Embeddings, scaled to length 1. The axes are the two directions in which the drawn words differ most at "
    "the end of training, the same at every step, so a word that moves on the map has really moved. Two axes "
    "keep only part of all differences; the neighbours beside the map use all dimensions. Click a dot to "
    "choose its word; the dotted line is that word's path so far."
)
_AGREEING = (
    "For each word, the share of its nearest neighbours by embedding that are also among its nearest by "
    "co-occurrence; the mean over all drawn words. Co-occurrence is counted in the training text and knows "
    "nothing of the model. The dashed line is what lists drawn at random would share."
)
_HYPOTHESIS = (
    "Words in similar contexts have similar meanings: that is the *distributional hypothesis* (Harris 1954; "
    "Firth 1957). The model has seen nothing but contexts."
)


def show(model: str, now: State) -> None:
    found = known(model, "words")
    if found is None:
        return
    steps = found["steps"]
    at = _place(steps, now.snapshot)
    word = found["words"].index(now.word) if now.word in found["words"] else 0
    st.markdown(told(found, at))
    left, right = st.columns([1.7, 1], gap="medium")
    with left:
        _slider(steps, at)
        _map(model, found, at, word)
    with right:
        _choice(found, word)
        st.markdown(neighbours_table(found, at, word))
        st.caption(
            plain(
                f"Nearest of {found['candidates']:,} words by cosine. Bold: also near by co-occurrence, that "
                f"is PPMI of the pieces at most {found['window']} places away in the training text. The "
                f"snapshots of the run are stored in {found['stored']}."
            )
        )
        _agreeing(model, found, at)


def _place(steps: list[int], step: int | None) -> int:
    """The snapshot (from 0) that is nearest to a step; the last one for None."""
    if step is None:
        return len(steps) - 1
    return min(range(len(steps)), key=lambda i: abs(steps[i] - step))


def told(found: Json, at: int) -> str:
    """Agreement of both sorts of neighbours, at the beginning, now and at the end."""
    steps, agree = found["steps"], found["agree"]
    now = "" if at in (0, len(steps) - 1) else f", {percent(agree[at])} after step {steps[at]:,}"
    return (
        f"{_HYPOTHESIS} Before training, {percent(agree[0])} of a word's {_near(found)} nearest neighbours "
        f"are also its neighbours by co-occurrence{now}, and **{percent(agree[-1])}** after step "
        f"{steps[-1]:,}."
    )


def _near(found: Json) -> int:
    return len(found["company"][0])


def chance(found: Json) -> float:
    """The share of a list that a list drawn at random from the candidates would share with it."""
    return _near(found) / (found["candidates"] - 1)


def _slider(steps: list[int], at: int) -> None:
    st.select_slider(
        "Training step",
        steps,
        steps[at],
        format_func=lambda step: f"{step:,}",
        **pickers.control(
            "space step",
            steps[at],
            lambda step: session.change(snapshot=None if step == steps[-1] else int(step)),
            map(str, steps),
        ),
    )


def plane(found: Json, at: int, word: int) -> Plane:
    """The map at one snapshot."""
    points = np.array(found["points"], np.float64)
    names, places = found["names"], {each: i for i, each in enumerate(found["words"])}
    near = [places[names[i]] for i in found["neighbours"][at][word] if names[i] in places]
    notes = [
        f"{each} ({group})\nnear: {', '.join(names[i] for i in found['neighbours'][at][i_word][:4])}"
        for i_word, (each, group) in enumerate(zip(found["words"], found["groups"], strict=True))
    ]
    ends = np.stack([points.min((0, 1)), points.max((0, 1))])
    return Plane(found["words"], found["groups"], points[at], ends, notes, word, near, points[: at + 1, word])


def _map(model: str, found: Json, at: int, word: int) -> None:
    drawn_plane = plane(found, at, word)
    share = sum(found["share"][at])
    caption = (
        f"{len(found['words'])} words on the first two principal components of the last step "
        f"({percent(share)} of their variance here) · step {found['steps'][at]:,} · "
        f"{measured(model, found)}"
    )

    panel(
        "words in space",
        lambda: word_map(drawn_plane),
        caption,
        lambda: points_table(found),
        seeing=_SEEING,
        alt=f"{caption}. {spoken(found, at, word)}",
        take=lambda picked: _pick(found, picked),
        scrolls=480,
        sentence=False,
    )


def _pick(found: Json, picked: object) -> None:
    if isinstance(picked, (list, tuple)):
        picked = picked[0] if picked else None
    if isinstance(picked, int) and 0 <= picked < len(found["words"]):
        session.change(word=found["words"][picked])


def _choice(found: Json, word: int) -> None:
    names = {each: each for each in found["words"]}
    pickers.choose("space word", "Word", names, found["words"][word], "word", texts=True, labelled=True)


def neighbours_table(found: Json, at: int, word: int) -> str:
    """The neighbours of a word now, at the end and by co-occurrence, in Markdown."""
    company = found["company"][word]
    last = len(found["steps"]) - 1
    columns = [(f"step {found['steps'][at]:,}", found["neighbours"][at][word])]
    if at != last:
        columns.append((f"at the end, {found['steps'][last]:,}", found["neighbours"][last][word]))
    columns.append(("by co-occurrence", company))
    both = [set(company), *[set(company)] * (len(columns) - 2), set(found["neighbours"][last][word])]
    rows = [
        [
            _cell(found["names"][ids[i]], ids[i] in common)
            for (_, ids), common in zip(columns, both, strict=True)
        ]
        for i in range(len(company))
    ]
    head = [name for name, _ in columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _cell(name: str, common: bool) -> str:
    return f"**{plain(name)}**" if common else plain(name)


def _agreeing(model: str, found: Json, at: int) -> None:
    caption = (
        f"Shared neighbours by training step, mean over {len(found['words'])} words · "
        f"{measured(model, found)}"
    )

    def make() -> go.Figure:
        steps = found["steps"]
        trends = [
            Trend("embedding and co-occurrence", found["agree"], style.POSITIVE),
            Trend("by chance", [chance(found)] * len(steps), style.CHOSEN, dash="dash"),
        ]
        return over_snapshots(steps, trends, "shared neighbours", at, percent=True, height=230)

    panel("shared neighbours", make, caption, lambda: agree_table(found), seeing=_AGREEING, sentence=False)


def agree_table(found: Json) -> Table:
    """The share of common neighbours at each step, for CSV."""
    return [("step", "shared"), *zip(found["steps"], found["agree"], strict=True)]


def points_table(found: Json) -> Table:
    """The place of every word at every step, for CSV."""
    rows = [
        (step, word, group, x, y)
        for step, points in zip(found["steps"], found["points"], strict=True)
        for word, group, (x, y) in zip(found["words"], found["groups"], points, strict=True)
    ]
    return [("step", "word", "group", "x", "y"), *rows]


def spoken(found: Json, at: int, word: int) -> str:
    """The neighbours of a word at a snapshot, for people who do not see the map."""
    near = [found["names"][i] for i in found["neighbours"][at][word]]
    return f"Near {labels.shorten(found['words'][word])}: {', '.join(near)}"

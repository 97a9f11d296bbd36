"""Agreement: accuracy on minimal pairs by case, beside an n-gram model's, and a pair of the visitor's own."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from figures.base import labels
from figures.base.bars import percent
from figures.pages.language.intervals import Dots, dots
from figures.pages.language.pair import Read, surprisals
from lab.language.agreement import as_written
from transformer.text.vocabulary import clean
from ui.address import session
from ui.address.state import State
from ui.controls import pickers
from ui.controls.export import Table
from ui.controls.panel import panel
from ui.controls.part import refusals
from ui.controls.text import plain
from ui.server.language import live
from ui.views.language_model.study import perplexity
from ui.views.language_model.study.perplexity import LOOKS, MODEL, NGRAM
from ui.views.language_model.study.shipped_part import Json, known, measured

EXAMPLES = {
    "next to it": ("The dog runs.", "The dog run."),
    "a noun between": ("The keys to the cabinet are here.", "The keys to the cabinet is here."),
    "a clause between": ("The boy that the girls like is tall.", "The boy that the girls like are tall."),
    "a reflexive": ("The woman saw herself.", "The woman saw himself."),
}
"""Pairs to start from by their topics; the first one opens."""
FIRSTS = {topic: pair[0] for topic, pair in EXAMPLES.items()}
_CHANCE = 0.5
_SEEING = (
    "Two sentences differ in one word; one is grammatical (CLAMS, Mueller et al. 2020). A model is right if "
    "it finds that one more probable; guessing is right half the time (dotted line). An n-gram model sees "
    "only the last four pieces, so it misses a subject further back. Whiskers: 95 % intervals over subjects, "
    "since pairs with one subject are much alike."
)
_SCORING = (
    "The model reads both sentences as they stand, with their ends. The surprisal of a token is minus the "
    "base-2 logarithm of its probability after the tokens before it; summed over the sentence, it says how "
    "probable the whole is. Before the word in which the sentences differ, both cost the same."
)


def show(model: str, now: State) -> None:
    """Draws the section."""
    found = known(model, "agreement")
    if found is not None:
        st.markdown(told(found))
        caption = f"Accuracy on minimal pairs by case · {measured(model, found)}"
        panel(
            "agreement", lambda: _figure(found), caption, lambda: table(found), seeing=_SEEING, sentence=False
        )
    st.markdown("##### A pair of your own")
    _pair(model, now)
    st.markdown("##### Text that neither model has read")
    perplexity.show(model)


def told(found: Json) -> str:
    """The case in which the model is best, the cases in which it only guesses, and the n-gram model."""
    models, names = found["models"], found["told"]
    cells = {case: each["accuracy"] for case, each in models[MODEL].items()}
    best = max(cells, key=lambda case: cells[case]["value"])
    guessed = [names[case] for case, each in cells.items() if each["low"] <= _CHANCE <= each["high"]]
    better = [case for case, each in cells.items() if each["low"] > models[NGRAM][case]["accuracy"]["high"]]
    guesses = (
        f"It does no better than guessing in {_counted(len(guessed), len(cells))}: {'; '.join(guessed)}."
        if guessed
        else "In every case it does better or worse than guessing."
    )
    return (
        f"The model does best in the case “{names[best]}”: it prefers the grammatical sentence in "
        f"**{percent(cells[best]['value'])}** of the pairs, the n-gram model in "
        f"{percent(models[NGRAM][best]['accuracy']['value'])}. {guesses} It is clearly ahead of the n-gram "
        f"model, with intervals apart, in {_counted(len(better), len(cells))}."
    )


def _counted(count: int, whole: int) -> str:
    return f"{count} of {whole} cases"


def _figure(found: Json) -> go.Figure:
    cases = list(found["models"][MODEL])
    rows = [f"{found['told'][case]} · {found['models'][MODEL][case]['pairs']:,} pairs" for case in cases]
    lines = [_dots(found, name, cases) for name in LOOKS]
    return dots(rows, lines, "accuracy", _CHANCE, percent=True)


def _ranged(accuracy: Json) -> str:
    value, low, high = labels.hundredths(accuracy["value"], accuracy["low"], accuracy["high"])
    return f"{value}{labels.PER_CENT} ({low} to {high}{labels.PER_CENT})"


def _dots(found: Json, name: str, cases: list[str]) -> Dots:
    cells = [found["models"][name][case]["accuracy"] for case in cases]
    notes = [
        f"{found['told'][case]}\n{name}: {_ranged(each)}\n{as_written(found['examples'][case][0])}\n"
        f"{as_written(found['examples'][case][1])}"
        for case, each in zip(cases, cells, strict=True)
    ]
    return Dots(name, cells, notes, *LOOKS[name])


def table(found: Json) -> Table:
    """Accuracies with their intervals, for CSV."""
    rows = [
        (case, found["told"][case], name, each["pairs"], each["subjects"], *each["accuracy"].values())
        for name in LOOKS
        for case, each in found["models"][name].items()
    ]
    return [("case", "where", "model", "pairs", "subjects", "accuracy", "low", "high"), *rows]


# --- a pair of one's own ------------------------------------------------------------------------------------


def _pair(model: str, now: State) -> None:
    usual = next(iter(EXAMPLES.values()))
    first = usual[0] if now.prompt is None else now.prompt
    second = usual[1] if now.other is None else now.other
    left, right = st.columns(2, gap="small")
    with left:
        _box("First sentence", "prompt", first, second)
    with right:
        _box("Second sentence", "other", second, first)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        st.caption("Try:", width="content")
        for i, (topic, pair) in enumerate(EXAMPLES.items()):
            st.button(
                topic,
                key=f"pair.{i}",
                type="tertiary",
                on_click=_take,
                kwargs={"prompt": pair[0], "other": pair[1]},
                help=plain(" / ".join(pair)),
            )
    with refusals():
        _scored(model, live.read(model, clean(first)), live.read(model, clean(second)))


def _box(label: str, name: str, value: str, beside: str) -> None:
    other = "other" if name == "prompt" else "prompt"
    st.text_input(
        label,
        value,
        **pickers.control(f"pair {name}", value, lambda text: _take(**{name: text, other: beside})),
    )


def _take(**texts: str) -> None:
    session.change(**texts)


def _scored(model: str, first: live.Read, second: live.Read) -> None:
    st.markdown(verdict(first, second))

    def make() -> go.Figure:
        return surprisals(Read(first.tokens, first.bits), Read(second.tokens, second.bits))

    caption = f"Surprisal of each token of both sentences · {model.rpartition('/')[2]} · computed now"
    panel("pair", make, caption, lambda: pair_table(first, second), seeing=_SCORING, sentence=False)


def verdict(first: live.Read, second: live.Read) -> str:
    """Which sentence the model finds more probable, and by how much."""
    gap = second.total - first.total
    bits = f"{first.total:.1f} against {second.total:.1f} bits"
    if abs(gap) < 0.05:
        return f"The model finds both sentences equally probable: {bits}."
    better = "first" if gap > 0 else "second"
    times = 2.0 ** min(abs(gap), 60)
    return f"The model finds the **{better}** sentence **{times:,.3g} times** as probable: {bits}."


def pair_table(first: live.Read, second: live.Read) -> Table:
    """Tokens and bits of both sentences, for CSV."""
    rows = [
        (number, token, bits)
        for number, each in (("first", first), ("second", second))
        for token, bits in zip(each.tokens, each.bits, strict=True)
    ]
    return [("sentence", "token", "bits"), *rows]

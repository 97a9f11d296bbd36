"""Surprisal: how many bits each token of a text costs, given those before it (Hale 2001)."""

import math

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State
from explorer.app.controls import Table, export, plain, seen
from explorer.app.maps import heads
from explorer.app.maps.explorer import SIDES_OF, Scene, Strips, explorer
from explorer.app.maps.looking import Looks
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.base.labels import chance, piece
from explorer.figures.base.style import figure
from explorer.figures.pages.distributions import LARGEST, bits_spec, share
from explorer.linked.view.feeds import bars_feed, race_feed
from explorer.linked.view.home import Layout
from explorer.linked.view.wire import BarsFeed, Feed, Shade
from transformer.run import Translation
from transformer.training.quality import perplexity

SEEING = (
    "Minus the logarithm, to base 2, of the probability that the model gives a token after those "
    "before it: each bit halves it. People read words of higher surprisal more slowly (proposed "
    "by Hale 2001; measured by Demberg & Keller 2008 and Smith & Levy 2013)."
)
FORMULA = r"s(t_i) = -\log_2 p(t_i \mid t_1 \dots t_{i-1})"


def note(run: Translation) -> str:
    at = int(np.argmax(run.surprisals))
    step = run.steps[at]
    bits = run.surprisals[at]
    best = step.alternatives[0]
    most = f"Most surprising is “{plain(piece(step.token))}” with {bits:.1f} bits"
    if step.token_id == best.token_id:
        return f"{most}, though the model expected it."
    expected = f"“{plain(piece(best.token))}” ({chance(best.log_prob)})"
    return f"{most}, {odds(bits)}: the model expected {expected}."


def unpredicted(run: Translation) -> str:
    """That nothing predicts the first token of a text, where that is so, as a sentence more."""
    if run.config.starts_with_token:
        return ""
    return " The first token is none of them: this model puts nothing before it to predict it from."


def odds(bits: float) -> str:
    """A probability of 2^−bits as a chance of one in so many, with two digits: `1 in 2,900`."""
    times = 2.0**bits
    digits = max(int(np.floor(np.log10(times))) - 1, 0)
    return f"1 in {round(times, -digits):,.0f}" if times >= 10 else f"1 in {times:.1f}"


def show(opened: View, now: State) -> None:
    """Draws what all tokens cost together, the text with its costs, and the numbers."""
    run = opened.translation
    st.caption(note(run))
    st.markdown(together(run))
    view(opened)
    numbers(run)
    seen(SEEING, FORMULA, "What is surprisal?")

    def draw() -> go.Figure:
        return figure(bits_spec(run.target_tokens, run.surprisals, 320))

    caption = f"Surprisal of each token of “{run.text}” in bits · {run.model}"
    export.collect("surprisal", export.Picture(draw, caption, table=lambda: table(run)))


def together(run: Translation) -> str:
    """The bits of all tokens, and the perplexity by word and by piece."""
    total = np.array([sum(run.log_probs)])
    words = len(run.text.split())
    pieces = len(run.target_tokens)
    bits = sum(run.surprisals)
    return (
        f"**{bits:.1f} bits** in all: {bits / (words + 1):.1f} bits per word "
        f"({labels.counted(words, 'word')} and the end). Perplexity "
        f"**{perplexity(total, [words]):,.1f} per word**, {perplexity(total, [pieces - 1]):,.1f} "
        f"per piece ({pieces} pieces, the end among them).{unpredicted(run)}"
    )


def bars(opened: View) -> BarsFeed:
    """The bits of each token as bars that follow the cursor."""
    run = opened.translation
    named = zip(labels.names(run.target_tokens), run.surprisals, strict=True)
    return bars_feed(
        opened.key,
        bits_spec(run.target_tokens, run.surprisals),
        "step",
        title="Surprisal",
        about="of “{predicts}”, after “{reads}”",
        caption=(
            "bits of each token, given those before it · the text above is shaded from 0 to "
            f"{LARGEST:.0f} bits"
        ),
        alts=[f"{name}: {bits:.2f} bits." for name, bits in named],
        height=190,
    )


def view(opened: View) -> None:
    """Draws the shaded text, the candidates of each step, a head, and the bars."""
    run = opened.translation
    kind = opened.kinds[-1]
    race = race_feed(opened.key, run.steps, "surprisal = −log₂ of its probability", None)
    bits_of_tokens = bars(opened)  # no part of the view changes them

    def layout(now: State, looks: Looks) -> Layout:
        focus = heads.focus_of(looks[kind], now)
        plots = ("next", focus, "bits")
        return Layout("surprisal", "page", SIDES_OF[kind], plots, focus)

    def feeds(now: State, looks: Looks) -> dict[str, Feed]:
        drawn = heads.drawn_otherwise(looks[kind], now, fade=False)
        return {"next": race, "bits": bits_of_tokens, **drawn}

    shades = [Shade(share=share(bits), text=f"{bits:.2f} bits") for bits in run.surprisals]
    explorer(
        Scene(
            layout=layout,
            opened=opened,
            kinds=(kind,),
            extra=feeds,
            fade=False,
            largest=520,
            above=lambda now, looks: heads.choose(looks[kind], now, tiles=False),
            strips=Strips(shades=shades),
        )
    )


def numbers(run: Translation) -> None:
    """Draws the numbers of every token."""
    names, *rows = table(run)
    digits = {
        "bits": "%.2f",
        "sum of bits": "%.2f",
        "probability": "%.3g",
        "its probability": "%.3g",
    }
    st.dataframe(
        dict(zip(map(str, names), map(list, zip(*rows, strict=True)), strict=True)),
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format=form) for name, form in digits.items()
        },
        alt="The surprisal of every token",
    )


def table(run: Translation) -> Table:
    """The numbers of every token, under their names."""
    names = ("position", "token", "bits", "probability", "sum of bits", "most probable here")
    rows = list[tuple[object, ...]]()
    total = 0.0
    for i, (step, bits) in enumerate(zip(run.steps, run.surprisals, strict=True)):
        best = step.alternatives[0]
        total = total + bits
        facts = labels.count(i), piece(step.token), bits, math.exp(step.log_prob), total
        rows.append((*facts, piece(best.token), math.exp(best.log_prob)))
    return [(*names, "its probability"), *rows]

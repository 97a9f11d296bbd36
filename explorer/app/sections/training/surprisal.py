"""Surprisal: how many bits each token of a text costs, given those before it (Hale 2001)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import State
from explorer.app.controls import Table, export, inform, plain, seen
from explorer.app.controls.text import refusal
from explorer.app.maps import heads
from explorer.app.maps.explorer import Scene, Strips, explorer, strips_only
from explorer.app.maps.looking import Looks
from explorer.app.server import models, runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.stores import remembered
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.base.labels import chance, piece
from explorer.figures.base.style import figure
from explorer.figures.pages.distributions import LARGEST, bits_spec, share
from explorer.lenses.measures.stream import UnmeasuredError
from explorer.linked.view.feeds import bars_feed, race_feed
from explorer.linked.view.home import Layout, fills_feed
from explorer.linked.view.wire import BarsFeed, Feed, RaceFeed, Shade
from transformer.run import DecodeStep, Translation
from transformer.text.words import piece_groups
from transformer.training.quality import perplexity

SEEING = (
    "Minus the logarithm, to base 2, of the probability that the model gives a token after those "
    "before it: each bit halves it. People read words of higher surprisal more slowly (proposed "
    "by Hale 2001; measured by Demberg & Keller 2008 and Smith & Levy 2013)."
)
FORMULA = r"s(t_i) = -\log_2 p(t_i \mid t_1 \dots t_{i-1})"
SEEING_BOTH_WAYS = (
    "Each token is masked in turn, and the model says how probable it is given all others, those "
    "after it, too (pseudo-log-likelihood, Salazar et al. 2020). A language model sees only what "
    "stands before, so the two numbers answer two questions."
)
FORMULA_BOTH_WAYS = r"s(t_i) = -\log_2 p(t_i \mid t_1 \dots t_{i-1},\, t_{i+1} \dots t_n)"
MOST_MASKED = 128
"""Most tokens of a text of which each is masked in turn."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What each token of a text costs a model, in bits."""

    tokens: tuple[str, ...]  # along the axis of the cursor
    # what the model predicted in the place of each; None of a token that costs nothing
    steps: tuple[DecodeStep | None, ...]
    follows: str  # the axis: `step` or `source`

    @cached_property
    def bits(self) -> tuple[float, ...]:
        """−log₂ p of each token; 0 of one that costs nothing."""
        bits = [0.0] * len(self.steps)
        for place, step in self.counted:
            bits[place] = -step.log_prob / math.log(2)
        return tuple(bits)

    @cached_property
    def counted(self) -> tuple[tuple[int, DecodeStep], ...]:
        """The tokens that cost something, with their positions from 0."""
        return tuple((i, step) for i, step in enumerate(self.steps) if step is not None)

    @property
    def both_ways(self) -> bool:
        """Whether a token is predicted from those after it, too."""
        return self.follows == "source"


def costs_of(run: Translation) -> Costs:
    """The costs of a run: of its output, or of a text of which each token is masked in turn.

    UnmeasuredError if the text is too long for that; of a model that predicts something.
    """
    if run.steps:
        return Costs(tokens=run.target_tokens, steps=run.steps, follows="step")
    assert run.predict is not None
    if len(run.source_tokens) > MOST_MASKED:
        raise UnmeasuredError(
            f"Each token is masked in turn in texts of at most {MOST_MASKED} tokens; this one has "
            f"{len(run.source_tokens):,}."
        )
    ordinary = [group.start for group in piece_groups(run.source_tokens) if not group.special]
    predictions = run.predict(ordinary)
    return Costs(
        tokens=run.source_tokens,
        steps=tuple(predictions.get(i) for i in range(len(run.source_tokens))),
        follows="source",
    )


@remembered(32)
def costs(opened: View) -> Costs:
    """The costs of a run, measured once and then kept; raises as ``costs_of``."""
    return costs_of(opened.translation)


def note(costs: Costs) -> str:
    """The most surprising token, and what the model expected in its place."""
    step = min((step for _, step in costs.counted), key=lambda step: step.log_prob)
    bits = -step.log_prob / math.log(2)
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
    if not run.steps and run.predict is None:
        inform("This model predicts no words, so none is surprising.")
        return
    of_text = costs(opened)
    if not of_text.counted:
        st.caption("This text has no token that costs anything.")
        return
    st.caption(note(of_text))
    st.markdown(together(run, of_text))
    view(opened, of_text)
    numbers(of_text)
    if of_text.both_ways:
        if not run.fills:  # a language model would read the name of a mask as a word
            beside(opened, of_text)
        seen(SEEING_BOTH_WAYS, FORMULA_BOTH_WAYS, "What is surprisal?")
    else:
        seen(SEEING, FORMULA, "What is surprisal?")

    def draw() -> go.Figure:
        return figure(bits_spec(of_text.tokens, of_text.bits, 320))

    text = run.text or run.source_text
    caption = f"Surprisal of each token of “{text}” in bits · {run.model}"
    export.collect("surprisal", export.Picture(draw, caption, table=lambda: table(of_text)))


def together(run: Translation, of_text: Costs) -> str:
    """The bits of all tokens, and the perplexity by word and by piece."""
    bits = sum(of_text.bits)
    if of_text.both_ways:
        pieces = len(of_text.counted)
        return (
            f"**{bits:.1f} bits** in all, each of the {pieces} pieces masked in turn. "
            f"Pseudo-perplexity **{2 ** (bits / pieces):,.1f} per piece**."
        )
    total = np.array([sum(run.log_probs)])
    words = len(run.text.split())
    pieces = len(run.target_tokens)
    return (
        f"**{bits:.1f} bits** in all: {bits / (words + 1):.1f} bits per word "
        f"({labels.counted(words, 'word')} and the end). Perplexity "
        f"**{perplexity(total, [words]):,.1f} per word**, {perplexity(total, [pieces - 1]):,.1f} "
        f"per piece ({pieces} pieces, the end among them).{unpredicted(run)}"
    )


ABOUT = {"step": "of “{predicts}”, after “{reads}”", "source": "of “{source}”, masked"}
GIVEN = {"step": "given those before it", "source": "given all others"}
"""What a bar is about, and what a token is predicted from, by the axis of the tokens."""


def bars(opened: View, of_text: Costs) -> BarsFeed:
    """The bits of each token as bars that follow the cursor."""
    named = zip(labels.names(of_text.tokens), of_text.bits, strict=True)
    return bars_feed(
        opened.key,
        bits_spec(of_text.tokens, of_text.bits),
        of_text.follows,
        title="Surprisal",
        about=ABOUT[of_text.follows],
        caption=(
            f"bits of each token, {GIVEN[of_text.follows]} · the text above is shaded from 0 to "
            f"{LARGEST:.0f} bits"
        ),
        alts=[f"{name}: {bits:.2f} bits." for name, bits in named],
        height=190,
    )


def race(opened: View, of_text: Costs) -> RaceFeed:
    """The candidates in the place of each token."""
    caption = "surprisal = −log₂ of its probability"
    run = opened.translation
    if of_text.both_ways:
        steps = tuple(run.fills.get(i, step) for i, step in enumerate(of_text.steps))
        return fills_feed(opened.key, run, steps)
    return race_feed(opened.key, of_text.steps, caption, None)


def view(opened: View, of_text: Costs) -> None:
    """Draws the shaded text, the candidates of each step, a head, and the bars."""
    kind = opened.kinds[-1]
    candidates = race(opened, of_text)
    bits_of_tokens = bars(opened, of_text)  # no part of the view changes them

    def layout(now: State, looks: Looks) -> Layout:
        focus = heads.focus_of(looks[kind], now)
        plots = ("next", focus, "bits")
        return replace(strips_only("surprisal", kind), plots=plots, focus=focus)

    def feeds(now: State, looks: Looks) -> dict[str, Feed]:
        drawn = heads.drawn_otherwise(looks[kind], now, fade=False)
        return {"next": candidates, "bits": bits_of_tokens, **drawn}

    shades = [Shade(share=share(bits), text=f"{bits:.2f} bits") for bits in of_text.bits]
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


def numbers(of_text: Costs) -> None:
    """Draws the numbers of every token."""
    names, *rows = table(of_text)
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


def table(of_text: Costs) -> Table:
    """The numbers of every token, under their names."""
    names = ("position", "token", "bits", "probability", "sum of bits", "most probable here")
    rows = list[tuple[object, ...]]()
    total = 0.0
    for i, step in of_text.counted:
        best = step.alternatives[0]
        bits = of_text.bits[i]
        total = total + bits
        facts = labels.count(i), piece(step.token), bits, math.exp(step.log_prob), total
        rows.append((*facts, piece(best.token), math.exp(best.log_prob)))
    return [(*names, "its probability"), *rows]


# --- beside a language model ---------------------------------------------------------------------


def beside(opened: View, of_text: Costs) -> None:
    """Draws the bits of each word beside those of a language model, which reads what stands
    before."""
    writers = [source for source in models.available().values() if source.continues]
    if not writers:
        return
    run = opened.translation
    source = writers[0]
    text = run.source_text
    try:
        written = runs.translate(RunKey(source, text, "greedy", text))
    except ValueError as error:
        st.caption(f"{plain(source.title)} cannot read this text beside it: {refusal(error)}")
        return
    of_words = word_bits(of_text, opened.source.load().words_of(text))
    first = len(source.load().ids(text)) - len(written.steps)
    of_output = Costs(tokens=written.target_tokens, steps=written.steps, follows="step")
    of_others = word_bits(of_output, source.load().cut(text).words[max(0, first) :])
    words = text.split()
    st.markdown(f"##### Beside a language model, {plain(source.title)}, word by word")
    st.dataframe(
        {
            "word": words,
            "given all others": [of_words.get(i) for i in range(len(words))],
            "given those before": [of_others.get(i) for i in range(len(words))],
        },
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(f"{name}, bits", format="%.2f")
            for name in ("given all others", "given those before")
        },
        alt="The surprisal of every word for both models",
    )


def word_bits(of_text: Costs, words: Sequence[int]) -> dict[int, float]:
    """By word of the typed text, from 0, the bits of its pieces together; ``words`` has the word of
    each token, −1 for one of none."""
    sums = dict[int, float]()
    for word, bits in zip(words, of_text.bits, strict=False):
        if word >= 0:
            sums[word] = sums.get(word, 0.0) + bits
    return sums

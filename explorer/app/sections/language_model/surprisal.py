"""Surprisal: how many bits each token of a text costs, given those before it (Hale 2001)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.app.controls import Table, export, plain, seen
from explorer.app.maps.explorer import Strips
from explorer.app.sections.language_model import view
from explorer.app.server.opened import Opened
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.base.style import figure
from explorer.figures.pages.language_model import LARGEST, bits_spec, share
from explorer.linked import view as linked_view
from explorer.linked.view import BarsFeed, Shade
from transformer.run import Translation
from transformer.training.quality import perplexity

EXAMPLES = {
    "an odd word": "The man opened the door with a cloud.",
    "agreement": "The books on the table is old.",
    "a garden path": "The cat chased by the dog slept.",
    "word order": "I have never such a thing seen.",
    "the second time": "The zebra saw the lake, and the lake saw the zebra.",
}
_SEEING = (
    "The surprisal of a token is minus the logarithm, to base 2, of the probability that the model gives it "
    "after the tokens before it. A token that was certain costs nothing; each bit halves the probability. "
    "People read words of higher surprisal more slowly (proposed by Hale 2001; measured by Demberg & Keller "
    "2008 and Smith & Levy 2013)."
)
_FORMULA = r"s(t_i) = -\log_2 p(t_i \mid t_1 \dots t_{i-1})"


@dataclass(frozen=True)
class Cost:
    """Cost of a text, its end included."""

    bits: float  # of all tokens together
    pieces: int  # number of tokens, `</s>` among them
    words: int  # number of words, as white space parts them
    bits_per_word: float  # the bits over the words and one end
    per_word: float  # perplexity per word, with one end
    per_piece: float  # perplexity per token


def cost(run: Translation) -> Cost:
    """Cost of the text of a run."""
    total, words, pieces = np.array([sum(run.log_probs)]), len(run.text.split()), len(run.target_tokens)
    bits = sum(run.surprisals)
    return Cost(
        bits,
        pieces,
        words,
        bits / (words + 1),
        perplexity(total, [words]),
        perplexity(total, [pieces - 1]),
    )


def first(run: Translation) -> int:
    """The step that opens first: that of the most surprising token."""
    return int(np.argmax(run.surprisals))


def told(run: Translation) -> str:
    """Cost of the text, and its most surprising token with the one that the model expected."""
    found, top = cost(run), first(run)
    step, bits = run.steps[top], run.surprisals[top]
    word, best = (plain(labels.piece(each)) for each in (step.token, step.alternatives[0].token))
    words = "1 word" if found.words == 1 else f"{found.words} words"
    most = (
        f"Most surprising is “{word}” with {bits:.1f} bits, {odds(bits)}: the model expected “{best}” "
        f"({percent(float(np.exp(step.alternatives[0].log_prob)))})."
        if step.token_id != step.alternatives[0].token_id
        else f"Most surprising is “{word}” with {bits:.1f} bits, though the model expected it."
    )
    return (
        f"**{found.bits:.1f} bits** in all: {found.bits_per_word:.1f} bits per word ({words} and the end). "
        f"Perplexity **{found.per_word:,.1f} per word**, {found.per_piece:,.1f} per piece "
        f"({found.pieces} pieces, the end among them).  \n{most}"
    )


def odds(bits: float) -> str:
    """A probability of 2^−bits as a chance of one in so many, with two digits: `1 in 2,900`."""
    times = 2.0**bits
    digits = max(int(np.floor(np.log10(times))) - 1, 0)
    return f"1 in {round(times, -digits):,.0f}" if times >= 10 else f"1 in {times:.1f}"


def show(opened: Opened, run: Translation) -> None:
    st.markdown(told(run))
    shades = [Shade(share=share(bits), text=f"{bits:.2f} bits") for bits in run.surprisals]
    view.show(
        opened, "surprisal = −log₂ of its probability", Strips(shades=shades), {"bits": _bits(opened, run)}
    )
    _numbers(run)


def _bits(opened: Opened, run: Translation) -> BarsFeed:
    names = labels.names(run.target_tokens)
    return linked_view.bars_feed(
        opened.trace,
        bits_spec(run.target_tokens, run.surprisals),
        "step",
        "Surprisal",
        "of “{predicts}”, after “{reads}”",
        f"bits of each token, given those before it · the text above is shaded from 0 to {LARGEST:.0f} bits",
        [f"{name}: {bits:.2f} bits." for name, bits in zip(names, run.surprisals, strict=True)],
        190,
    )


def _numbers(run: Translation) -> None:
    """The numbers of every token, and the figure to take home."""
    names, *rows = table(run)
    st.dataframe(
        dict(zip(map(str, names), map(list, zip(*rows, strict=True)), strict=True)),
        hide_index=True,
        column_config={
            "bits": st.column_config.NumberColumn(format="%.2f"),
            "sum of bits": st.column_config.NumberColumn(format="%.2f"),
            "probability": st.column_config.NumberColumn(format="%.4f"),
            "its probability": st.column_config.NumberColumn(format="%.4f"),
        },
        alt="The surprisal of every token",
    )
    caption = f"Surprisal of each token of “{run.text}” in bits · {run.model}"
    with st.container(horizontal=True, gap="small"):
        seen(_SEEING, _FORMULA, "What is surprisal?")
        export.picture(
            "surprisal",
            lambda: figure(bits_spec(run.target_tokens, run.surprisals, 320)),
            caption,
            table=lambda: table(run),
        )


def table(run: Translation) -> Table:
    """The numbers of every token, under their names."""
    names = (
        *("position", "token", "bits", "probability", "sum of bits"),
        *("most probable here", "its probability"),
    )
    sums = np.cumsum(run.surprisals)
    rows = [
        (
            labels.count(i),
            labels.piece(step.token),
            run.surprisals[i],
            float(np.exp(step.log_prob)),
            float(sums[i]),
            labels.piece(step.alternatives[0].token),
            float(np.exp(step.alternatives[0].log_prob)),
        )
        for i, step in enumerate(run.steps)
    ]
    return [names, *rows]

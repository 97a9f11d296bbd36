"""Cost: n² against block-local attention, and one pass against one token after the other."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from figures.pages.training.cost import Cost, costs
from ui.address import State, session
from ui.controls import Table, panel, pickers, plain
from ui.server.language import live
from ui.views.language_model.study.shipped_part import Json, known, measured

ATTENTION = {"whole": "whole", "masked": "whole, under a local mask", "local": "local, in blocks"}
WRITING = {
    "parallel": "one pass over the text",
    "cached": "one by one, keys and values kept",
    "again": "one by one, all computed again",
}
_SEEING = (
    "One causal attention on random numbers, with this model's heads. Whole attention compares every token "
    "with all before it: n². A local mask throws most of that away after computing it, so it saves nothing. "
    "In blocks, attention compares only nearby tokens at all, with the same result. On logarithmic axes a "
    "power of n is a straight line."
)
_WRITING = (
    "Training knows the whole text, so all its positions are computed in one pass. Generation cannot begin a "
    "token before the previous one is chosen. If the keys and values of earlier tokens are kept (the KV "
    "cache), a step computes one new row; without them, it computes the whole text again. Fixed costs "
    "flatten the left end, so the exponents over all lengths are lower than those of long texts."
)


def show(model: str, now: State) -> None:
    found = known(model, "cost")
    left, right = st.columns(2, gap="medium")
    if found is not None:
        with left:
            st.markdown(attention_told(found["attention"]))
            _picture(model, found, "attention", ATTENTION, _SEEING)
        with right:
            st.markdown(writing_told(found["writing"]))
            _picture(model, found, "writing", WRITING, _WRITING)
    st.markdown("##### Measured now, on this server")
    _live(model, now)


def attention_told(found: Json) -> str:
    """Growth of the time of attention, and savings of blocks at the longest length."""
    ways, longest = found["ways"], found["lengths"][-1]
    whole, local = (ways[name]["milliseconds"][-1] for name in ("whole", "local"))
    return (
        f"Whole attention grows like {_power(ways['whole']['time'])}, under a local mask like "
        f"{_power(ways['masked']['time'])}, in blocks like {_power(ways['local']['time'])}. At "
        f"{longest:,} tokens, of which each sees {found['reach']}, blocks take {local:.3g} ms and whole "
        f"attention {whole:.3g} ms: **{whole / local:.1f} times** as long."
    )


def writing_told(found: Json) -> str:
    """Ratio of the time for writing one by one to that of one pass."""
    ways, longest = found["ways"], found["lengths"][-1]
    parallel, cached, again = (ways[name]["milliseconds"][-1] for name in WRITING)
    return (
        f"This model reads {longest} tokens in {parallel:.3g} ms in one pass. One by one it takes "
        f"**{cached / parallel:.1f} times** as long with the cache, and **{again / parallel:.0f} times** "
        f"without. Over these lengths, the time of one pass grows like {_power(ways['parallel']['time'])}, "
        f"with the cache like {_power(ways['cached']['time'])}, without like {_power(ways['again']['time'])}."
    )


def _power(cell: Json | None) -> str:
    if cell is None:
        return "an unknown power of $n$"
    return f"$n^{{{cell['value']:.2f}}}$ ({cell['low']:.2f} to {cell['high']:.2f})"


def _picture(model: str, found: Json, which: str, names: dict[str, str], seeing: str) -> None:
    part, machine = found[which], found["machine"]
    since = f", exponents from {part['fitted_from']} tokens on" if "fitted_from" in part else ""
    caption = (
        f"Processor time against the length of the text, the least of {found['repeats']} runs{since} · "
        f"{machine['processor']}, {machine['threads']} thread, torch {machine['torch']} · "
        f"{measured(model, found)}"
    )

    def make() -> go.Figure:
        lines = [
            Cost(way, name, part["lengths"], part["ways"][way]["milliseconds"]) for way, name in names.items()
        ]
        return costs(lines, ("n, tokens", "ms"))

    panel(f"language {which}", make, caption, lambda: table(part, names), seeing=seeing, sentence=False)


def table(part: Json, names: dict[str, str]) -> Table:
    """All times, for CSV."""
    rows = [
        (name, *each)
        for way, name in names.items()
        for each in zip(
            part["lengths"], part["ways"][way]["milliseconds"], part["ways"][way]["medians"], strict=True
        )
    ]
    return [("way", "n", "least ms", "median ms"), *rows]


def _live(model: str, now: State) -> None:
    left, right = st.columns([1.2, 2], gap="medium", vertical_alignment="bottom")
    with left:
        pickers.slide("tokens", "Tokens of the text", now.tokens, step=64)
    with right:
        st.button("Measure again", icon=":material/timer:", key="language.measure", on_click=session.keep)
    times = live.attention_times(model, now.tokens)
    half = live.attention_times(model, now.tokens // 2)
    st.markdown(live_told(now.tokens, times, half))
    rows = [
        f"| {name} | {half[way]:.2f} ms | {times[way]:.2f} ms | {times[way] / half[way]:.1f} |"
        for way, name in ATTENTION.items()
    ]
    head = f"| attention | {now.tokens // 2:,} tokens | {now.tokens:,} tokens | times as long |"
    st.markdown("\n".join([head, "| --- | --- | --- | --- |", *rows]))
    st.caption(
        plain(
            f"The least of {live.REPEATS} runs each, in processor time, on random numbers with the model's "
            "heads. Other visitors' work makes such times unsteady."
        )
    )


def live_told(length: int, times: dict[str, float], half: dict[str, float]) -> str:
    """Cost of twice as many tokens, whole and in blocks."""
    whole, local = (times[name] / half[name] for name in ("whole", "local"))
    return (
        f"From {length // 2:,} to {length:,} tokens, whole attention takes **{whole:.1f} times** as long, "
        f"local attention **{local:.1f} times**. Doubling n multiplies n² by 4 and n by 2."
    )

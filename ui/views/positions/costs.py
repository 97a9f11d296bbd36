"""Cost of positional encodings: time and memory of an encoder pass, by the length of the text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import streamlit as st

from figures.pages.positions import Interval, measured_lines, twin_name
from transformer.model.encodings.table import ENCODINGS
from ui.controls import panel

Json = dict[str, Any]


def show(results: Json) -> None:
    found = results["cost"]
    st.markdown("##### Speed and memory")
    st.markdown(sentence(results))
    threads = f"{found['threads']} thread{'s' * (found['threads'] > 1)}"
    runs = f"median of {found['repeats']} runs, bars hold the middle half, {threads}"
    for name, title, caption in (
        ("milliseconds", "milliseconds", f"Encoder pass over one text on a CPU, {runs}"),
        ("megabytes", "MB", "Most memory that the encoder's tensors hold at once, weights not counted"),
    ):
        series = {
            twin: _measured(each, name) for twin, each in found["models"].items() if "-seed" not in twin
        }
        panel(
            f"cost-{name}",
            _figure(found["lengths"], series, title),
            f"{caption}; both axes logarithmic",
            alt=title,
            sentence=False,
        )


def sentence(results: Json) -> str:
    """Growth of time and memory with the length n, as exponents of n, and the largest memory of a bias."""
    found = results["cost"]
    lengths = found["lengths"]
    kinds = {name: ENCODINGS[facts["positions"]].acts for name, facts in results["models"].items()}
    biased = {name for name, acts in kinds.items() if acts == "scores"}
    parts = {
        (measure, with_bias): _exponents(
            lengths,
            (each[measure] for name, each in found["models"].items() if (name in biased) == with_bias),
        )
        for measure in ("milliseconds", "megabytes")
        for with_bias in (False, True)
    }
    told = (
        f"Every query meets every key, so in long texts the time approaches $n^2$. From {lengths[-2]:,} to "
        f"{lengths[-1]:,} tokens it grows like {parts['milliseconds', False]} without a bias"
    )
    memory = f"Without a bias, the memory grows like {parts['megabytes', False]}, because no matrix is kept"
    most = _most({name: each for name, each in found["models"].items() if name in biased})
    if most is None:
        return f"{told}. {memory}."
    name, peak = most
    return (
        f"{told}, and like {parts['milliseconds', True]} with one. {memory}. A bias is a matrix of queries × "
        f"keys while it is added: its memory grows like {parts['megabytes', True]}, up to {peak:.0f} MB "
        f"({twin_name(name)})."
    )


def exponent(lengths: Sequence[int], values: Sequence[float | None]) -> float | None:
    """The power of n with which a cost grows over the last doubling of the length; None if not measured."""
    before, last = values[-2:]
    if not before or not last:
        return None
    return math.log(last / before) / math.log(lengths[-1] / lengths[-2])


def _exponents(lengths: Sequence[int], costs: Iterable[Sequence[float | None]]) -> str:
    known = [power for each in costs if (power := exponent(lengths, each)) is not None]
    if not known:
        return "an unknown power of $n$"
    low, high = f"{min(known):.1f}", f"{max(known):.1f}"
    return f"$n^{{{low}}}$" if low == high else f"$n^{{{low}}}$ to $n^{{{high}}}$"


def _most(models: dict[str, Json]) -> tuple[str, float] | None:
    """The twin that takes most memory at the greatest length, and how many MB."""
    known = {name: each["megabytes"][-1] for name, each in models.items() if each["megabytes"][-1]}
    name = max(known, key=known.__getitem__, default=None)
    return None if name is None else (name, known[name])


def _measured(found: Json, name: str) -> list[Interval | None]:
    """The values of a cost; times come with their quartiles."""
    ends: list[Any] = found["quartiles" if name == "milliseconds" else name]
    return [
        None if middle is None else Interval(middle, *(end if isinstance(end, list) else (end, end)))
        for middle, end in zip(found[name], ends, strict=True)
    ]


def _figure(sizes: list[int], series: dict[str, list[Interval | None]], title: str) -> Callable[[], Any]:
    return lambda: measured_lines(sizes, series, ("tokens", title), height=230)

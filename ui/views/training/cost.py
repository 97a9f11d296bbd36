"""Cost: Table 1 of the paper, beside what layers of each kind take on a machine."""

from __future__ import annotations

from typing import Any

import streamlit as st

from figures.pages.training.cost import Cost, costs
from lab.cost.fitting import meeting
from lab.cost.table import LAYERS, NEIGHBOURHOOD, WRITTEN
from ui.address import State
from ui.controls import Table, inform, panel, pickers, plain
from ui.server import measured
from ui.server.opened import Opened

Json = dict[str, Any]
_MISSING = "Nothing was measured here; `python -m lab cost` does it and writes assets/cost.json."
_SEEING = (
    "A layer with random weights reads n random vectors. On logarithmic axes a power of n is a straight "
    "line, its exponent the slope. Fixed costs flatten the left end; projections (n · d²) keep "
    "self-attention below n². Written out, it also pays for memory that the system hands out anew in each "
    "pass, so its time can outgrow n²."
)
_COUNTED = (
    "The paper counts only the products that Table 1 names. Self-attention compares every token with every "
    "other one, d numbers each: n² · d. A recurrent layer multiplies every token with a d × d matrix: "
    "n · d². The two are equal where n = d."
)
_MEMORY = (
    "The most that all tensors of the pass hold at once, weights of the layer not counted. Fused "
    "self-attention computes the same as the written-out one, but keeps no n × n matrix: so its time is "
    "quadratic and its memory is not."
)
_COUNTED_LENGTHS = tuple(2**i for i in range(4, 15))
_NAMES = {
    "attention": "self-attention (fused)",
    WRITTEN: "self-attention (written out)",
    "recurrent": "recurrent (LSTM)",
    "convolutional": "convolutional",
    "restricted": "restricted self-attention",
}
_WRITTEN = "the same, its weights kept"


def show(_opened: Opened, now: State) -> None:
    found = measured.shipped(measured.COST)
    if found is None:
        inform(_MISSING)
        return
    width = nearest(found, now.width)
    _controls(now)
    st.markdown(growth(found, width))
    st.markdown(measured_table(found, width))
    st.caption(plain(basis(found, width)))
    left, right = st.columns(2, gap="medium")
    with left:
        _measured(found, width, "milliseconds", "Processor time of one pass", _SEEING)
    with right:
        _measured(found, width, "megabytes", "Memory of one pass", _MEMORY)
    _counted(found, now.width, width)


def _controls(now: State) -> None:
    with st.container(width=300):
        pickers.slide("width", "d, numbers per token", now.width)


def _measured(found: Json, width: int, quantity: str, title: str, seeing: str) -> None:
    unit = {"milliseconds": "ms", "megabytes": "MB"}[quantity]
    lines = [
        Cost(kind, name(kind), found["lengths"], values[quantity])
        for kind, values in found["widths"][str(width)].items()
    ]
    panel(
        f"cost {quantity}",
        lambda: costs(lines, ("n, tokens", unit)),
        f"{title} against its length · d = {width} · {where(found)}",
        lambda: table(found),
        seeing=seeing,
        sentence=False,
    )


def _counted(found: Json, d: int, width: int) -> None:
    st.markdown("##### Where n² · d meets n · d²")
    st.markdown(meets(found, d, width))
    lengths = sorted({*_COUNTED_LENGTHS, d})
    lines = [
        Cost(kind, layer.name, lengths, [layer.operations(n, d) for n in lengths])
        for kind, layer in LAYERS.items()
    ]
    panel(
        "cost operations",
        lambda: costs(lines, ("n, tokens", "operations"), (d, f"n = d = {d:,}"), points=False),
        f"Operations per layer by Table 1, counted, not measured · d = {d:,} · r = {NEIGHBOURHOOD}",
        lambda: counted(lines),
        seeing=_COUNTED,
        sentence=False,
    )


def table(found: Json) -> Table:
    """All measurements, for CSV."""
    names = ("layer", "d", "n", "least ms", "median ms", "MB")
    rows = [
        (kind, int(width), *each)
        for width, kinds in found["widths"].items()
        for kind, values in kinds.items()
        for each in zip(
            found["lengths"], values["milliseconds"], values["medians"], values["megabytes"], strict=True
        )
    ]
    return [names, *rows]


def counted(lines: list[Cost]) -> Table:
    """The counted operations, for CSV."""
    rows = [(each.key, n, value) for each in lines for n, value in zip(each.x, each.y, strict=True)]
    return [("layer", "n", "operations"), *rows]


def name(kind: str) -> str:
    """A kind of layer as it was measured."""
    return _NAMES.get(kind, kind)


def nearest(found: Json, d: int) -> int:
    """The measured width nearest to another, by their ratio."""
    return min(map(int, found["widths"]), key=lambda each: max(each / d, d / each))


def where(found: Json) -> str:
    """When and on what machine it was measured."""
    machine = found["machine"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] != 1)}"
    computer = f"{machine['processor']}, {machine['cores']} cores"
    return f"{computer}, {threads}, torch {machine['torch']}, {found['date']}"


def power(cell: Json | None) -> str:
    """An exponent of n with its interval, in LaTeX: `$n^{1.70}$ (1.62 to 1.79)`."""
    if cell is None:
        return "not fitted"
    return f"$n^{{{cell['value']:.2f}}}$ ({cell['low']:.2f} to {cell['high']:.2f})"


def basis(found: Json, width: int) -> str:
    """Making of the exponents."""
    lengths = _fitted(found)
    return (
        f"k = {found['kernel']}, r = {NEIGHBOURHOOD} (blocks of {found['block']} and their neighbours). "
        f"Exponents: a straight line through the logarithms at n = {lengths[0]:,} to {lengths[-1]:,} "
        f"({len(lengths)} lengths), with the line's 95 % interval; d = {width}; the least of "
        f"{found['repeats']} runs, in processor time; {where(found)}."
    )


def growth(found: Json, width: int) -> str:
    """Growth of time and memory with n."""
    kinds, lengths = found["widths"][str(width)], _fitted(found)
    return (
        f"Measured at d = {width} from {lengths[0]:,} to {lengths[-1]:,} tokens: the time of self-attention "
        f"grows like {_bare(kinds['attention']['time'])}, that of the LSTM like "
        f"{_bare(kinds['recurrent']['time'])}. If every weight is kept, self-attention's memory grows like "
        f"{_bare(kinds[WRITTEN]['memory'])}; fused, like {_bare(kinds['attention']['memory'])}."
    )


def _bare(cell: Json | None) -> str:
    return "an unknown power of $n$" if cell is None else f"**$n^{{{cell['value']:.2f}}}$**"


def _fitted(found: Json) -> list[int]:
    """The lengths from which exponents were fitted."""
    later = [n for n in found["lengths"] if n >= found["fitted_from"]]
    return later or list(found["lengths"])


def measured_table(found: Json, width: int) -> str:
    """Table 1 with the measured exponents beside it, in Markdown."""
    kinds = found["widths"][str(width)]
    rows = [
        f"| {layer.name} | ${layer.complexity}$ | ${layer.sequential}$ | ${layer.path}$ "
        f"| {power(kinds[kind]['time'])} | {power(kinds[kind]['memory'])} |"
        for kind, layer in LAYERS.items()
    ]
    written = kinds[WRITTEN]
    rows.insert(1, f"| {_WRITTEN} | | | | {power(written['time'])} | {power(written['memory'])} |")
    head = "| layer | complexity | sequential operations | longest path | time here | memory here |"
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- |", *rows])


def meets(found: Json, d: int, width: int) -> str:
    """From which length on self-attention costs more than a recurrent layer: counted, and measured."""
    kinds, lengths = found["widths"][str(width)], found["lengths"]
    times = (kinds[kind]["milliseconds"] for kind in ("attention", "recurrent"))
    met = meeting(lengths, *times)
    told = f"Counted, self-attention costs more than a recurrent layer from **n = {d:,}** on."
    if met is not None:
        return (
            f"{told} Measured at d = {width}, it took longer from about **{round(met, -1):,.0f} tokens** on: "
            "a step of the LSTM has eight d × d products where self-attention has four for each token, and "
            "since it cannot begin before the previous one has ended, each with a single row, which a "
            "processor multiplies slowly."
        )
    first = kinds["attention"]["milliseconds"][0] > kinds["recurrent"]["milliseconds"][0]
    when = "at every length" if first else "at no length"
    span = f"from {lengths[0]:,} to {lengths[-1]:,} tokens"
    return f"{told} Measured at d = {width}, it took longer {when} {span}."


def ways(found: Json) -> str:
    """Ratio of the time of inference to that of one pass in parallel."""
    decoding = found["decoding"]
    lengths, ways = decoding["lengths"], decoding["ways"]
    last = lengths[-1]
    parallel, cached, again = (ways[each]["milliseconds"][-1] for each in ("parallel", "cached", "again"))
    return (
        f"At {last} target tokens, the decoder of {plain(decoding['model'])} takes {parallel:.3g} ms in one "
        f"pass, **{cached / parallel:.1f} times** as long one token after the other with the keys and values "
        f"of earlier tokens kept, and **{again / parallel:.0f} times** as long if every step computes them "
        "again."
    )

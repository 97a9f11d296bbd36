"""A study as a document: paragraphs and charts in order, and how it was measured."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import streamlit as st

from figures.pages.study import draw, number
from lab.study import Chart, Study
from ui.controls import command, panel, plain
from ui.controls.text import data


def show(found: dict[str, Any]) -> None:
    study: Study = found["study"]
    st.subheader(study.question, anchor=False)
    st.markdown(f"**{study.finding}**")
    charts = 0
    for kind, parts in groupby(study.parts, type):
        if kind is str:
            st.markdown("\n\n".join(map(str, parts)))
            continue
        together = [each for each in parts if isinstance(each, Chart)]
        for start in range(0, len(together), 2):
            pair = together[start : start + 2]
            widths = (1, 1) if len(pair) > 1 else (3, 2)
            for column, chart in zip(st.columns(widths, gap="large"), pair, strict=False):
                charts += 1
                with column:
                    _chart(f"study {charts}", chart)
    st.caption(plain(data(" ".join(filter(None, (study.method, study.sources))))))
    with st.popover("How it was measured", type="tertiary", icon=":material/help:"):
        for date, line in found["made"]:
            st.caption(date)
            st.code(command(line), language="sh", wrap_lines=True)
        st.caption(
            "Written from "
            + plain("; ".join(f"{file} (SHA-256 {digest[:16]}…)" for file, digest in found["data"].items()))
        )


def _chart(name: str, chart: Chart) -> None:
    table = [chart.columns, *chart.rows]
    if chart.kind == "table":
        st.markdown(_lines(chart))
        st.caption(plain(chart.caption))
    else:
        panel(name, lambda: draw(chart), chart.caption, lambda: table, alt=chart.alt, sentence=False)


def _lines(chart: Chart) -> str:
    """A table in Markdown; numbers stand to the right."""
    first = chart.rows[0] if chart.rows else ()
    ends = ["---:" if isinstance(cell, int | float) else "---" for cell in first]
    rows = [
        [plain(cell if isinstance(cell, str) else number(cell) or "–") for cell in row] for row in chart.rows
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in ([*map(plain, chart.columns)], ends, *rows))

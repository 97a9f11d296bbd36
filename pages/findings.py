"""Findings: what was measured over many sentences and models.

Every study by its question, or one of them.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby

import streamlit as st

from explorer.app.address.page_values import Findings
from explorer.app.controls import command, inform, panel, plain, refusal, refusals, styles
from explorer.app.controls.text import data
from explorer.app.server import studies
from explorer.app.server.studies import Study
from explorer.app.shell import menu
from explorer.app.shell.page import open_plain_page
from explorer.figures.pages.study import Chart, draw, number


def show() -> None:
    name = open_plain_page("findings").values(Findings).study
    if name in studies.known():
        menu.link("findings", "All findings", ":material/arrow_back:", "content", study="")
        with refusals():
            _document(studies.study(name))
        return
    if name:
        inform(plain(f"There is no study “{name}” here; these are the ones that there are."))
    st.html(styles.sheet("findings"))
    studies_found, wrong = studies.every()
    for reason in wrong:
        st.caption(f":material/warning: {refusal(reason)}")
    documents = sorted(
        ((study, name) for name, study in studies_found.items()), key=lambda pair: pair[0].topic
    )
    with st.container(key="studies"):
        for topic, entries in groupby(documents, lambda each: each[0].topic):
            st.markdown(f"##### {topic}")
            for document, name in entries:
                with st.container(gap=None):
                    menu.link("findings", document.question, width="content", study=name)
                    st.caption(plain(document.finding))


def _document(study: Study) -> None:
    st.subheader(study.question, anchor=False)
    st.markdown(f"**{study.finding}**")
    drawn = 0
    series = [_series(chart) for chart in study.parts if isinstance(chart, Chart)]
    for text, parts in groupby(study.parts, lambda part: isinstance(part, str)):
        if text:
            st.markdown("\n\n".join(map(str, parts)))
            continue
        for row in _rows(piece for piece in parts if isinstance(piece, Chart)):
            if row[0].kind == "table":
                st.markdown(_lines(row[0]))
                st.caption(plain(row[0].caption))
                continue
            widths = (1, 1) if len(row) > 1 else (3, 2)
            for column, chart in zip(st.columns(widths, gap="large"), row, strict=False):
                drawn += 1
                with column:
                    _chart(f"study {drawn}", chart, series)
    st.caption(plain(data(" ".join(filter(None, (study.method, study.sources))))))
    with st.popover("How it was measured", type="tertiary", icon=":material/help:"):
        for date, line in study.commands:
            st.caption(date)
            st.code(command(line), language="sh", wrap_lines=True)
        st.caption(study.program)


def _series(chart: Chart) -> list[str]:
    return list(dict.fromkeys(str(row[0]) for row in chart.rows))


def _rows(charts: Iterable[Chart]) -> Iterator[list[Chart]]:
    """Charts two by two, and tables alone: long ones would leave half of the page empty."""
    for table, group in groupby(charts, lambda chart: chart.kind == "table"):
        together = list(group)
        size = 1 if table else 2
        yield from (together[start : start + size] for start in range(0, len(together), size))


def _chart(name: str, chart: Chart, series: list[list[str]]) -> None:
    """Draws a chart; its series look as in the chart of the document with most of them."""
    table = [chart.columns, *chart.rows]
    names = set(_series(chart))
    among = max((name for name in series if names <= set(name)), key=len)
    make = partial(draw, chart, among)
    panel(name, make, chart.caption, lambda: table, alt=chart.alt, sentence=False, inked=True)


def _lines(chart: Chart) -> str:
    """A table in Markdown; numbers stand to the right."""
    first = chart.rows[0] if chart.rows else ()
    ends = ["---:" if isinstance(cell, int | float) else "---" for cell in first]
    rows = [
        [plain(cell if isinstance(cell, str) else number(cell) or "–") for cell in row]
        for row in chart.rows
    ]
    return "\n".join(
        f"| {' | '.join(row)} |" for row in ([*map(plain, chart.columns)], ends, *rows)
    )


show()

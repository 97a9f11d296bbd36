"""The page Findings: every study by its question, with its answer, or one of them."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import streamlit as st

from ui.address import session
from ui.controls import command, inform, plain, refusals
from ui.server import studies
from ui.shell import frame, menu
from ui.shell.models.model_picker import pick_model
from ui.views.findings import study

_NONE = "No study was shipped here; `python -m lab documents` writes them from what was measured."


def show() -> None:
    now = frame.open_page("findings")
    frame.heading("findings", now)
    frame.end("findings", now)
    pick_model(now)
    frame.show_notices(session.current())
    known = studies.known()
    if now.study in known:
        with refusals():
            menu.link("findings", "All findings", ":material/arrow_back:", "content", study="")
            study.show(studies.study(known[now.study]), studies.question(now.study))
        return
    if now.study:
        inform(_lacking(now.study))
    _list(known)


def _lacking(study: str) -> str:
    """Why a study is not here, and what brings it."""
    model, _, name = study.rpartition("/")
    if measure := studies.missing(study):
        what = f"“{name}” has not been measured for {model}."
        return f"{plain(what)} `{command(measure)}` measures it; `--help` says what else it reads."
    return plain(f"There is no study “{study}” here; these are the ones that there are.")


_STYLE = """<style>
.st-key-studies [data-testid="stPageLink"] a { background: none; padding-inline: 0; }
.st-key-studies h5 { padding-bottom: .6rem; }
</style>"""


def _list(known: dict[str, Path]) -> None:
    if not known:
        inform(_NONE)
    found = []
    for name, path in known.items():
        with refusals():
            found.append((studies.study(path)["study"], name))
    st.html(_STYLE)
    with st.container(key="studies"):
        ordered = sorted(found, key=lambda each: each[0].topic)
        for topic, entries in groupby(ordered, lambda each: each[0].topic):
            st.markdown(f"##### {topic}")
            for each, name in entries:
                with st.container(gap=None):
                    menu.link("findings", studies.question(name), width="content", study=name)
                    st.caption(plain(each.finding))

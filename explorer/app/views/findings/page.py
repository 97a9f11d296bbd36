"""The page Findings: every study by its question, with its answer, or one of them."""

from __future__ import annotations

from itertools import groupby

import streamlit as st

from explorer.app.address import session
from explorer.app.controls import inform, plain
from explorer.app.server import studies
from explorer.app.shell import frame, menu
from explorer.app.shell.models.model_picker import pick_model
from explorer.app.views.findings import study

_STYLE = """<style>
.st-key-studies [data-testid="stPageLink"] a { background: none; padding-inline: 0; }
.st-key-studies h5 { padding-bottom: .6rem; }
</style>"""


def show() -> None:
    now = frame.open_page("findings")
    frame.heading("findings", now)
    frame.end("findings", now)
    pick_model(now)
    frame.show_notices(session.current())
    if now.study in studies.known():
        menu.link("findings", "All findings", ":material/arrow_back:", "content", study="")
        study.show(studies.study(now.study))
        return
    if now.study:
        inform(plain(f"There is no study “{now.study}” here; these are the ones that there are."))
    _list()


def _list() -> None:
    st.html(_STYLE)
    documents = sorted(
        ((studies.study(name), name) for name in studies.known()), key=lambda each: each[0].topic
    )
    with st.container(key="studies"):
        for topic, entries in groupby(documents, lambda each: each[0].topic):
            st.markdown(f"##### {topic}")
            for document, name in entries:
                with st.container(gap=None):
                    menu.link("findings", document.question, width="content", study=name)
                    st.caption(plain(document.finding))

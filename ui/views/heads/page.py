"""The page of heads over many sentences: what is asked for, progress, and what was found."""

from __future__ import annotations

from typing import Any

import streamlit as st

from figures.base import labels
from transformer.study.survey import MOST_SENTENCES, MOST_TOKENS, read_upload
from transformer.text.pairs import DataError
from ui.address import session
from ui.controls import pickers
from ui.controls.text import plain
from ui.server import catalogue, runs
from ui.server.survey_run import Run, run_of
from ui.shell import fitting, frame
from ui.shell.model_picker import pick_model
from ui.views.heads import found, relations

_SECTIONS = {"": "statistics and roles", "relations": "linguistic relations"}
_KINDS = {"encoder": "encoder", "decoder": "masked decoder", "cross": "cross"}
_TICK = 0.5


def show() -> None:
    """Draws the page."""
    frame.open_page("Heads over many sentences")
    st.title("Heads over many sentences")
    model = pick_model()
    run = None if model is None else _open(model)
    if model is None or run is None:
        frame.menu()
        frame.show_notices()
        return
    _fit(model)
    _controls(model)
    frame.show_notices()
    waiting = _section() == "" and run.wait(session.visitor())
    st.fragment(_body, run_every=_TICK if waiting else None)(model, run, waiting)


def _body(model: str, run: Run, waited: bool) -> None:
    """What depends on the controls; while sentences are read it runs twice a second."""
    frame.menu()
    if _section() == "relations":
        relations.show(model, _kind())
        return
    waiting = run.wait(session.visitor())
    if waiting != waited:
        st.rerun()
    if waiting:
        _progress(run)
    else:
        _found(model, run)


def _open(model: str) -> Run | None:
    try:
        return run_of(model)
    except (ValueError, OSError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None


def _fit(model: str) -> None:
    sizes = catalogue.sizes(model)
    defaults = {kind: runs.default_head(model, kind) for kind in catalogue.KINDS}
    heads, notes = fitting.fit_heads(session.current(), sizes, defaults)
    for note in notes:
        session.notice(note)
    session.resolve(**heads)


def _section() -> str:
    view = session.current().view
    return view if view in _SECTIONS else ""


def _kinds() -> list[str]:
    """Dependencies join words of one language, so cross-attention has none to follow."""
    return [kind for kind in _KINDS if kind != "cross" or _section() == ""]


def _kind() -> str:
    kinds = _kinds()
    kind = session.current().kind
    return kind if kind in kinds else kinds[-1]


def _controls(model: str) -> None:
    """Section, kind, and whose sentences."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Kind of attention",
            _kinds(),
            default=_kind(),
            format_func=_KINDS.__getitem__,
            required=True,
            label_visibility="collapsed",
            width="content",
            **pickers.control("heads.kind", _kind(), lambda kind: session.change(kind=kind)),
        )
        st.segmented_control(
            "Section",
            list(_SECTIONS),
            default=_section(),
            format_func=_SECTIONS.__getitem__,
            required=True,
            label_visibility="collapsed",
            width="content",
            **pickers.control("heads.section", _section(), lambda name: session.change(view=name or None)),
        )
        if _section() == "":
            _own_file(model)


def _own_file(model: str) -> None:
    own = session.own_sentences()
    label = "use your own sentences" if own is None else f"your sentences: {labels.shorten(own[0], 24)}"
    with st.popover(plain(label), type="tertiary", icon=":material/upload_file:"):
        st.file_uploader(
            "Plain text, one sentence a line, or sentence, tab, translation; at most "
            f"{MOST_SENTENCES} lines of {MOST_TOKENS} tokens",
            type=["txt", "tsv"],
            max_upload_size=1,
            **pickers.control("heads.file", None, lambda file: _take_file(model, file)),
        )
        st.caption(
            "A given translation is forced through the model, otherwise it translates greedily. The file "
            "stays in this visit and is not part of the link."
        )
        if own is not None:
            st.button("back to the sample", on_click=session.keep_sentences, args=("", ()))


def _take_file(model: str, file: Any) -> None:
    if file is None:
        return
    try:
        session.keep_sentences(file.name, read_upload(file.getvalue(), catalogue.translator(model)))
    except DataError as error:
        session.notice(str(error))


def _progress(run: Run) -> None:
    """While sentences are read: how far, a way out, and the map so far."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(min(1.0, run.read / max(1, run.total)), f"Reading sentence {run.read} of {run.total}")
        st.button("Stop", key="heads.stop", on_click=run.leave, args=(session.visitor(),))
    survey = run.survey()
    if survey is None:
        return
    left, _ = st.columns([1.25, 1], gap="medium")
    with left:
        st.plotly_chart(
            found.grid(survey, _kind(), found.ink()),
            key="heads.partial",
            config={"displayModeBar": False},
            alt="The heads so far, coloured by the chosen statistic",
        )
        st.caption(plain(f"So far: {found.caption(survey, _kind())}"))


def _found(model: str, run: Run) -> None:
    """What the survey found: for use once it is read, or was stopped."""
    survey = run.survey()
    if run.failed or survey is None:
        st.error(plain(run.failed or "No sentence was read before you stopped."), icon=":material/error:")
    if run.read < run.total and not run.failed:
        _stopped(run)
    if survey is None:
        return
    found.show(survey, _kind(), model)


def _stopped(run: Run) -> None:
    def go_on() -> None:
        run.go_on(session.visitor())

    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"Stopped after {run.read} of {run.total} sentences; what follows is over those.", width="content"
        )
        st.button("Go on", on_click=go_on)

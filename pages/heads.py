"""Heads over sentences: statistics, roles and examples."""

from __future__ import annotations

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("heads"):
    from collections.abc import Iterable
    from functools import partial
    from typing import Any

    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.controls import inform, panel, part, pickers, plain, refusal, refusals
    from explorer.app.sections.heads import statistics
    from explorer.app.sections.heads.choice import Found
    from explorer.app.server import measured
    from explorer.app.server.jobs import Job, stays
    from explorer.app.server.source import Source
    from explorer.app.server.surveys import named, run_of, shipped
    from explorer.app.shell import frame, menu
    from explorer.app.shell.fitting import fit_heads, noticed
    from explorer.app.shell.models import needs
    from explorer.app.shell.models.model_picker import pick_model
    from explorer.figures.base import labels
    from explorer.lenses.heads.survey import MOST_SENTENCES, MOST_TOKENS, Survey, read_upload
    from transformer.text.pairs import DataError

_TICK = 0.5


def show() -> None:
    now = frame.open_page("heads")
    frame.heading("heads", now)
    frame.end("heads", now)
    source = pick_model(now)
    now = session.current()
    own, run = session.own_sentences(), None
    with refusals():
        if source is not None and not needs.tell_lack(source, ("encoder", "cross")):
            run = run_of(source, None if own is None else own[1], now.language)
    if source is None or run is None:
        frame.show_notices(now)
        return
    now = session.resolve(**noticed(fit_heads(now, source)))
    _controls(source, now)
    frame.show_notices(now)
    if _reads(run):
        part(_reading, run_every=_TICK)(run)
    else:
        part(_body)(source, run)


def _reads(run: Job[Survey]) -> bool:
    """Whether the page shows how far the app has read for this visitor."""
    return _asked(run) and stays(run)


def _reading(run: Job[Survey]) -> None:
    """Draws the progress, twice a second; the end of it draws the whole page again.

    Findings hold fragments, so no part with a clock draws them (see ``views.training.live.saving``).
    """
    now = session.current()
    if not _reads(run):
        session.rerun()
    _progress(run, now)


def _body(source: Source, run: Job[Survey]) -> None:
    """Draws what depends on the controls."""
    now = session.current()
    if not _asked(run):
        _unasked(source, run, now)
    elif stays(run):
        session.rerun()
    else:
        _found(source, run, now)


def _asked(run: Job[Survey]) -> bool:
    """Whether the page reads sentences for this visitor; a file of one's own asks for it."""
    return session.own_sentences() is not None or run.asked(session.visitor())


def _ask(run: Job[Survey]) -> None:
    session.keep()
    run.ask(session.visitor())


def _unasked(source: Source, run: Job[Survey], now: State) -> None:
    """Draws the survey that came with the model, and offers to read the sentences here."""
    known, damaged = None, True
    for note in measured.damaged_heads(source):
        inform(note)
    with refusals():
        known, damaged = shipped(source), False
    if known is not None:
        statistics.show(_subject(known, now), source)
    elif not damaged:
        inform(
            f"No statistics came with this model. To measure them, let the model read {run.total} sentences "
            f"of {named(source)} here."
        )
    st.button(
        f"Read the {run.total} sentences here",
        key="heads.ask",
        type="primary" if known is None else "secondary",
        icon=":material/play_arrow:",
        on_click=_ask,
        args=(run,),
    )
    if known is not None:
        st.caption(
            f"The statistics above were measured on {known.date} with these weights and came with the model. "
            "If you read the sentences here, the app computes them again."
        )


def _kind(now: State, has: Iterable[str]) -> str:
    kinds = list(has)
    return now.kind if now.kind in kinds else kinds[-1]


def _controls(source: Source, now: State) -> None:
    """Draws the choice of the kind and of the sentences, and a link to what was found about this model."""
    has = source.sizes
    with st.container(horizontal=True, vertical_alignment="center"):
        pickers.kind_picker(_kind(now, has), list(has))
        _own_file(source)
        menu.finding(f"{source.name}/importance")


def _own_file(source: Source) -> None:
    own = session.own_sentences()
    label = "Use your own sentences" if own is None else f"Your sentences: {labels.shorten(own[0], 24)}"
    with st.popover(plain(label), type="tertiary", icon=":material/upload_file:"):
        st.file_uploader(
            "Plain text, one sentence per line, or sentence, tab, translation; at most "
            f"{MOST_SENTENCES} lines of {MOST_TOKENS} tokens",
            type=["txt", "tsv"],
            max_upload_size=1,
            **pickers.control("heads.file", None, lambda file: _take_file(source, file)),
        )
        st.caption(
            "If a line gives a translation, the model is forced to write it; otherwise the model translates "
            "greedily. The app keeps the file for this visit only; it is not part of the link."
        )
        if own is not None:
            st.button("Back to the sample", on_click=session.keep_sentences, args=("", ()))


def _take_file(source: Source, file: Any) -> None:
    if file is None:
        return
    try:
        session.keep_sentences(file.name, read_upload(file.getvalue(), source.translator()))
    except DataError as error:
        session.notice(str(error))


def _progress(run: Job[Survey], now: State) -> None:
    """Draws the progress while the app reads sentences, a way to stop, and the map so far."""
    with st.container(horizontal=True, vertical_alignment="center"):
        text = run.place or f"Reading sentence {run.done} of {run.total}"
        st.progress(min(1.0, run.done / max(1, run.total)), text)
        st.button("Stop", key="heads.stop", on_click=run.leave, args=(session.visitor(),))
    survey = run.result()
    if survey is None:
        return
    left, _ = st.columns([1.25, 1], gap="medium")
    subject = _subject(survey, now)
    with left:
        panel(
            "heads.partial",
            partial(statistics.grid, subject),
            f"So far: {statistics.caption(subject)}",
            alt="The heads so far, coloured by the chosen statistic",
            inked=True,
            saved=False,
        )


def _subject(survey: Survey, now: State) -> Found:
    """A survey, and what the visitor chose to see of it."""
    own = session.own_sentences()
    kind = _kind(now, map(str, survey.means))
    return Found.of(survey, kind, now, None if own is None else own[0])


def _found(source: Source, run: Job[Survey], now: State) -> None:
    """Draws the findings of a survey that is complete or was stopped."""
    survey = run.result()
    if run.failed or survey is None:
        st.error(refusal(run.failed or "No sentence was read before you stopped."), icon=":material/error:")
    if run.done < run.total and not run.failed:
        _stopped(run)
    if survey is None:
        return
    statistics.show(_subject(survey, now), source)


def _stopped(run: Job[Survey]) -> None:
    def go_on() -> None:
        run.go_on(session.visitor())

    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"Stopped after {run.done} of {run.total} sentences; what follows covers only those.",
            width="content",
        )
        st.button("Continue", on_click=go_on)


show()

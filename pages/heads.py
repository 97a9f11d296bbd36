"""Heads over sentences: statistics, roles and examples."""

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("heads"):
    from collections.abc import Iterable
    from contextlib import suppress
    from functools import partial

    import streamlit as st
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from explorer.app.address import session
    from explorer.app.controls import inform, panel, part, pickers, plain, refusal, refusals
    from explorer.app.sections.heads import all_heads
    from explorer.app.sections.heads.head import SurveyView
    from explorer.app.server.jobs import Job, stays
    from explorer.app.server.pairs import read_upload
    from explorer.app.server.source import NEEDS_MODEL, Source
    from explorer.app.server.surveys import lines_of, named, run_of, shipped
    from explorer.app.shell import frame, menu, needs
    from explorer.app.shell.fitting import fit_heads
    from explorer.app.shell.model_picker import pick_model
    from explorer.figures.base import labels
    from explorer.figures.base.tasks import WORDS
    from explorer.lenses.heads.survey import (
        BOUNDS,
        MOST_SENTENCES,
        MOST_TOKENS,
        Survey,
        read_sentences,
    )
    from transformer.config import AttentionKind
    from transformer.storage.description import read_heads
    from transformer.text.pairs import DataError

_TICK = 0.5
_FORM = "Plain text; each line is {}; at most {} lines of {} tokens"
_KEPT = "The app keeps the file for this visit only; it is not part of the link."


def show() -> None:
    now = frame.open_page("heads")
    frame.heading("heads", now)
    source = pick_model(now)
    now = session.current()
    file, run = session.visit().sentences, None
    with refusals():
        if source is not None and not source.has_model:
            inform(NEEDS_MODEL)
        elif source is not None and not needs.tell_lack(source, ("encoder", "decoder")):
            run = run_of(source, lines_of(source, file and file[1], now.language))
    frame.end("heads", now, refused=run is None)
    if source is None or run is None:
        frame.show_notices(now)
        return
    now = session.resolve(**fit_heads(now, source))
    with st.container(horizontal=True, vertical_alignment="center"):
        pickers.kind_picker(_kind(source.sizes), [*source.sizes])
        _own_file(source)
        menu.finding(f"{source.name}/importance")
    frame.show_notices(now)
    if _wanted(run) and stays(run):
        part(run_every=_TICK)(_reading)(source, run)
    else:
        part()(_body)(source, run)


def _kind(has: Iterable[str]) -> AttentionKind:
    """The kind that the address asks for, or the last one that a model or a survey has."""
    kinds = [*map(AttentionKind, has)]
    wanted = session.current().kind
    return next((kind for kind in kinds if kind == wanted), kinds[-1])


def _own_file(source: Source) -> None:
    words = WORDS[source.task]

    def take(file: UploadedFile | None) -> None:
        try:
            if file is not None:
                read = partial(read_sentences, translator=source.load(), form=words.line)
                session.keep_sentences(
                    file.name, read_upload(file.name, file.getvalue(), read, BOUNDS)
                )
        except DataError as error:
            session.notice(str(error))

    own = session.visit().sentences
    label = (
        "Use your own sentences" if own is None else f"Your sentences: {labels.shorten(own[0], 24)}"
    )
    with st.popover(plain(label), type="tertiary", icon=":material/upload_file:"):
        control = session.control("heads.file", None, take)
        form = _FORM.format(words.line, MOST_SENTENCES, MOST_TOKENS)
        st.file_uploader(form, type=["txt", "tsv"], max_upload_size=1, **control)
        st.caption(f"{words.lines} {_KEPT}")
        if own is not None:
            st.button("Back to the sample", on_click=session.keep_sentences, args=("", ()))


def _wanted(run: Job[Survey]) -> bool:
    """Whether the page reads sentences for this visitor; a file of one's own asks for it."""
    return session.visit().sentences is not None or run.wanted_by(session.visit().name)


def _reading(source: Source, run: Job[Survey]) -> None:
    """Draws the progress, twice a second; the end of it draws the whole page again.

    Findings hold fragments, so no part with a clock draws them.
    """
    if not (_wanted(run) and stays(run)):
        session.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        text = run.place or f"Reading sentence {run.done} of {run.total}"
        st.progress(min(1.0, run.done / max(1, run.total)), text)
        st.button("Stop", key="heads.stop", on_click=run.leave, args=(session.visit().name,))
    if (survey := run.result()) is not None:
        view = SurveyView.of(survey, _kind(survey.profiles), source)
        place = st.columns([1.25, 1], gap="medium")[0]
        draw = partial(all_heads.grid, view)
        caption = f"So far: {all_heads.caption(view)}"
        alt = "The heads so far, coloured by the chosen statistic"
        panel("heads.partial", draw, caption, place=place, alt=alt, inked=True)


def _body(source: Source, run: Job[Survey]) -> None:
    """Draws what depends on the controls: a survey read here, complete or stopped, or the model's
    own."""
    if not _wanted(run):
        _unasked(source, run)
        return
    if stays(run):
        session.rerun()
    survey = run.result()
    if run.failed or survey is None:
        st.error(
            refusal(run.failed or "No sentence was read before you stopped."),
            icon=":material/error:",
        )
    if run.done < run.total and not run.failed:
        with st.container(horizontal=True, vertical_alignment="center"):
            stopped = (
                f"Stopped after {run.done} of {run.total} sentences; what follows covers only "
                "those."
            )
            st.caption(stopped, width="content")
            st.button("Continue", on_click=run.ask, args=(session.visit().name,))
    if survey is not None:
        all_heads.show(SurveyView.of(survey, _kind(survey.profiles), source), source)


def _unasked(source: Source, run: Job[Survey]) -> None:
    """Draws the survey that came with the model, and offers to read the sentences here."""
    known, damaged = None, True
    sentences = "1 sentence" if run.total == 1 else f"{run.total} sentences"
    with suppress(OSError, ValueError, KeyError):
        for note in source.beside(read_heads, source.config)[1]:
            inform(note)
    with refusals():
        known = shipped(source)
        damaged = False
    if known is not None:
        all_heads.show(SurveyView.of(known, _kind(known.profiles), source), source)
    elif not damaged:
        reads = f"let the model read {sentences} of {named(source)} here."
        inform(f"No statistics came with this model. To measure them, {reads}")

    def ask() -> None:
        session.keep()
        run.ask(session.visit().name)

    label = f"Read the {sentences} here"
    st.button(
        label,
        key="heads.ask",
        type="primary" if known is None else "secondary",
        icon=":material/play_arrow:",
        on_click=ask,
    )
    if known is not None:
        st.caption(
            f"Measured on {known.date} with these weights; the statistics came with the model. If "
            "you read the sentences here, the app computes them again."
        )


show()

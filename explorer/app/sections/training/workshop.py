"""Train here: the run that is going on, what the last one left, and the form for another."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.app.address import session
from explorer.app.controls import inform, part, plain, refusal, refusals
from explorer.app.sections.training import live
from explorer.app.server import examples
from explorer.app.server.hosted import Limits, closed
from explorer.app.server.workshop.plan import (
    BOUNDS,
    FEWEST,
    HEADS,
    LARGEST,
    LAYERS,
    OWN,
    STEPS,
    TASKS,
    WIDTHS,
    Pairs,
    Plan,
    held_out,
    own_pairs,
)
from explorer.app.server.workshop.run import TrainingRun
from explorer.app.server.workshop.workshop import workshop
from explorer.app.shell import frame, sections
from explorer.app.shell.models.model_picker import pick_model
from transformer.training.toys import LENGTH, LENGTHS, TOYS

_SHOWN = 3
"""Pairs of a task that the form shows."""
_SEEN = (
    "While it learns, this page draws the loss and the share of exact matches on pairs that it never saw, "
    "and the cross-attention of every head on one of them: copying shows as a diagonal, reversing as the "
    "other one."
)
_TICK = 1.0
"""Seconds between two looks at a run."""


def show() -> None:
    now = frame.open_page("training")
    frame.heading("training", now)
    pick_model(now, "training")
    sections.switch("training", now)
    frame.show_notices(now)
    frame.end("training", now)
    with refusals():
        _run_or_form()


def _run_or_form() -> None:
    run = workshop().run
    if run is None or run.told:
        part(_ended)(run)
        return
    part(_going, run_every=_TICK)(run)
    live.saving(run)


def _going(run: TrainingRun) -> None:
    """Draws a run that is going on; the end of the run draws the whole page again."""
    if run.told or workshop().run is not run:
        session.rerun()
    live.bar(run)
    if workshop().controls(session.browser()):
        with st.container(horizontal=True, gap="small"):
            if run.paused:
                st.button("Continue", icon=":material/play_arrow:", key="here.go", on_click=run.go_on)
            else:
                st.button("Pause", icon=":material/pause:", key="here.pause", on_click=run.pause)
            st.button("Stop", icon=":material/stop:", key="here.stop", on_click=run.stop)
    else:
        st.caption("Another visitor began this run and controls it; you can watch.")
    live.show_run(run)


def _ended(run: TrainingRun | None) -> None:
    """Draws what the last run left, and the form."""
    if run is not None:
        st.markdown(live.ended(run))
        if run.has_model:
            show_keeping(run)
            live.show_run(run)
            live.saving(run)
            st.divider()
    if (why := closed()) is not None:
        inform(plain(why))
        return
    show_form(run)


def show_form(
    last: TrainingRun | None,  # the last run of this server, if there was one
) -> None:
    """Draws the form, filled with the sizes of the last run."""
    usual = Plan() if last is None else last.asked.plan
    st.markdown(
        "Train a small model of your own: choose a task and press *Train*. The app itself makes the pairs of "
        "the first four tasks."
    )
    names = live.NAMES.__getitem__
    task = st.segmented_control(
        "Task", TASKS, default=usual.task, format_func=names, required=True, key="here.task"
    )
    file = _upload() if task == OWN else None
    sizes = _sizes(task, usual)
    if task in TOYS:
        pairs = held_out(task, sizes.get("length", LENGTH))[:_SHOWN]
        rows = [f"| {plain(each.source)} | {plain(each.target)} |" for each in pairs]
        st.markdown("\n".join(["| it reads | it has to write |", "| :--- | :--- |", *rows]))
    st.caption(_SEEN)
    if st.button(
        "Train", type="primary", icon=":material/model_training:", key="here.train", on_click=session.keep
    ):
        _start(task, sizes, file)
    st.caption(_allowed())


def _upload() -> Any:
    return st.file_uploader(
        f"UTF-8 text with source, tab, target in each line; {FEWEST} to {BOUNDS.lines:,} lines. One pair in "
        "ten is held out. All visitors of this server see some of your pairs while the model learns, and can "
        "keep the model.",
        type=["tsv", "txt", "gz"],
        max_upload_size=LARGEST // 2**20,
        key="here.file",
    )


def _sizes(task: str, usual: Plan) -> dict[str, int]:
    """The sizes that the visitor chose, by the names of the plan."""
    found = {}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if task in TOYS and TOYS[task].spelled:
            with st.container(width=168):
                found["length"] = st.slider("Most letters", *LENGTHS, usual.length, key="here.length")
        for name, label, choices in (
            ("width", "d_model", WIDTHS),
            ("heads", "Heads", HEADS),
            ("layers", "Layers of each side", LAYERS),
        ):
            with st.container(width=168):
                found[name] = st.select_slider(label, choices, getattr(usual, name), key=f"here.{name}")
        with st.container(width=168):
            found["steps"] = st.slider("Steps", *STEPS, usual.steps, 100, key="here.steps")
    return found


def _start(task: str, sizes: dict[str, int], file: Any) -> None:
    """Starts a run, or says in one sentence why not."""
    try:
        if task == OWN and file is None:
            raise ValueError("Choose a file of pairs first.")
        pairs: Pairs | None = None if file is None else own_pairs(file.name, file.getvalue())
        workshop().start(session.browser(), Plan(task=task, **sizes), pairs)
    except ValueError as error:
        st.error(refusal(error), icon=":material/error:")
        return
    session.rerun(born=None)


def _allowed() -> str:
    """Bounds of a run."""
    try:
        limits = Limits.from_environment()
    except ValueError as error:
        return refusal(error)
    return (
        f"One run at a time on this server, on one thread at low priority, for at most {limits.minutes:g} "
        f"minutes, {limits.memory_mb:,.10g} MB of memory and {limits.disk_mb:g} MB of files. All visitors "
        "see it; only the browser that began it can pause and stop it."
    )


def show_keeping(run: TrainingRun) -> None:
    """Draws the form."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width=260):
            name = st.text_input(
                "Name of the model",
                value=f"my-{run.asked.plan.task}",
                max_chars=40,
                key="here.name",
                help="Letters, digits, - and _. All visitors of this server will find the model.",
            ).strip()
        pressed = st.button(
            "Keep", type="primary", icon=":material/save:", key="here.keep", on_click=session.keep
        )
    if not pressed:
        st.caption(
            "A run that has ended stays here until somebody starts another; keep it to open it in every page."
        )
        return
    source = run.asked.shown.source
    try:
        workshop().keep(name)
    except ValueError as error:
        st.error(refusal(error), icon=":material/error:")
        return
    session.notice(
        f"{name} is kept. It is now the chosen model: every page in the menu opens it with this sentence."
    )
    session.rerun(
        model=name,
        text=source,
        sentence=examples.whole(source),
        target=None,
        encoder=None,
        decoder=None,
        cross=None,
        born=None,
        **session.FRESH,
    )

"""Train here: the run that is going on, what the last one left, and the form for another."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from explorer.app.address import session
from explorer.app.controls import inform, part, plain, refusal, refusals
from explorer.app.sections.training import live
from explorer.app.server import examples, training_plan
from explorer.app.server.hosted import Limits, closed
from explorer.app.server.training import TrainingRun, workshop
from explorer.app.server.training_plan import OWN, TASKS, Plan, held_out, own_pairs
from explorer.app.shell import frame, sections
from explorer.app.shell.model_picker import pick_model
from transformer.training.toys import LENGTH, LENGTHS, TOYS

SHOWN = 3  # pairs of a task that the form shows
NAMES = {name: f"{name}: {toy.about}" for name, toy in TOYS.items()} | {OWN: "your own pairs (TSV)"}
INTRODUCTION = (
    "Train a small model of your own: choose a task and press *Train*. The app itself makes the "
    "pairs of the first four tasks."
)
UPLOAD = (
    f"UTF-8 text with source, tab, target in each line; {training_plan.FEWEST} to "
    f"{training_plan.BOUNDS.lines:,} lines. One pair in ten is held out. All visitors of this "
    "server see some of your pairs while the model learns, and can keep the model."
)
SEEN = (
    "While it learns, this page draws the loss and the share of exact matches on pairs that it "
    "never saw, and the cross-attention of every head on one of them: copying shows as a "
    "diagonal, reversing as the other one."
)
STAYS = (
    "A run that has ended stays here until somebody starts another; keep it to open it in every "
    "page."
)


def show() -> None:
    now = frame.open_page("training")
    frame.heading("training", now)
    pick_model(now, "training")
    sections.switch("training", now)
    frame.show_notices(now)
    frame.end("training", now)
    with refusals():
        run = workshop().run
        if run is None or run.outcome:
            part()(ended)(run)
        else:
            part(run_every=1.0)(going)(run)


def going(run: TrainingRun) -> None:
    """A run that is going on, once a second; its end draws the whole page again."""
    if run.outcome or workshop().run is not run:
        session.rerun()
    steps = run.steps()
    st.progress(min(1.0, len(steps) / run.total), plain(live.progress(run, steps)))
    if run.owner == session.browser():
        st.button("Stop", "here.stop", icon=":material/stop:", on_click=run.stop)
    else:
        st.caption("Another visitor began this run and controls it; you can watch.")
    live.show_run(run, steps)


def ended(run: TrainingRun | None) -> None:
    """What the last run left, and the form for another."""
    if run is not None:
        left = "" if run.has_model else " Nothing is left of it."
        st.markdown(f"**{plain(live.sizes(run.plan))}.** {plain(run.outcome)}{left}")
        if run.has_model:
            keep(run)
            live.show_run(run, run.steps())
            st.divider()
    why = closed()
    if why is None:
        form(Plan() if run is None else run.plan)
    else:
        inform(plain(why))


def form(usual: Plan) -> None:
    st.markdown(INTRODUCTION)
    task = st.segmented_control(
        "Task",
        TASKS,
        key="here.task",
        default=usual.task,
        format_func=NAMES.__getitem__,
        required=True,
    )
    file = None
    sizes = dict[str, int]()
    if task == OWN:
        size = training_plan.BOUNDS.total // 2**20
        file = st.file_uploader(UPLOAD, ["tsv", "txt", "gz"], max_upload_size=size, key="here.file")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if task in TOYS and TOYS[task].spelled:
            length = usual.length
            sizes["length"] = st.slider(
                "Most letters", *LENGTHS, length, key="here.length", width=168
            )
        for name, label, choices in (
            ("width", "d_model", training_plan.WIDTHS),
            ("heads", "Heads", training_plan.HEADS),
            ("layers", "Layers of each side", training_plan.LAYERS),
        ):
            sizes[name] = st.select_slider(
                label, choices, getattr(usual, name), key=f"here.{name}", width=168
            )
        steps = training_plan.STEPS
        sizes["steps"] = st.slider("Steps", *steps, usual.steps, 100, key="here.steps", width=168)
    if task in TOYS:
        pairs = held_out(task, sizes.get("length", LENGTH))[:SHOWN]
        rows = [f"| {plain(pair.source)} | {plain(pair.target)} |" for pair in pairs]
        st.markdown("\n".join(["| it reads | it has to write |", "| :--- | :--- |", *rows]))
    st.caption(SEEN)
    if pressed("Train", ":material/model_training:"):
        start(task, sizes, file)
    try:
        limits = Limits.from_environment()
    except ValueError as error:
        st.caption(refusal(error))
        return
    st.caption(
        "One run at a time on this server, on one thread at low priority, for at most "
        f"{limits.minutes:g} minutes, {limits.memory_mb:,.10g} MB of memory and {limits.disk_mb:g} "
        "MB of files. All visitors see it; only the browser that began it can stop it."
    )


def pressed(does: str, icon: str) -> bool:
    return st.button(does, f"here.{does.lower()}", type="primary", icon=icon, on_click=session.keep)


def start(task: str, sizes: dict[str, int], file: UploadedFile | None) -> None:
    """Starts a run, or says in one sentence why not."""
    try:
        if task == OWN and file is None:
            raise ValueError("Choose a file of pairs first.")
        pairs = None if file is None else own_pairs(file.name, file.getvalue())
        workshop().start(session.browser(), Plan(task=task, **sizes), pairs)
    except ValueError as error:
        st.error(refusal(error), icon=":material/error:")
        return
    session.rerun(born=None)


def keep(run: TrainingRun) -> None:
    """Gives the model of the last run a name.

    It opens on every page then, with the pair that was shown.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        hint = "Letters, digits, - and _. All visitors of this server will find the model."
        usual = f"my-{run.plan.task}"
        name = st.text_input(
            "Name of the model", usual, 40, key="here.name", help=hint, width=260
        ).strip()
        is_kept = pressed("Keep", ":material/save:")
    if not is_kept:
        st.caption(STAYS)
        return
    try:
        workshop().keep(name)
    except ValueError as error:
        st.error(refusal(error), icon=":material/error:")
        return
    session.notice(
        f"{name} is kept. It is now the chosen model: every page in the menu opens it with this "
        "sentence."
    )
    text = run.example.source
    none = dict.fromkeys(("target", "encoder", "decoder", "cross", "born"))
    session.rerun(model=name, text=text, sentence=examples.whole(text), **none, **session.FRESH)

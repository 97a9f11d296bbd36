"""Language model: a causal Transformer continues a text, or reads one; what it attends to at every
step."""

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import SAMPLE
from explorer.app.controls import inform, refusal, refusals
from explorer.app.controls.pickers import choose, examples
from explorer.app.sections.language_model import generation, lengths, surprisal
from explorer.app.server import models, runs
from explorer.app.server.run_key import USUAL, RunKey
from explorer.app.server.source import Source
from explorer.app.server.view import View
from explorer.app.shell import changed, frame, menu, sentence, waiting
from explorer.app.shell.fitting import fit_heads, fit_position
from explorer.app.shell.model_picker import fit_listed, left_out
from explorer.app.shell.sections import chosen, switch
from transformer.run import Translation
from transformer.text.typed import without_surrogates

MISSING = "There is no language model here: put the directory of one under `models/language/`."
SECTIONS = {"generation": generation, "surprisal": surprisal, "lengths": lengths}


def show() -> None:
    now = frame.open_page("language_model")
    section = chosen(SECTIONS, now)
    reads = section is not generation  # a whole text, and writes nothing
    frame.heading("language_model", now)
    source = pick_model(now)
    if source is None:
        frame.show_notices(session.current())
        inform(MISSING)
        return
    is_own = now.prompt is not None and now.prompt not in section.EXAMPLES.values()
    switch(
        "language_model", now, lambda _: {**session.RUN, "prompt": now.prompt if is_own else None}
    )
    text = next(iter(section.EXAMPLES.values())) if now.prompt is None else now.prompt
    text_box(text, now, reads)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        examples(section.EXAMPLES, take_text)
        if not reads:
            sentence.draw_again(now)
        note = st.container(width="stretch", key="lm-note")
    typed = without_surrogates(text)  # a model may have pieces for line breaks and blanks
    drawing = runs.drawing_of(now) if now.decode.startswith(SAMPLE) else USUAL
    run_key = RunKey(
        source=source,
        text=typed,
        decode=now.decode,
        target=None,
        changes=now.changes,
        drawing=drawing,
    )
    if reads:
        run_key = RunKey(source, "", "greedy", typed, now.changes)
    run = read(run_key)
    if run is None:
        frame.show_notices(session.current())
        changed.show_changes(session.current(), None)
        frame.end("language_model", now, refused=True)
        return
    now = session.current()
    heads = fit_heads(now, source)
    step = fit_position("step", now.step, len(run.target_tokens))
    step = section.first(run) if step is None else step
    now = session.resolve(model=source.name, prompt=text, step=step, source=None, **heads)
    note.caption(section.note(run))
    opened = View(run_key, run, None)
    frame.show_notices(now, run.notes)
    changed.show_changes(now, opened)
    frame.end("language_model", now, opened.tokens(True))
    with refusals():
        section.show(opened)
        for study in (f"{source.name}/induction", f"{source.name}/words", "pretraining"):
            menu.finding(study)


def pick_model(now: State) -> Source | None:
    """Draws the sidebar; returns the chosen language model, None if there is none."""
    with st.sidebar:
        place = st.container()
        menu.draw()
    names = {name: source.title for name, source in models.catalogue().items() if source.writes}
    if not names:
        with place:
            left_out()
        return None
    name = fit_listed(None if now.model in models.available() else now.model, names)

    def take(name: str) -> None:
        session.change(model=name, decoder=None, **session.RUN)

    with place:
        choose("language model", "Model", names, name, take, labelled=True)
        left_out()
    return models.find(name)


def take_text(text: str) -> None:
    session.change(prompt=text, **session.FRESH)


def text_box(text: str, now: State, reads: bool) -> None:
    """The text, and the way of decoding if the model writes."""
    box, *way, button = st.columns(
        [8.8, 1] if reads else [6.2, 2.6, 1], vertical_alignment="bottom"
    )
    box.text_input(
        "Text",
        text,
        label_visibility="collapsed",
        placeholder="Type a text" if reads else "Nothing: the model begins by itself",
        **session.control("prompt", text, take_text),
    )
    for place in way:
        with place:
            sentence.decoding(now)
    does = "Read" if reads else "Continue"
    button.button(does, type="primary", width="stretch", on_click=session.keep)


def read(run_key: RunKey) -> Translation | None:
    """The run that is asked for; None if it was refused, and the page has said why."""
    try:
        with waiting.telling("Writing" if run_key.target is None else "Reading") as progress:
            return runs.translate(run_key, progress, whole=True)
    except (ValueError, OSError) as error:
        st.error(refusal(error), icon=":material/error:")
        return None


show()
